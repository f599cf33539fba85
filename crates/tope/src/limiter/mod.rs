//! The one pass: facts to charges, charges to the store, its answers to a judgement. Written once for stores that
//! answer at once and for those that answer later.
//!
//! | room | what is in it |
//! |---|---|
//! | `mod` | the pass |
//! | `judgement` | what it ends in |
//! | `receipt` | what an admitted request holds until its answer is known |
//! | `holds` | requests that wait for others to be decided |
//! | `line` | requests that wait in line for a budget to have room again |

mod holds;
mod judgement;
mod line;
mod receipt;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arc_swap::ArcSwap;
use arrayvec::ArrayVec;
use smallvec::SmallVec;

use crate::charge::MAX_CHARGES;
use crate::facts::{Facts, Price, Reply};
use crate::policy::{Charges, Policy};
use crate::store::{Answer, Charged, Store, StoreError};

use self::holds::Holds;
pub use self::holds::Ticket;
pub use self::judgement::Judgement;
pub use self::judgement::Patience;
use self::line::Lines;
pub use self::line::Place;
use self::receipt::Receipt;

/// A policy in force over a store. Cheap to share behind an [`Arc`].
#[derive(Debug)]
pub struct Limiter<S> {
    store: S,
    policy: ArcSwap<Policy>,
    holds: Arc<Holds>,
    lines: Arc<Lines>,
}

impl<S: Store> Limiter<S> {
    /// Puts `policy` in force over `store`.
    ///
    /// # Errors
    /// When the store can't hold the policy's budgets.
    pub fn new(store: S, mut policy: Policy) -> Result<Self, StoreError> {
        store.adopt(&mut policy.budgets)?;
        let (holds, lines) = (Arc::new(Holds::new()), Arc::new(Lines::new()));
        Ok(Self { store, policy: ArcSwap::from_pointee(policy), holds, lines })
    }

    /// Replaces the policy; units used are kept. Requests that began under the old one end under it.
    ///
    /// # Errors
    /// When the store can't hold the policy's budgets; then the old one stays in force.
    pub fn enforce(&self, mut policy: Policy) -> Result<(), StoreError> {
        self.store.adopt(&mut policy.budgets)?;
        self.policy.store(Arc::new(policy));
        Ok(())
    }

    /// The policy in force, for the length of one request.
    pub fn policy(&self) -> Arc<Policy> {
        self.policy.load_full()
    }

    /// Where the buckets live.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Judges one request under `policy`: all its limits or none take their units.
    pub fn judge(
        &self,
        policy: Arc<Policy>,
        facts: &Facts<'_>,
        now_us: u64,
    ) -> Answer<Result<Judgement, StoreError>, Judging<S::Charging>> {
        let charges = policy.charges(facts);
        self.judge_charges(policy, &charges, now_us)
    }

    /// The same for a request whose charges are known already.
    #[inline]
    pub fn judge_charges(
        &self,
        policy: Arc<Policy>,
        charges: &Charges,
        now_us: u64,
    ) -> Answer<Result<Judgement, StoreError>, Judging<S::Charging>> {
        if charges.is_empty() {
            return Answer::Ready(Ok(Judgement::of_nothing(policy, now_us)));
        }
        let mut charged = Charged::default();
        let resolved = charges.resolve(&policy);
        match self.store.charge(&resolved, now_us, &mut charged) {
            Answer::Ready(done) => {
                let budgets: Budgets = charges.budgets().collect();
                let receipt = Receipt::new(&policy, &budgets, &resolved, &charged, &self.holds);
                drop(resolved);
                Answer::Ready(done.map(|()| Judgement::new(policy, &budgets, &charged, receipt, now_us)))
            }
            Answer::Pending(charging) => {
                drop(resolved);
                let parts = Some((policy, Box::new(charges.clone())));
                let deferred = None;
                Answer::Pending(Judging { charging, parts, deferred, holds: Arc::clone(&self.holds), now_us })
            }
        }
    }

    /// Refuses a request for which others wait that came before: nothing is taken, and the charge at `row` passes in
    /// `wait_us` at the earliest.
    pub fn defer(
        &self,
        policy: Arc<Policy>,
        charges: &Charges,
        (row, wait_us): (usize, u64),
        now_us: u64,
    ) -> Answer<Result<Judgement, StoreError>, Judging<S::Charging>> {
        let mut charged = Charged::default();
        let mut peeks = charges.resolve(&policy);
        peeks.iter_mut().for_each(|charge| charge.cost = 0);
        match self.store.charge(&peeks, now_us, &mut charged) {
            Answer::Ready(done) => {
                drop(peeks);
                let budgets: Budgets = charges.budgets().collect();
                let judged = done.map(|()| Judgement::new(policy, &budgets, &charged, None, now_us));
                Answer::Ready(judged.map(|judgement| judgement.deferred(row, wait_us)))
            }
            Answer::Pending(charging) => {
                drop(peeks);
                let (parts, deferred) = (Some((policy, Box::new(charges.clone()))), Some((row, wait_us)));
                Answer::Pending(Judging { charging, parts, deferred, holds: Arc::clone(&self.holds), now_us })
            }
        }
    }

    /// The row of a request for whose budget others wait already, so that it can't go before them, and how long its limit
    /// lets a request wait.
    pub fn busy(&self, policy: &Policy, charges: &Charges) -> Option<(usize, u64)> {
        if self.lines.are_empty() {
            return None;
        }
        let resolved = charges.resolve(policy);
        let mut rows = charges.budgets().zip(&resolved).enumerate();
        rows.find_map(|(row, (budget, charge))| {
            let wait_us = policy.wait_us(budget)?;
            (!charge.budget.shadow && self.lines.is_busy(charge)).then_some((row, wait_us))
        })
    }

    /// A place in line for the charge at `row`, which has room in `wait_us` if nobody is before it.
    ///
    /// # Errors
    /// How long it would have to wait, in microseconds: beyond `deadline_us`, or in a line that is too long already.
    pub fn join(
        &self,
        policy: &Policy,
        charges: &Charges,
        (row, wait_us): (usize, u64),
        now_us: u64,
        deadline_us: u64,
    ) -> Result<Place, u64> {
        self.lines.join(&charges.resolve(policy)[row], now_us, wait_us, deadline_us)
    }

    /// Settles what the answer decides of what an admitted request holds: units that are not due are given back. What
    /// the judgement says is left follows. Nothing is settled twice.
    pub fn hear(&self, judgement: &mut Judgement, reply: Reply<'_>, now_us: u64) -> Unpriced {
        let mut unpriced = Unpriced::new();
        let Some((receipt, rows)) = judgement.open() else { return unpriced };
        receipt.hear(&self.store, &self.lines, reply, now_us, |settled| {
            if let Some(left) = settled.left {
                rows[settled.row].1 = left;
            }
            unpriced.extend(settled.unpriced.map(|price| (settled.budget, price)));
        });
        unpriced
    }

    /// A place in the queue for a request that is refused by nothing but units that others hold until their answers are
    /// known: when the ticket is ready it may be judged again. `None`: the refusal stands. `before` is the ticket with
    /// which this judgement was made, if it was not the first.
    ///
    /// The last holder may go between a judgement and this question, so that there is one more judgement at once.
    pub fn queue(&self, judgement: &Judgement, charges: &Charges, before: Option<&Ticket>) -> Option<Ticket> {
        if !judgement.awaits_others() {
            return None;
        }
        let resolved = charges.resolve(judgement.policy());
        let mut held = None;
        for (row, ..) in judgement.refusing() {
            if !self.holds.is_held(&resolved[row]) {
                return Ticket::at_once(before);
            }
            held = Some(&resolved[row]);
        }
        self.holds.queue(held?)
    }
}

/// Budgets whose price an answer should have said, and what it said instead: they were charged what was held.
pub type Unpriced = SmallVec<[(u16, Price); 1]>;

type Budgets = ArrayVec<u16, MAX_CHARGES>;

/// A judgement that waits for its store.
#[derive(Debug)]
pub struct Judging<F> {
    charging: F,
    parts: Option<(Arc<Policy>, Box<Charges>)>,
    /// What is only looked at, because others came before: for which row, and how long at least.
    deferred: Option<(usize, u64)>,
    holds: Arc<Holds>,
    now_us: u64,
}

impl<F: Future<Output = Result<Charged, StoreError>> + Unpin> Future for Judging<F> {
    type Output = Result<Judgement, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let charged = ready!(Pin::new(&mut self.charging).poll(context));
        let now_us = self.now_us;
        let (policy, charges) = self.parts.take().expect("a future is not polled after its end");
        Poll::Ready(charged.map(|charged| {
            let budgets: Budgets = charges.budgets().collect();
            if let Some((row, wait_us)) = self.deferred {
                return Judgement::new(policy, &budgets, &charged, None, now_us).deferred(row, wait_us);
            }
            let receipt = Receipt::new(&policy, &budgets, &charges.resolve(&policy), &charged, &self.holds);
            Judgement::new(policy, &budgets, &charged, receipt, now_us)
        }))
    }
}
