//! The header fields of a judgement, in the dialects of the policy, on our own answers and on an upstream's.
//!
//! | room | what is in it |
//! |---|---|
//! | `upstream` | what becomes of an upstream's own fields of these names |

mod upstream;

use std::fmt::{self, Write as _};

use arrayvec::ArrayVec;
use http::header::{CACHE_CONTROL, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue};
use tope_core::wire::{draft, retry_after, text, triple, x_ratelimit};
use tope_core::{Entry, Verdict};

/// Which header fields say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `RateLimit-Limit`, `RateLimit-Remaining`, `RateLimit-Reset`.
    Triple,
    /// `RateLimit`, `RateLimit-Policy`: draft-ietf-httpapi-ratelimit-headers-11.
    Draft,
    /// `X-RateLimit-*`, as GitHub sends them.
    XRateLimit,
}

static TRIPLE: [HeaderName; 3] = [
    HeaderName::from_static(triple::NAMES[0]),
    HeaderName::from_static(triple::NAMES[1]),
    HeaderName::from_static(triple::NAMES[2]),
];
static DRAFT: [HeaderName; 2] = [HeaderName::from_static(draft::NAMES[0]), HeaderName::from_static(draft::NAMES[1])];
static X_RATELIMIT: [HeaderName; 5] = [
    HeaderName::from_static(x_ratelimit::NAMES[0]),
    HeaderName::from_static(x_ratelimit::NAMES[1]),
    HeaderName::from_static(x_ratelimit::NAMES[2]),
    HeaderName::from_static(x_ratelimit::NAMES[3]),
    HeaderName::from_static(x_ratelimit::RESOURCE),
];

/// Adds the fields of a verdict. An upstream's own fields of these names are kept: the items of a list behind ours,
/// and of two triples the one with less remaining. Nothing is added when no enforced limit applied; a limit in shadow
/// is never told. `now_us` is the wall clock in Unix microseconds, for dialects that name a moment.
pub fn write(headers: &mut HeaderMap, verdict: &Verdict<'_>, dialects: &[Dialect], now_us: u64) {
    if dialects.is_empty() {
        return;
    }
    let listed: ArrayVec<&Entry<'_>, { draft::MOST }> = draft::listed(verdict).collect();
    let Some(leading) = listed.first() else { return };
    let remaining = leading.decision.remaining;
    let mut line = Line(String::with_capacity(Line::USUAL_BYTES));
    for (place, dialect) in dialects.iter().enumerate() {
        match dialect {
            _ if dialects[..place].contains(dialect) => {}
            Dialect::Triple if upstream::is_tighter(headers, &TRIPLE[1], remaining) => {}
            Dialect::Triple => {
                for (name, number) in TRIPLE.iter().zip(triple::of(leading)) {
                    put(headers, name, line.number(number));
                }
            }
            Dialect::Draft => {
                let state = line.value(|out| draft::write_state(out, listed.iter().copied()));
                upstream::put_before(headers, &DRAFT[0], state);
                let policy = line.value(|out| draft::write_policy(out, listed.iter().copied()));
                upstream::put_before(headers, &DRAFT[1], policy);
            }
            Dialect::XRateLimit if upstream::is_tighter(headers, &X_RATELIMIT[1], remaining) => {}
            Dialect::XRateLimit => {
                for (name, number) in X_RATELIMIT.iter().zip(x_ratelimit::of(leading, now_us)) {
                    put(headers, name, line.number(number));
                }
                put(headers, &X_RATELIMIT[4], line.value(|out| out.write_str(leading.name)));
            }
        }
    }
}

/// Adds what a refusal says whatever the dialect: `Retry-After`, unless no wait helps, and `Cache-Control: no-store`,
/// for a 429 must never be stored (RFC 6585 section 4).
pub fn write_refusal(headers: &mut HeaderMap, verdict: &Verdict<'_>) {
    put(headers, &CACHE_CONTROL, Some(HeaderValue::from_static("no-store")));
    put(headers, &RETRY_AFTER, retry_after::value(verdict).map(HeaderValue::from));
}

/// Sets a field. A map that is full, of 2^15 fields, stays as it is: better without a field than without an answer.
fn put(headers: &mut HeaderMap, name: &HeaderName, value: Option<HeaderValue>) {
    if let Some(value) = value {
        let _ = headers.try_insert(name, value);
    }
}

/// Where a value is written before it is copied to its own size. Five small copies were measured to cost less than
/// five slices of one shared piece of memory: 139 against 177 ns with the map.
struct Line(String);

/// Numbers below this have their digits in [`DIGITS`].
const SMALL: usize = 1_000;

/// `000` to `999`.
#[expect(clippy::cast_possible_truncation, reason = "a digit is below ten")]
static DIGITS: [[u8; 3]; SMALL] = {
    let mut digits = [[0; 3]; SMALL];
    let mut number = 0;
    while number < SMALL {
        digits[number] = [b'0' + (number / 100) as u8, b'0' + (number / 10 % 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    digits
};

/// The digits of a small number.
fn digits(small: usize) -> &'static str {
    let zeros = if small >= 100 {
        0
    } else if small >= 10 {
        1
    } else {
        2
    };
    std::str::from_utf8(&DIGITS[small][zeros..]).expect("digits are ASCII")
}

impl Line {
    /// Three limits fit into each field.
    const USUAL_BYTES: usize = 256;

    /// A number. Those below a thousand, which most are, need no memory of their own.
    fn number(&mut self, number: u64) -> Option<HeaderValue> {
        match usize::try_from(number) {
            Ok(small) if small < SMALL => Some(HeaderValue::from_static(digits(small))),
            _ => self.value(|out| text::write_digits(out, number)),
        }
    }

    /// A value; `None` when it holds what no value can, which a name in a policy never does.
    fn value(&mut self, write: impl FnOnce(&mut String) -> fmt::Result) -> Option<HeaderValue> {
        self.0.clear();
        write(&mut self.0).ok()?;
        HeaderValue::from_str(&self.0).ok()
    }
}

#[cfg(test)]
pub(crate) mod tests;
