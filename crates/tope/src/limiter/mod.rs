//! The one pass: facts to charges, charges to the store, its answers to a judgement. Written once for stores that
//! answer at once and for those that answer later.
//!
//! | room | what is in it |
//! |---|---|
//! | `mod` | the pass, and the judgement it ends in |
//! | `receipt` | what an admitted request holds until its answer is known |
//! | `holds` | requests that wait for others to be decided |

mod holds;
mod receipt;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arc_swap::ArcSwap;
use arrayvec::ArrayVec;
use smallvec::SmallVec;
use tope_core::{Decision, Entry, Verdict};

use crate::charge::MAX_CHARGES;
use crate::facts::{Facts, Price, Reply};
use crate::policy::{Charges, Policy};
use crate::store::{Answer, Charged, Store, StoreError};

use self::holds::Holds;
pub use self::holds::Ticket;
use self::receipt::Receipt;

/// A policy in force over a store. Cheap to share behind an [`Arc`].
#[derive(Debug)]
pub struct Limiter<S> {
    store: S,
    policy: ArcSwap<Policy>,
    holds: Arc<Holds>,
}

impl<S: Store> Limiter<S> {
    /// Puts `policy` in force over `store`.
    ///
    /// # Errors
    /// When the store can't hold the policy's budgets.
    pub fn new(store: S, mut policy: Policy) -> Result<Self, StoreError> {
        store.adopt(&mut policy.budgets)?;
        Ok(Self { store, policy: ArcSwap::from_pointee(policy), holds: Arc::new(Holds::new()) })
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
            let rows = ArrayVec::new();
            return Answer::Ready(Ok(Judgement { policy, rows, receipt: None, allowed: true, order: 0, now_us }));
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
                Answer::Pending(Judging { charging, parts, holds: Arc::clone(&self.holds), now_us })
            }
        }
    }

    /// Settles what the answer decides of what an admitted request holds: units that are not due are given back. What
    /// the judgement says is left follows. Nothing is settled twice.
    pub fn hear(&self, judgement: &mut Judgement, reply: Reply<'_>, now_us: u64) -> Unpriced {
        let mut unpriced = Unpriced::new();
        let Judgement { rows, receipt: Some(receipt), .. } = judgement else { return unpriced };
        receipt.hear(&self.store, reply, now_us, |settled| {
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
            let receipt = Receipt::new(&policy, &budgets, &charges.resolve(&policy), &charged, &self.holds);
            Judgement::new(policy, &budgets, &charged, receipt, now_us)
        }))
    }
}

/// The answer to one request, with the policy that gave it.
#[derive(Debug)]
pub struct Judgement {
    policy: Arc<Policy>,
    rows: ArrayVec<(u16, Decision), MAX_CHARGES>,
    receipt: Option<Box<Receipt>>,
    allowed: bool,
    order: u64,
    now_us: u64,
}

impl Judgement {
    fn new(
        policy: Arc<Policy>,
        budgets: &Budgets,
        charged: &Charged,
        receipt: Option<Box<Receipt>>,
        now_us: u64,
    ) -> Self {
        let decisions = charged.answers.iter().map(|answered| answered.decision);
        let rows = budgets.iter().copied().zip(decisions).collect();
        Self { policy, rows, receipt, allowed: charged.allowed, order: charged.order, now_us }
    }

    /// Whether the request passes.
    pub fn allowed(&self) -> bool {
        self.allowed
    }

    /// The rows that refuse it, each by its place, with its budget.
    fn refusing(&self) -> impl Iterator<Item = (usize, u16, Decision)> {
        let enforced = |budget: u16| !self.policy.budgets[usize::from(budget)].shadow;
        let rows = self.rows.iter().enumerate().map(|(row, (budget, decision))| (row, *budget, *decision));
        rows.filter(move |(_, budget, decision)| !decision.allowed() && enforced(*budget))
    }

    /// Whether it is refused, and by nothing but limits to which the answers of others may give units back soon.
    pub(crate) fn awaits_others(&self) -> bool {
        let soon = |(_, budget, decision): (usize, u16, Decision)| {
            decision.retry_us().is_some() && self.policy.answers_soon(budget)
        };
        !self.allowed && self.policy.awaits_answers() && self.refusing().all(soon)
    }

    /// Whether the request holds units until its answer is known.
    pub fn is_open(&self) -> bool {
        self.receipt.as_ref().is_some_and(|receipt| receipt.is_open())
    }

    /// Whether it holds units of this budget until then.
    pub fn holds(&self, budget: u16) -> bool {
        self.receipt.as_ref().is_some_and(|receipt| receipt.holds(budget))
    }

    /// What budgets were charged whose price the answer says, as far as it has.
    pub fn charged(&self) -> &[(u16, u32)] {
        self.receipt.as_ref().map_or(&[], |receipt| receipt.charged())
    }

    /// The policy that gave it.
    pub fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// The places of the budgets in the policy and what each decided, in the order of the file.
    pub fn rows(&self) -> &[(u16, Decision)] {
        &self.rows
    }

    /// The place of this request among all that the store judged, where it keeps count; else 0.
    pub fn order(&self) -> u64 {
        self.order
    }

    /// When the request was judged, in Unix microseconds.
    pub fn now_us(&self) -> u64 {
        self.now_us
    }

    /// The entries of the verdict, which borrow names and quotas: `Verdict::new(&judgement.entries())`.
    pub fn entries(&self) -> ArrayVec<Entry<'_>, MAX_CHARGES> {
        let entry = |(budget, decision): &(u16, Decision)| {
            let budget = &self.policy.budgets[usize::from(*budget)];
            Entry {
                name: &budget.name,
                quota: &budget.quota,
                decision: *decision,
                enforced: !budget.shadow,
                policy_item: &budget.policy_item,
            }
        };
        self.rows.iter().map(entry).collect()
    }

    /// Looks at the verdict.
    pub fn with_verdict<R>(&self, look: impl FnOnce(Verdict<'_>) -> R) -> R {
        look(Verdict::new(&self.entries()))
    }

    /// The place of the budget that refused with the longest wait; `None` when the request passes.
    pub fn refused_by(&self) -> Option<u16> {
        let entries = self.entries();
        let refused = Verdict::new(&entries).refused_by()?;
        let at = entries.iter().position(|entry| std::ptr::eq(entry, refused))?;
        Some(self.rows[at].0)
    }
}
