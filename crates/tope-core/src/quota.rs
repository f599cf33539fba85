//! At most so much per period: rate, burst, algorithm.

use core::fmt;

use crate::divide::Divisor;

/// How a budget is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// A bucket of `burst` units, refilled continuously; the default. In any interval of length t at most
    /// `burst + rate x t` units pass.
    TokenBucket,
    /// A counter that starts anew at each aligned edge. Up to twice the amount can pass across an edge.
    FixedWindow,
    /// Two aligned windows; the earlier counts in proportion to its overlap with the last period.
    SlidingWindow,
    /// The time of every admission: at most the amount in any period. Memory grows with the amount.
    SlidingLog,
    /// At most so many in flight; the period is how long a lost one keeps its place. Memory grows with the amount.
    Concurrency,
}

impl Algorithm {
    /// The name in policies, metrics and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TokenBucket => "token-bucket",
            Self::FixedWindow => "fixed-window",
            Self::SlidingWindow => "sliding-window",
            Self::SlidingLog => "sliding-log",
            Self::Concurrency => "concurrency",
        }
    }

    /// Whether a bucket is a [`Log`](crate::algorithm::sliding_log::Log) of admissions rather than a
    /// [`State`](crate::algorithm::State).
    pub const fn is_log(self) -> bool {
        matches!(self, Self::SlidingLog | Self::Concurrency)
    }
}

/// A calendar period: from local midnight to local midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Calendar {
    /// A day, which may have 23 or 25 hours.
    Day,
    /// A week, from Monday.
    Week,
    /// A month, from the first.
    Month,
}

impl Calendar {
    /// The word in a rate: `500/day`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    /// A period of usual length in microseconds, for comparing and for telling clients: 24 h, 7 d, 30 d.
    const fn usual_us(self) -> u64 {
        match self {
            Self::Day => DAY_US,
            Self::Week => 7 * DAY_US,
            Self::Month => 30 * DAY_US,
        }
    }
}

/// The time in which an amount is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Period {
    /// A length in microseconds.
    Rolling(u64),
    /// From one local midnight to another.
    Calendar(Calendar),
}

const SECOND_US: u64 = 1_000_000;
const DAY_US: u64 = 86_400 * SECOND_US;

/// At most so much per period. A quota that exists is valid: every field of every decision made with it is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Quota {
    algorithm: Algorithm,
    period: Period,
    amount: u64,
    capacity: u64,
    /// Ticks a unit weighs, and ticks that leak in a microsecond: period and amount over their greatest common divisor.
    token: Divisor,
    leak: Divisor,
}

impl Quota {
    /// The largest amount and burst: 10^12 units.
    pub const MAX_AMOUNT: u64 = 1_000_000_000_000;
    /// The longest period: 400 days, in microseconds.
    pub const MAX_PERIOD_US: u64 = 400 * DAY_US;
    /// The last moment that can be told: 2^53 - 1 microseconds, in the year 2255.
    pub const MAX_TIME_US: u64 = (1 << 53) - 1;

    /// Nothing at all: every charge of one unit or more is refused for ever. In a policy: `none`.
    pub const NONE: Self = Self {
        algorithm: Algorithm::FixedWindow,
        period: Period::Rolling(SECOND_US),
        amount: 0,
        capacity: 0,
        token: Divisor::new(1),
        leak: Divisor::new(0),
    };

    /// A quota of `amount` units per `period_us` microseconds. `burst` is the capacity of a token bucket,
    /// `amount` unless said; no other algorithm has one.
    ///
    /// # Errors
    /// What is beyond a bound is refused by the bound's name: see [`QuotaError`].
    pub const fn new(
        algorithm: Algorithm,
        amount: u64,
        period_us: u64,
        burst: Option<u64>,
    ) -> Result<Self, QuotaError> {
        if period_us == 0 || period_us > Self::MAX_PERIOD_US {
            return Err(QuotaError::Period(period_us));
        }
        let capacity = match (algorithm, burst) {
            (_, None) => amount,
            (Algorithm::TokenBucket, Some(burst)) => burst,
            (other, Some(_)) => return Err(QuotaError::Burst(other)),
        };
        if amount > Self::MAX_AMOUNT || capacity > Self::MAX_AMOUNT {
            return Err(QuotaError::Amount(if amount > capacity { amount } else { capacity }));
        }
        if amount > 0 && capacity == 0 {
            return Err(QuotaError::NoBurst);
        }
        // A rate of nothing holds nothing: a burst without a refill would be spent once and for ever.
        let capacity = if amount == 0 { 0 } else { capacity };
        let common = gcd(amount, period_us);
        let (token, leak) = (period_us / common, amount / common);
        match algorithm {
            Algorithm::TokenBucket if capacity > (i64::MAX.cast_unsigned()) / token => Err(QuotaError::Ticks(capacity)),
            Algorithm::SlidingWindow | Algorithm::SlidingLog | Algorithm::Concurrency if capacity > MAX_PAIRED => {
                Err(QuotaError::Paired(algorithm, capacity))
            }
            _ => Ok(Self {
                algorithm,
                period: Period::Rolling(period_us),
                amount,
                capacity,
                token: Divisor::new(token),
                leak: Divisor::new(leak),
            }),
        }
    }

    /// A quota of `amount` units from one local midnight to another: a fixed window whose edges the caller
    /// gives with each step.
    ///
    /// # Errors
    /// [`QuotaError::Amount`] above 10^12 units.
    pub const fn calendar(amount: u64, calendar: Calendar) -> Result<Self, QuotaError> {
        if amount > Self::MAX_AMOUNT {
            return Err(QuotaError::Amount(amount));
        }
        let period = Period::Calendar(calendar);
        let (token, leak) = (Divisor::new(calendar.usual_us()), Divisor::new(amount));
        Ok(Self { algorithm: Algorithm::FixedWindow, period, amount, capacity: amount, token, leak })
    }

    /// At most `places` in flight; a place that nobody frees is free again after `hold_us`.
    ///
    /// # Errors
    /// [`QuotaError::Hold`] when the hold is not between 1 microsecond and 400 days, [`QuotaError::Paired`] above
    /// 2^31 - 1 places.
    pub const fn at_once(places: u32, hold_us: u64) -> Result<Self, QuotaError> {
        match Self::new(Algorithm::Concurrency, places as u64, hold_us, None) {
            Err(QuotaError::Period(hold_us)) => Err(QuotaError::Hold(hold_us)),
            made => made,
        }
    }

    /// A token bucket of `amount` per second.
    ///
    /// # Errors
    /// As [`Quota::new`].
    pub const fn per_second(amount: u64) -> Result<Self, QuotaError> {
        Self::new(Algorithm::TokenBucket, amount, SECOND_US, None)
    }

    /// A token bucket of `amount` per minute.
    ///
    /// # Errors
    /// As [`Quota::new`].
    pub const fn per_minute(amount: u64) -> Result<Self, QuotaError> {
        Self::new(Algorithm::TokenBucket, amount, 60 * SECOND_US, None)
    }

    /// A token bucket of `amount` per hour.
    ///
    /// # Errors
    /// As [`Quota::new`].
    pub const fn per_hour(amount: u64) -> Result<Self, QuotaError> {
        Self::new(Algorithm::TokenBucket, amount, 3_600 * SECOND_US, None)
    }

    /// How the budget is counted.
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The time in which the amount is allowed.
    pub const fn period(&self) -> Period {
        self.period
    }

    /// Units per period.
    pub const fn amount(&self) -> u64 {
        self.amount
    }

    /// The most units that can be left: the burst of a token bucket, else the amount.
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The length of the period in microseconds; for a calendar period its usual length.
    pub const fn period_us(&self) -> u64 {
        match self.period {
            Period::Rolling(us) => us,
            Period::Calendar(calendar) => calendar.usual_us(),
        }
    }

    /// The window that clients are told, in whole seconds: the time in which a token bucket refills from empty,
    /// else the period, rounded up; `None` below a second, which the header fields can't say, and for what is in
    /// flight, which no window limits.
    pub fn window_s(&self) -> Option<u64> {
        let us = match self.algorithm {
            // Within u64: `new` keeps capacity x token below 2^63.
            Algorithm::TokenBucket if self.amount > 0 => self.leak.ceil(self.capacity * self.token.value()),
            Algorithm::Concurrency => return None,
            _ => self.period_us(),
        };
        (us >= SECOND_US).then(|| us.div_ceil(SECOND_US))
    }

    /// The time in which the rate brings so many units, in microseconds, rounded up; `None` when it brings none, ever.
    pub fn spacing_us(&self, units: u32) -> Option<u64> {
        (self.leak.value() > 0).then(|| self.leak.ceil(u64::from(units).saturating_mul(self.token.value())))
    }

    /// Ticks that one unit weighs.
    pub(crate) const fn token(&self) -> Divisor {
        self.token
    }

    /// Ticks that leak in one microsecond; 0 only when the amount is 0.
    pub(crate) const fn leak(&self) -> Divisor {
        self.leak
    }
}

/// Two counters of 32 bits share a state, and each may owe up to one capacity.
const MAX_PAIRED: u64 = (u32::MAX / 2) as u64;

const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Why there is no such quota. Each is a mistake of whoever wrote the quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuotaError {
    /// The period is not between 1 microsecond and 400 days.
    Period(u64),
    /// A place that nobody frees is held for less than 1 microsecond or more than 400 days.
    Hold(u64),
    /// The amount or the burst is above 10^12.
    Amount(u64),
    /// Only a token bucket has a burst.
    Burst(Algorithm),
    /// A burst of 0 would refuse everything.
    NoBurst,
    /// Period and burst together are beyond the 2^63 ticks of a token bucket.
    Ticks(u64),
    /// The amount is beyond the 2^31 - 1 units that a sliding window, a log or those in flight can count.
    Paired(Algorithm, u64),
}

impl fmt::Display for QuotaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Period(_) => write!(f, "a period is between 1us and 400d"),
            Self::Hold(_) => write!(f, "a place is held for 1us to 400d"),
            Self::Amount(amount) => write!(f, "{amount} is above the largest amount, {}", Quota::MAX_AMOUNT),
            Self::Burst(algorithm) => write!(f, "a {} has no burst; only a token-bucket has", algorithm.name()),
            Self::NoBurst => write!(f, "a burst of 0 would refuse everything; write `none` if that is meant"),
            Self::Ticks(burst) => write!(
                f,
                "a burst of {burst} at this rate is beyond the 2^63 ticks of a token bucket; choose an amount that divides the period, or a smaller burst"
            ),
            Self::Paired(algorithm, amount) => {
                write!(f, "{amount} is above the largest amount of a {}, {MAX_PAIRED}", algorithm.name())
            }
        }
    }
}

impl core::error::Error for QuotaError {}
