//! The one pass: facts to charges, charges to the store, its answers to a judgement. Written once for stores that
//! answer at once and for those that answer later.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arc_swap::ArcSwap;
use arrayvec::ArrayVec;
use tope_core::{Decision, Entry, Verdict};

use crate::charge::MAX_CHARGES;
use crate::facts::Facts;
use crate::policy::Policy;
use crate::store::{Answer, Charged, Store, StoreError};

/// A policy in force over a store. Cheap to share behind an [`Arc`].
#[derive(Debug)]
pub struct Limiter<S> {
    store: S,
    policy: ArcSwap<Policy>,
}

impl<S: Store> Limiter<S> {
    /// Puts `policy` in force over `store`.
    ///
    /// # Errors
    /// When the store can't hold the policy's budgets.
    pub fn new(store: S, mut policy: Policy) -> Result<Self, StoreError> {
        store.adopt(&mut policy.budgets)?;
        Ok(Self { store, policy: ArcSwap::from_pointee(policy) })
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
        if charges.is_empty() {
            return Answer::Ready(Ok(Judgement { policy, rows: ArrayVec::new(), allowed: true, order: 0, now_us }));
        }
        let budgets = charges.budgets().collect();
        let mut charged = Charged::default();
        let answer = self.store.charge(&charges.resolve(&policy), now_us, &mut charged);
        match answer {
            Answer::Ready(done) => Answer::Ready(done.map(|()| Judgement::new(policy, budgets, &charged, now_us))),
            Answer::Pending(charging) => Answer::Pending(Judging { charging, parts: Some((policy, budgets)), now_us }),
        }
    }
}

type Budgets = ArrayVec<u16, MAX_CHARGES>;

/// A judgement that waits for its store.
#[derive(Debug)]
pub struct Judging<F> {
    charging: F,
    parts: Option<(Arc<Policy>, Budgets)>,
    now_us: u64,
}

impl<F: Future<Output = Result<Charged, StoreError>> + Unpin> Future for Judging<F> {
    type Output = Result<Judgement, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let charged = ready!(Pin::new(&mut self.charging).poll(context));
        let now_us = self.now_us;
        let (policy, budgets) = self.parts.take().expect("a future is not polled after its end");
        Poll::Ready(charged.map(|charged| Judgement::new(policy, budgets, &charged, now_us)))
    }
}

/// The answer to one request, with the policy that gave it.
#[derive(Clone, Debug)]
pub struct Judgement {
    policy: Arc<Policy>,
    rows: ArrayVec<(u16, Decision), MAX_CHARGES>,
    allowed: bool,
    order: u64,
    now_us: u64,
}

impl Judgement {
    fn new(policy: Arc<Policy>, budgets: Budgets, charged: &Charged, now_us: u64) -> Self {
        let decisions = charged.answers.iter().map(|answered| answered.decision);
        let rows = budgets.into_iter().zip(decisions).collect();
        Self { policy, rows, allowed: charged.allowed, order: charged.order, now_us }
    }

    /// Whether the request passes.
    pub fn allowed(&self) -> bool {
        self.allowed
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
