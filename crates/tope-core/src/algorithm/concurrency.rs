//! At most so many in flight: a [`Log`] of those under way, each moment of admission with its places.
//!
//! Whoever ends frees its places with [`settle`](super::sliding_log::settle), at the moment of its admission. A place
//! that nobody frees is free again after the quota's hold, which is its period, so it is the sliding log of N units a
//! hold time; `commit`, `settle`, `requota` and `full_at` are those of [`sliding_log`].
//!
//! Nobody knows when a place will be free: what is told to whoever must wait is [`HINT_US`] at most.

use super::sliding_log::{self, Log};
use crate::{Decision, Outcome, Quota};

/// The longest wait that a client is told, in microseconds: a second, after which it may ask again.
pub const HINT_US: u64 = 1_000_000;

/// Judges `cost` places at `now_us`. Waits are hints: when a place is free is known by those who have them.
pub fn step(quota: &Quota, log: &impl Log, now_us: u64, cost: u32) -> Decision {
    let decision = sliding_log::step(quota, log, now_us, cost);
    let hint = |us: u64| us.min(HINT_US);
    let outcome = match decision.outcome() {
        Outcome::Deny { retry_us } => Outcome::Deny { retry_us: hint(retry_us) },
        other => other,
    };
    Decision::new(outcome, decision.remaining, hint(decision.reset_us), hint(decision.more_us(quota)))
}
