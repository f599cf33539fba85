//! `RateLimit` and `RateLimit-Policy`: structured fields of draft-ietf-httpapi-ratelimit-headers, revision 11.
//!
//! ```text
//! RateLimit-Policy: "api";q=100;w=60, "ceiling";q=5000;w=1
//! RateLimit: "api";r=41;t=25, "ceiling";r=4990;t=1
//! ```

use core::fmt;

use super::seconds;
use super::text::{write_integer, write_string};
use crate::{Algorithm, Entry, Outcome, Quota, Verdict};

/// The names of the fields, lower case.
pub const NAMES: [&str; 2] = ["ratelimit", "ratelimit-policy"];

/// The parameters. Another revision of the draft is another line here.
const PARAMETERS: Parameters =
    Parameters { quota: ";q=", in_flight: ";qu=\"concurrent-requests\"", window: ";w=", available: ";r=", time: ";t=" };

struct Parameters {
    quota: &'static str,
    /// The quota's unit, where it is not requests.
    in_flight: &'static str,
    window: &'static str,
    available: &'static str,
    time: &'static str,
}

/// At most so many limits are listed in a field.
pub const MOST: usize = 8;

/// The limits that a client hears of: refused, those that refuse; admitted, all. The leading one first, then in the
/// order of the policy, at most [`MOST`]. Empty when no enforced limit applied: then the field must not be sent.
pub fn listed<'a>(verdict: &Verdict<'a>) -> impl Iterator<Item = &'a Entry<'a>> + use<'a> {
    let leading = verdict.leading();
    let refused = leading.is_some_and(|leading| !leading.decision.allowed());
    let others = verdict.enforced().filter(move |entry| {
        let first = leading.is_some_and(|leading| core::ptr::eq(*entry, leading));
        let passes = entry.decision.allowed();
        !(first || refused && passes)
    });
    leading.into_iter().chain(others).take(MOST)
}

/// Writes the value of `RateLimit` for these limits, as [`listed`]; nothing when there are none.
///
/// # Errors
/// As the writer does.
pub fn write_state<'a>(out: &mut impl fmt::Write, listed: impl Iterator<Item = &'a Entry<'a>>) -> fmt::Result {
    write_list(out, listed, |out, entry| write_state_item(out, entry))
}

/// Writes the value of `RateLimit-Policy` for these limits, as [`listed`]; nothing when there are none.
///
/// # Errors
/// As the writer does.
pub fn write_policy<'a>(out: &mut impl fmt::Write, listed: impl Iterator<Item = &'a Entry<'a>>) -> fmt::Result {
    write_list(out, listed, |out, entry| match entry.policy_item {
        "" => write_policy_item(out, entry.name, entry.quota),
        prepared => out.write_str(prepared),
    })
}

/// Writes one item of `RateLimit`.
///
/// # Errors
/// As the writer does.
pub fn write_state_item(out: &mut impl fmt::Write, entry: &Entry<'_>) -> fmt::Result {
    write_string(out, entry.name)?;
    out.write_str(PARAMETERS.available)?;
    write_integer(out, entry.decision.remaining)?;
    let Some(time) = effective_window_s(entry) else { return Ok(()) };
    out.write_str(PARAMETERS.time)?;
    write_integer(out, time)
}

/// Writes one item of `RateLimit-Policy`: it depends on the quota alone, so a caller can prepare it.
///
/// # Errors
/// As the writer does.
pub fn write_policy_item(out: &mut impl fmt::Write, name: &str, quota: &Quota) -> fmt::Result {
    write_string(out, name)?;
    out.write_str(PARAMETERS.quota)?;
    write_integer(out, quota.capacity())?;
    if quota.algorithm() == Algorithm::Concurrency {
        out.write_str(PARAMETERS.in_flight)?;
    }
    let Some(window) = quota.window_s() else { return Ok(()) };
    out.write_str(PARAMETERS.window)?;
    write_integer(out, window)
}

/// The effective window in seconds, the parameter `t`: within it the client can use no more than what is available.
/// Refused, it is the wait. Of a full budget it is the window, and a bucket's is never so short that available over
/// window is above its rate. `None` where nothing was ever allowed and no time helps, and for what is in flight: its
/// places come back when others end.
fn effective_window_s(entry: &Entry<'_>) -> Option<u64> {
    let (decision, quota) = (&entry.decision, entry.quota);
    if quota.algorithm() == Algorithm::Concurrency {
        return None;
    }
    if let Outcome::Deny { retry_us } = decision.outcome() {
        return Some(seconds(retry_us));
    }
    if quota.capacity() == 0 {
        return None;
    }
    let us = match quota.algorithm() {
        // Using what is left at the rate takes at least as long as the next unit does to come, unless nothing is left.
        Algorithm::TokenBucket if decision.remaining > 0 => {
            quota.leak().ceil(decision.remaining.saturating_mul(quota.token().value()))
        }
        Algorithm::FixedWindow | Algorithm::SlidingWindow | Algorithm::SlidingLog
            if decision.remaining >= quota.capacity() =>
        {
            quota.period_us()
        }
        _ => decision.more_us(quota),
    };
    Some(seconds(us))
}

fn write_list<'a, W: fmt::Write>(
    out: &mut W,
    entries: impl Iterator<Item = &'a Entry<'a>>,
    write_item: impl Fn(&mut W, &Entry<'_>) -> fmt::Result,
) -> fmt::Result {
    for (place, entry) in entries.enumerate() {
        if place > 0 {
            out.write_str(", ")?;
        }
        write_item(out, entry)?;
    }
    Ok(())
}
