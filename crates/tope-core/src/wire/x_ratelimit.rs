//! `X-RateLimit-Limit`, `-Remaining`, `-Used`, `-Reset`, `-Resource` as GitHub sends them: the reset is a moment in
//! Unix seconds.

use crate::{Entry, Outcome, Verdict};

/// The names of the numeric fields, lower case.
pub const NAMES: [&str; 4] = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-used", "x-ratelimit-reset"];

/// The name of the field that holds the limit's name.
pub const RESOURCE: &str = "x-ratelimit-resource";

/// The values in the order of [`NAMES`] and the limit's name. `None` when no enforced limit applied. `now_us` is the
/// wall clock in Unix microseconds; the moment is rounded up and at least a second ahead, so that it is never too
/// early.
pub fn values<'a>(verdict: &Verdict<'a>, now_us: u64) -> Option<([u64; 4], &'a str)> {
    verdict.leading().map(|entry| (of(entry, now_us), entry.name))
}

/// The values in the order of [`NAMES`] for one limit.
pub fn of(entry: &Entry<'_>, now_us: u64) -> [u64; 4] {
    let (limit, remaining) = (entry.quota.capacity(), entry.decision.remaining);
    let wait_us = match entry.decision.outcome() {
        Outcome::Deny { retry_us } => retry_us,
        Outcome::Allow | Outcome::Never => entry.decision.reset_us,
    };
    let reset = now_us.saturating_add(wait_us.max(1_000_000)).div_ceil(1_000_000);
    [limit, remaining, limit.saturating_sub(remaining), reset]
}
