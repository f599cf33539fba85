//! The answer of one limit.

use crate::{Algorithm, Quota};

/// What happened to one charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The budget has room for the charge.
    Allow,
    /// Not yet: the same charge passes after this wait, if nothing else arrives meanwhile.
    Deny {
        /// The shortest wait, in microseconds; at least 1.
        retry_us: u64,
    },
    /// Never: the charge is larger than the budget when full.
    Never,
}

/// The answer of one limit: may it pass, what is left, and when to come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// Whole units left after this decision; 0 while the budget owes.
    pub remaining: u64,
    /// Microseconds until the whole budget is back, if nothing more arrives.
    pub reset_us: u64,
    /// The outcome in one word, which copies faster: 0 allows, [`NEVER`] is never, else the wait in microseconds.
    wait_us: u64,
    /// Microseconds until more is left than now; the token bucket has it in `reset_us` already.
    more_us: u64,
}

/// A wait that never ends. No real one is as long: a bucket holds less than 2^63 ticks and owes at most as many.
const NEVER: u64 = u64::MAX;

impl Decision {
    #[inline]
    pub(crate) const fn new(outcome: Outcome, remaining: u64, reset_us: u64, more_us: u64) -> Self {
        let wait_us = match outcome {
            Outcome::Allow => 0,
            Outcome::Deny { retry_us } => retry_us,
            Outcome::Never => NEVER,
        };
        Self { remaining, reset_us, wait_us, more_us }
    }

    /// Whether the charge passes, and if not, when.
    #[inline]
    pub const fn outcome(&self) -> Outcome {
        match self.wait_us {
            0 => Outcome::Allow,
            NEVER => Outcome::Never,
            retry_us => Outcome::Deny { retry_us },
        }
    }

    /// Whether the charge passes.
    #[inline]
    pub const fn allowed(&self) -> bool {
        self.wait_us == 0
    }

    /// The shortest wait in microseconds after which the same charge passes: 0 when it was allowed,
    /// `None` when it never will.
    #[inline]
    pub const fn retry_us(&self) -> Option<u64> {
        match self.wait_us {
            NEVER => None,
            retry_us => Some(retry_us),
        }
    }

    /// The same of a charge that is not let in before this wait, of at least a microsecond, is over: others came first. A
    /// longer wait stays as it is.
    #[must_use]
    pub const fn deferred(self, wait_us: u64) -> Self {
        let least = if wait_us == 0 { 1 } else { wait_us };
        let wait_us = if self.wait_us > least { self.wait_us } else { least };
        Self { wait_us, ..self }
    }

    /// Microseconds until at least one more unit is left than [`remaining`](Self::remaining) says; 0 when
    /// the budget is full. `quota` is the one that decided.
    pub fn more_us(&self, quota: &Quota) -> u64 {
        if quota.algorithm() != Algorithm::TokenBucket {
            return self.more_us;
        }
        let missing = quota.capacity().saturating_sub(self.remaining);
        if missing == 0 {
            return 0;
        }
        // All but one of the missing units come back after the next one; what is left of the reset is its time.
        let later =
            u128::from(missing - 1) * u128::from(quota.token().value()) / u128::from(quota.leak().value().max(1));
        self.reset_us.saturating_sub(u64::try_from(later).unwrap_or(u64::MAX))
    }
}
