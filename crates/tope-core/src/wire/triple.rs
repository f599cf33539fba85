//! `RateLimit-Limit`, `RateLimit-Remaining`, `RateLimit-Reset`: one limit in three numbers.

use super::seconds;
use crate::{Decision, Entry, Outcome, Verdict};

/// The names of the fields, lower case.
pub const NAMES: [&str; 3] = ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"];

/// The values of the fields in the order of [`NAMES`]: capacity, units left, seconds. `None` when no enforced limit
/// applied.
///
/// Admitted, they speak of the tightest limit and the reset is the time to its full budget; refused, of the one with
/// the longest wait, and the reset is that wait.
pub fn values(verdict: &Verdict<'_>) -> Option<[u64; 3]> {
    verdict.leading().map(of)
}

/// The values of the fields for one limit.
pub fn of(entry: &Entry<'_>) -> [u64; 3] {
    [entry.quota.capacity(), entry.decision.remaining, reset_s(&entry.decision)]
}

/// Seconds for a reset: the wait of a refusal, else the time to the full budget (0 when it is full).
fn reset_s(decision: &Decision) -> u64 {
    match decision.outcome() {
        Outcome::Deny { retry_us } => seconds(retry_us),
        Outcome::Allow | Outcome::Never => decision.reset_us.div_ceil(1_000_000),
    }
}
