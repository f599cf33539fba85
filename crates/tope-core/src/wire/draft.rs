//! `RateLimit` and `RateLimit-Policy`: structured fields of draft-ietf-httpapi-ratelimit-headers, revision 11.
//!
//! ```text
//! RateLimit-Policy: "api";q=100;w=60, "ceiling";q=5000;w=1
//! RateLimit: "api";r=41;t=25, "ceiling";r=4990;t=1
//! ```

use core::fmt;

use super::{MAX_INTEGER, seconds};
use crate::{Algorithm, Entry, Outcome, Quota, Verdict};

/// The names of the fields, lower case.
pub const NAMES: [&str; 2] = ["ratelimit", "ratelimit-policy"];

/// The letters of the parameters. Another revision of the draft is another line here.
const LETTERS: Letters = Letters { quota: "q", window: "w", available: "r", time: "t" };

struct Letters {
    quota: &'static str,
    window: &'static str,
    available: &'static str,
    time: &'static str,
}

/// At most so many limits are listed in a field.
const MOST: usize = 8;

/// The limits that a client hears of: refused, those that refuse; admitted, all. The leading one first, then in the
/// order of the policy, at most eight. Empty when no enforced limit applied: then the field must not be sent.
pub fn listed<'a>(verdict: &Verdict<'a>) -> impl Iterator<Item = &'a Entry<'a>> + use<'a> {
    let leading = verdict.leading();
    let refused = !verdict.allowed();
    let others = verdict.enforced().filter(move |entry| {
        !leading.is_some_and(|leading| core::ptr::eq(*entry, leading)) && !(refused && entry.decision.allowed())
    });
    leading.into_iter().chain(others).take(MOST)
}

/// Writes the value of `RateLimit`.
///
/// # Errors
/// As the writer does.
pub fn write_state(out: &mut impl fmt::Write, verdict: &Verdict<'_>) -> fmt::Result {
    for (i, entry) in listed(verdict).enumerate() {
        let comma = if i == 0 { "" } else { ", " };
        write!(
            out,
            "{comma}\"{}\";{}={};{}={}",
            entry.name,
            LETTERS.available,
            entry.decision.remaining.min(MAX_INTEGER),
            LETTERS.time,
            window_s(entry).min(MAX_INTEGER)
        )?;
    }
    Ok(())
}

/// Writes one item of `RateLimit-Policy`: it depends on the quota alone, so a caller can prepare it.
///
/// # Errors
/// As the writer does.
pub fn write_policy_item(out: &mut impl fmt::Write, name: &str, quota: &Quota) -> fmt::Result {
    write!(out, "\"{name}\";{}={}", LETTERS.quota, quota.capacity().min(MAX_INTEGER))?;
    match quota.window_s() {
        Some(window) => write!(out, ";{}={window}", LETTERS.window),
        None => Ok(()),
    }
}

/// The effective window in seconds: within it the client can use no more than what is available. Refused, it is the
/// wait. A bucket's is never so short that available over window is above its rate.
fn window_s(entry: &Entry<'_>) -> u64 {
    let (decision, quota) = (&entry.decision, entry.quota);
    let more = match decision.outcome() {
        Outcome::Deny { retry_us } => return seconds(retry_us),
        Outcome::Never => decision.reset_us,
        Outcome::Allow => decision.more_us(quota),
    };
    if quota.algorithm() != Algorithm::TokenBucket || quota.amount() == 0 {
        return seconds(more);
    }
    let drain_us = (u128::from(decision.remaining) * u128::from(quota.token().value())).div_ceil(u128::from(quota.leak().value()));
    seconds(more).max(seconds(u64::try_from(drain_us).unwrap_or(u64::MAX)))
}
