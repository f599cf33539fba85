//! The answer to one request, before it is HTTP.

use std::sync::Arc;

use arrayvec::ArrayVec;
use tope_core::{Decision, Entry, Verdict};

use super::Budgets;
use super::receipt::Receipt;
use crate::charge::MAX_CHARGES;
use crate::policy::Policy;
use crate::store::Charged;

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
    /// Of a request that no limit applies to.
    pub(super) fn of_nothing(policy: Arc<Policy>, now_us: u64) -> Self {
        Self { policy, rows: ArrayVec::new(), receipt: None, allowed: true, order: 0, now_us }
    }

    pub(super) fn new(
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

    /// The same, refused at `row` for at least this wait.
    pub(super) fn deferred(mut self, row: usize, wait_us: u64) -> Self {
        self.allowed = false;
        self.rows[row].1 = self.rows[row].1.deferred(wait_us);
        self
    }

    /// Until when the request may wait in line that arrived at `arrived_us`, for which row, and how long that row has no
    /// room: nothing when it passes, and when some limit that refuses it lets nobody wait, or not for so long.
    pub fn patience(&self, arrived_us: u64, now_us: u64) -> Option<Patience> {
        if self.allowed || !self.policy.waits() {
            return None;
        }
        let mut patience: Option<Patience> = None;
        for (row, budget, decision) in self.refusing() {
            let until_us = arrived_us.saturating_add(self.policy.wait_us(budget)?);
            // When a place is free nobody knows; it is waited for as long as may be.
            let hint_us = decision.retry_us()?;
            let wait_us = if self.policy.budgets[usize::from(budget)].in_flight() { 0 } else { hint_us };
            if now_us.saturating_add(wait_us.max(1)) > until_us {
                return None;
            }
            let most = patience.get_or_insert(Patience { row, wait_us, until_us });
            if wait_us > most.wait_us {
                (most.row, most.wait_us) = (row, wait_us);
            }
            most.until_us = most.until_us.min(until_us);
        }
        patience
    }

    /// Whether the request passes.
    pub fn allowed(&self) -> bool {
        self.allowed
    }

    /// The rows that refuse it, each by its place, with its budget.
    pub(super) fn refusing(&self) -> impl Iterator<Item = (usize, u16, Decision)> {
        let enforced = |budget: u16| !self.policy.budgets[usize::from(budget)].shadow;
        let rows = self.rows.iter().enumerate().map(|(row, (budget, decision))| (row, *budget, *decision));
        rows.filter(move |(_, budget, decision)| !decision.allowed() && enforced(*budget))
    }

    /// Whether it is refused, and by nothing but limits to which the answers of others may give units back soon.
    pub fn awaits_others(&self) -> bool {
        let soon = |(_, budget, decision): (usize, u16, Decision)| {
            decision.retry_us().is_some() && self.policy.answers_soon(budget)
        };
        !self.allowed && self.policy.awaits_answers() && self.refusing().all(soon)
    }

    /// What it holds until its answer is known, with the rows that will say what is left.
    pub(super) fn open(&mut self) -> Option<(&mut Receipt, &mut [(u16, Decision)])> {
        Some((self.receipt.as_mut()?, &mut self.rows))
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

/// How a refused request may wait.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// The row that has no room for the longest time.
    pub row: usize,
    /// How long that is, if nobody else comes; 0 where nobody knows.
    pub wait_us: u64,
    /// Until when it may wait.
    pub until_us: u64,
}
