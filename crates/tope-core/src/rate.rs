//! The text form of a rate: `600/min burst 100`, `10k/day`, `5/min sliding-log`, `4 at once`, `unlimited`, `none`.

use core::fmt;
use core::str::FromStr;

use crate::{Algorithm, Calendar, Period, Quota, QuotaError};

/// What a policy can write where it says how much.
///
/// ```
/// use tope_core::Rate;
/// let rate: Rate = "600/min burst 100".parse()?;
/// assert_eq!(rate.to_string(), "600/min burst 100");
/// assert_eq!("24h".parse::<Rate>().unwrap_err().to_string(), "a rate is an amount per period, as in `60/min`");
/// # extern crate std; use std::string::ToString;
/// # Ok::<(), tope_core::RateError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rate {
    /// No ceiling.
    Unlimited,
    /// At most so much per period; `none` is [`Quota::NONE`].
    Quota(Quota),
    /// At most so many in flight.
    AtOnce(u32),
}

/// Why a text is no rate, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateError {
    /// The byte of the text where the trouble begins.
    pub at: usize,
    /// What the trouble is.
    pub kind: RateErrorKind,
}

/// What is wrong with a text that should be a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RateErrorKind {
    /// There is no `/` and it is none of the words.
    NoRate,
    /// An amount that is not a whole number, or too large to read.
    Amount,
    /// `m`: minutes or months?
    Ambiguous,
    /// A unit that is none of ours.
    Unit,
    /// Something after the rate that is neither a burst nor an algorithm.
    Tail,
    /// A calendar period has neither a burst nor another algorithm.
    Calendar,
    /// The text is well formed, and no quota.
    Quota(QuotaError),
}

impl RateError {
    /// What to do about it.
    pub const fn hint(&self) -> &'static str {
        match self.kind {
            RateErrorKind::NoRate => "write AMOUNT/PERIOD, `N at once`, `unlimited` or `none`",
            RateErrorKind::Amount => "amounts are whole: 60, 1k, 5M, 50_000",
            RateErrorKind::Ambiguous => "write `min` for minutes or `month` for calendar months",
            RateErrorKind::Unit => {
                "periods are us, ms, s, sec, min, h, d, w or a number of them, and the calendar's day, week, month"
            }
            RateErrorKind::Tail => {
                "after the period come `burst N` and one of token-bucket, fixed-window, sliding-window, sliding-log"
            }
            RateErrorKind::Calendar => "for a rolling period with a burst write `24h`, `7d` or `30d`",
            RateErrorKind::Quota(_) => "see the bounds of a quota in the reference of the policy file",
        }
    }
}

impl fmt::Display for RateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            RateErrorKind::NoRate => f.write_str("a rate is an amount per period, as in `60/min`"),
            RateErrorKind::Amount => f.write_str("this is no amount"),
            RateErrorKind::Ambiguous => f.write_str("`m` may be minutes or months"),
            RateErrorKind::Unit => f.write_str("this is no period"),
            RateErrorKind::Tail => f.write_str("this does not belong to a rate"),
            RateErrorKind::Calendar => f.write_str("a calendar period has no burst and no other algorithm"),
            RateErrorKind::Quota(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for RateError {}

/// Lengths that divide one another, largest first, so that the longest that fits is printed.
const UNITS: [(&str, u64); 8] = [
    ("w", 604_800_000_000),
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("min", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
    ("sec", 1_000_000),
];

const ALGORITHMS: [Algorithm; 4] =
    [Algorithm::TokenBucket, Algorithm::FixedWindow, Algorithm::SlidingWindow, Algorithm::SlidingLog];

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let at = |part: &str| part.as_ptr() as usize - text.as_ptr() as usize;
        let fail = |part: &str, kind| RateError { at: at(part), kind };
        let mut words = text.split_ascii_whitespace();
        let Some(first) = words.next() else { return Err(fail(text, RateErrorKind::NoRate)) };

        let Some((amount, period)) = first.split_once('/') else {
            let rest: [Option<&str>; 3] = core::array::from_fn(|_| words.next());
            return match (first, rest) {
                ("unlimited", [None, ..]) => Ok(Self::Unlimited),
                ("none", [None, ..]) => Ok(Self::Quota(Quota::NONE)),
                (_, [Some("at"), Some("once"), None]) => parse_amount(first)
                    .and_then(|places| u32::try_from(places).ok())
                    .filter(|places| *places > 0)
                    .map(Self::AtOnce)
                    .ok_or_else(|| fail(first, RateErrorKind::Amount)),
                _ => Err(fail(first, RateErrorKind::NoRate)),
            };
        };
        let units = parse_amount(amount).ok_or_else(|| fail(amount, RateErrorKind::Amount))?;
        let period_at = period;
        let period = parse_period(period).map_err(|kind| fail(period, kind))?;

        let (mut burst, mut algorithm) = (None, None);
        while let Some(word) = words.next() {
            if word == "burst" && burst.is_none() {
                let number = words.next().ok_or_else(|| fail(word, RateErrorKind::Tail))?;
                burst = Some(parse_amount(number).ok_or_else(|| fail(number, RateErrorKind::Amount))?);
            } else if let (Some(named), None) = (ALGORITHMS.into_iter().find(|named| named.name() == word), algorithm) {
                algorithm = Some(named);
            } else {
                return Err(fail(word, RateErrorKind::Tail));
            }
        }
        let quota = match period {
            Period::Calendar(_) if burst.is_some() || algorithm.is_some() => {
                return Err(fail(period_at, RateErrorKind::Calendar));
            }
            Period::Calendar(calendar) => Quota::calendar(units, calendar),
            Period::Rolling(us) => Quota::new(algorithm.unwrap_or(Algorithm::TokenBucket), units, us, burst),
        };
        quota.map(Self::Quota).map_err(|error| fail(first, RateErrorKind::Quota(error)))
    }
}

/// A whole amount: `60`, `1k`, `5M`, `50_000`. `None` when it is none or above 2^64 - 1.
pub fn parse_amount(text: &str) -> Option<u64> {
    let (digits, times) = match text.as_bytes().last()? {
        b'k' => (&text[..text.len() - 1], 1_000),
        b'M' => (&text[..text.len() - 1], 1_000_000),
        _ => (text, 1),
    };
    whole(digits)?.checked_mul(times)
}

/// A length of time in microseconds: `10s`, `15min`, `100ms`, and a bare unit for one of it. `None` when it is none.
pub fn parse_duration_us(text: &str) -> Option<u64> {
    match parse_period(text) {
        Ok(Period::Rolling(us)) => Some(us),
        _ => None,
    }
}

fn parse_period(text: &str) -> Result<Period, RateErrorKind> {
    let calendar = match text {
        "day" => Some(Calendar::Day),
        "week" => Some(Calendar::Week),
        "month" => Some(Calendar::Month),
        _ => None,
    };
    if let Some(calendar) = calendar {
        return Ok(Period::Calendar(calendar));
    }
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '_').ok_or(RateErrorKind::Unit)?;
    let (number, unit) = text.split_at(unit_at);
    if unit == "m" {
        return Err(RateErrorKind::Ambiguous);
    }
    if !number.is_empty() && !is_whole(number) {
        return Err(RateErrorKind::Unit);
    }
    let times = if number.is_empty() { Some(1) } else { whole(number) };
    let (_, length) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or(RateErrorKind::Unit)?;
    let us = times.and_then(|times| times.checked_mul(length)).unwrap_or(u64::MAX);
    Ok(Period::Rolling(us))
}

/// Digits with single underscores between them.
fn is_whole(text: &str) -> bool {
    text.split('_').all(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The value of such digits; `None` when they are none, or too large.
fn whole(text: &str) -> Option<u64> {
    let digit = |sum: u64, byte: u8| sum.checked_mul(10)?.checked_add(u64::from(byte - b'0'));
    is_whole(text).then(|| text.bytes().filter(|byte| *byte != b'_').try_fold(0, digit)).flatten()
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("unlimited"),
            Self::Quota(quota) => quota.fmt(f),
            Self::AtOnce(places) => write!(f, "{places} at once"),
        }
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NONE {
            return f.write_str("none");
        }
        if self.algorithm() == Algorithm::Concurrency {
            return write!(f, "{} at once", self.amount());
        }
        write!(f, "{}/", self.amount())?;
        match self.period() {
            Period::Calendar(calendar) => return f.write_str(calendar.name()),
            Period::Rolling(us) => write!(f, "{}", Duration(us))?,
        }
        match self.algorithm() {
            Algorithm::TokenBucket if self.capacity() == self.amount() => Ok(()),
            Algorithm::TokenBucket => write!(f, " burst {}", self.capacity()),
            other => write!(f, " {}", other.name()),
        }
    }
}

/// Microseconds as a policy writes them: `15min`, or a bare unit for one of it.
#[derive(Clone, Copy, Debug)]
pub struct Duration(pub u64);

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, length) = UNITS
            .into_iter()
            .find(|(_, length)| self.0.is_multiple_of(*length) && self.0 >= *length)
            .unwrap_or(("us", 1));
        match self.0 / length {
            1 => f.write_str(name),
            times => write!(f, "{times}{name}"),
        }
    }
}
