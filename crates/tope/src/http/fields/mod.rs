//! The header fields of a judgement, in the dialects of the policy, on our own answers and on an upstream's.
//!
//! | room | what is in it |
//! |---|---|
//! | `upstream` | what becomes of an upstream's own fields of these names |

mod upstream;

use std::fmt::{self, Write as _};

use arrayvec::ArrayVec;
use bytes::Bytes;
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
    let mut values = Values::new();
    for (place, dialect) in dialects.iter().enumerate() {
        match dialect {
            _ if dialects[..place].contains(dialect) => {}
            Dialect::Triple if upstream::is_tighter(headers, &TRIPLE[1], remaining) => {}
            Dialect::Triple => {
                for (name, number) in TRIPLE.iter().zip(triple::of(leading)) {
                    values.push(name, |out| text::write_digits(out, number));
                }
            }
            Dialect::Draft => {
                values.push(&DRAFT[0], |out| draft::write_state(out, listed.iter().copied()));
                values.push(&DRAFT[1], |out| draft::write_policy(out, listed.iter().copied()));
            }
            Dialect::XRateLimit if upstream::is_tighter(headers, &X_RATELIMIT[1], remaining) => {}
            Dialect::XRateLimit => {
                for (name, number) in X_RATELIMIT.iter().zip(x_ratelimit::of(leading, now_us)) {
                    values.push(name, |out| text::write_digits(out, number));
                }
                values.push(&X_RATELIMIT[4], |out| out.write_str(leading.name));
            }
        }
    }
    values.put(headers);
}

/// Adds what a refusal says whatever the dialect: `Retry-After`, unless no wait helps, and `Cache-Control: no-store`,
/// for a 429 must never be stored (RFC 6585 section 4).
pub fn write_refusal(headers: &mut HeaderMap, verdict: &Verdict<'_>) {
    put(headers, &CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(seconds) = retry_after::value(verdict) {
        put(headers, &RETRY_AFTER, HeaderValue::from(seconds));
    }
}

/// Sets a field. A map that is full, of 2^15 fields, stays as it is: better without a field than without an answer.
fn put(headers: &mut HeaderMap, name: &HeaderName, value: HeaderValue) {
    let _ = headers.try_insert(name, value);
}

/// Several values in one piece of memory.
struct Values {
    text: String,
    ends: ArrayVec<(&'static HeaderName, usize), 10>,
}

impl Values {
    /// Three limits in the default dialects fit.
    const USUAL_BYTES: usize = 256;

    fn new() -> Self {
        Self { text: String::with_capacity(Self::USUAL_BYTES), ends: ArrayVec::new() }
    }

    fn push(&mut self, name: &'static HeaderName, write: impl FnOnce(&mut String) -> fmt::Result) {
        if write(&mut self.text).is_ok() {
            self.ends.push((name, self.text.len()));
        }
    }

    fn put(self, headers: &mut HeaderMap) {
        let text = Bytes::from(self.text.into_bytes());
        let mut start = 0;
        for (name, end) in self.ends {
            let value = HeaderValue::from_maybe_shared(text.slice(start..end));
            start = end;
            let Ok(value) = value else { continue };
            if DRAFT.contains(name) { upstream::put_before(headers, name, value) } else { put(headers, name, value) }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
