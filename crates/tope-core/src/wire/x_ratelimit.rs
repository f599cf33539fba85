//! `X-RateLimit-Limit`, `-Remaining`, `-Used`, `-Reset`, `-Resource` as GitHub sends them: the reset is a moment in
//! Unix seconds.

use super::triple::reset_s;
use crate::Verdict;

/// The names of the numeric fields, lower case.
pub const NAMES: [&str; 4] =
    ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-used", "x-ratelimit-reset"];

/// The name of the field that holds the limit's name.
pub const RESOURCE: &str = "x-ratelimit-resource";

/// The values in the order of [`NAMES`] and the limit's name. `None` when no enforced limit applied. `now_us` is the
/// wall clock, rounded up with the wait so that the moment is never too early.
pub fn values<'a>(verdict: &Verdict<'a>, now_us: u64) -> Option<([u64; 4], &'a str)> {
    let entry = verdict.leading()?;
    let (limit, remaining) = (entry.quota.capacity(), entry.decision.remaining);
    let reset = now_us.div_ceil(1_000_000) + reset_s(&entry.decision);
    Some(([limit, remaining, limit.saturating_sub(remaining), reset], entry.name))
}
