//! Where buckets live. Two verbs, `charge` and `settle`; both answer at once (memory) or later (a server).
//!
//! | room | what is in it |
//! |---|---|
//! | [`memory`] | a bounded table in this process |
//!
//! A store knows budgets, keys and times. It does not know policies, clients or HTTP.

pub mod memory;

use std::fmt;
use std::future::Future;

use arrayvec::ArrayVec;
use tope_core::Decision;

use crate::charge::{Budget, Charge, MAX_CHARGES};

/// An answer that is there at once, or comes later.
#[derive(Debug)]
pub enum Answer<T, F> {
    /// Here it is.
    Ready(T),
    /// It comes when this future ends.
    Pending(F),
}

/// What a store says of one charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// May it pass, what is left, when to come back. In a refused request: its own answer with nothing taken.
    pub decision: Decision,
    /// From which bucket, and when, if anything was taken: what [`Store::settle`] wants to know of it.
    pub taken: Taken,
}

/// Where and when a charge was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The time at which the bucket judged it, in Unix microseconds; never before the bucket's last change.
    pub at_us: u64,
    /// It was judged by the bucket of its [`group`](Charge::group), because there was no room for its own.
    pub shared: bool,
}

impl Taken {
    /// Taken from a bucket of its own.
    pub const fn at(at_us: u64) -> Self {
        Self { at_us, shared: false }
    }
}

/// What a store says of all charges of one request.
#[derive(Clone, Debug, Default)]
pub struct Charged {
    /// Whether every enforced budget had room. Only then was anything taken.
    pub allowed: bool,
    /// One answer for each charge, in their order.
    pub answers: ArrayVec<Answered, MAX_CHARGES>,
    /// The place of this request among all that the store judged, where it keeps count; else 0. Two requests on one
    /// bucket are in the order in which the bucket judged them.
    pub order: u64,
}

/// Where buckets live.
pub trait Store: Send + Sync + 'static {
    /// What [`charge`](Self::charge) answers when it can't at once.
    type Charging: Future<Output = Result<Charged, StoreError>> + Send + Unpin;
    /// What [`settle`](Self::settle) answers when it can't at once.
    type Settling: Future<Output = Result<Option<Decision>, StoreError>> + Send + Unpin;

    /// Makes the budgets of a policy known before its first charge: gives each its number. Buckets of budgets with
    /// the same name keep the units used.
    ///
    /// # Errors
    /// [`StoreError::TooManyQuotas`] when the store can't tell more quotas apart; then nothing has changed.
    fn adopt(&self, budgets: &mut [Budget]) -> Result<(), StoreError>;

    /// Takes all charges or none: judges every one at `now_us`, then takes them if every enforced budget has room. A
    /// shadow budget that refuses is not charged and stops nobody. A store that is shared uses its own clock.
    ///
    /// What is ready at once is written to `charged`, which is large and should be moved rarely.
    fn charge(
        &self,
        charges: &[Charge<'_>],
        now_us: u64,
        charged: &mut Charged,
    ) -> Answer<Result<(), StoreError>, Self::Charging>;

    /// Corrects by `delta` units at `now_us` what `charge` took ([`Answered::taken`]): never above full, at most one
    /// capacity owing, nothing when the window of the admission is over. The charge's cost is not looked at. Answers
    /// what is left now, or nothing when the bucket is not remembered.
    ///
    /// Whoever calls it need not wait: a store that answers later has sent it when this returns.
    fn settle(
        &self,
        charge: &Charge<'_>,
        taken: Taken,
        now_us: u64,
        delta: i64,
    ) -> Answer<Result<Option<Decision>, StoreError>, Self::Settling>;
}

/// What goes wrong in a store. It is never "not yet": that is a decision.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// The store tells at most so many different quotas apart, those of recent policies included.
    TooManyQuotas(usize),
    /// There is no randomness to be had for the seed of the hash.
    NoSeed(getrandom::Error),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyQuotas(most) => {
                write!(f, "the policy and those before it have more than {most} different quotas in use")
            }
            Self::NoSeed(_) => f.write_str("the system gives no random numbers for the seed of the hash"),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::TooManyQuotas(_) => None,
            Self::NoSeed(error) => Some(error),
        }
    }
}

impl<T: Store> Store for std::sync::Arc<T> {
    type Charging = T::Charging;
    type Settling = T::Settling;

    fn adopt(&self, budgets: &mut [Budget]) -> Result<(), StoreError> {
        (**self).adopt(budgets)
    }

    #[inline]
    fn charge(
        &self,
        charges: &[Charge<'_>],
        now_us: u64,
        charged: &mut Charged,
    ) -> Answer<Result<(), StoreError>, Self::Charging> {
        (**self).charge(charges, now_us, charged)
    }

    fn settle(
        &self,
        charge: &Charge<'_>,
        taken: Taken,
        now_us: u64,
        delta: i64,
    ) -> Answer<Result<Option<Decision>, StoreError>, Self::Settling> {
        (**self).settle(charge, taken, now_us, delta)
    }
}
