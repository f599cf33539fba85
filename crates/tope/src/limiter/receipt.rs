//! What an admitted request holds until its answer is known, and what becomes of it.

use std::sync::Arc;

use smallvec::SmallVec;
use tope_core::Decision;

use super::holds::{Hold, Holds};
use super::line::Lines;
use crate::charge::Charge;
use crate::facts::{Price, Reply};
use crate::policy::{Due, Policy};
use crate::store::{Answer, Charged, Store, Taken};

/// The units that limits hold for one admitted request until they know its answer.
///
/// Each is settled once. What is still held when a receipt is dropped stays taken.
#[derive(Debug)]
pub(super) struct Receipt {
    policy: Arc<Policy>,
    held: SmallVec<[Held; 1]>,
    /// What was charged for an answer that said its price.
    charged: SmallVec<[(u16, u32); 1]>,
}

/// What became of what a row held.
pub(super) struct Settled {
    pub(super) row: usize,
    pub(super) budget: u16,
    /// What the answer said of its price, where that was no price.
    pub(super) unpriced: Option<Price>,
    /// What the bucket says now, where something changed and it is remembered.
    pub(super) left: Option<Decision>,
}

/// The units that one budget holds.
#[derive(Debug)]
struct Held {
    /// The place among the rows of the judgement.
    row: u16,
    budget: u16,
    units: u32,
    /// The answer is known to count.
    counts: bool,
    taken: Taken,
    /// The key and then the group of the charge.
    bytes: SmallVec<[u8; 64]>,
    key: usize,
    /// Who waits for it; `None` where nobody may.
    hold: Option<Hold>,
}

impl Receipt {
    /// What is held of these charges, which were all taken; nothing where no limit waits for the answer.
    pub(super) fn new(
        policy: &Arc<Policy>,
        budgets: &[u16],
        charges: &[Charge<'_>],
        charged: &Charged,
        holds: &Arc<Holds>,
    ) -> Option<Box<Self>> {
        if !charged.allowed || !policy.awaits_answers() {
            return None;
        }
        let mut held = SmallVec::new();
        for (row, ((budget, charge), answered)) in budgets.iter().zip(charges).zip(&charged.answers).enumerate() {
            if charge.cost == 0 || !answered.decision.allowed() || !policy.awaits(*budget) {
                continue;
            }
            let mut bytes = SmallVec::from_slice(charge.key);
            bytes.extend_from_slice(charge.group);
            let row = u16::try_from(row).expect("a request has at most sixteen charges");
            let (budget, units, taken, key) = (*budget, charge.cost, answered.taken, charge.key.len());
            let hold = policy.answers_soon(budget).then(|| holds.hold(charge));
            held.push(Held { row, budget, units, counts: false, taken, bytes, key, hold });
        }
        (!held.is_empty()).then(|| Box::new(Self { policy: Arc::clone(policy), held, charged: SmallVec::new() }))
    }

    /// Whether something is still held.
    pub(super) fn is_open(&self) -> bool {
        !self.held.is_empty()
    }

    /// What budgets were charged whose price the answer says, as far as it has.
    pub(super) fn charged(&self) -> &[(u16, u32)] {
        &self.charged
    }

    /// Whether units of this budget are held.
    pub(super) fn holds(&self, budget: u16) -> bool {
        self.held.iter().any(|held| held.budget == budget)
    }

    /// Settles in `store` what `reply` decides, and says what became of each row that is decided.
    pub(super) fn hear(
        &mut self,
        store: &impl Store,
        lines: &Lines,
        reply: Reply<'_>,
        now_us: u64,
        mut said: impl FnMut(Settled),
    ) {
        let (policy, charged) = (&self.policy, &mut self.charged);
        self.held.retain(|held| {
            let Some(due) = policy.due(held.budget, &mut held.counts, reply) else { return true };
            let (units, unpriced) = match due {
                Due::Nothing => (0, None),
                Due::Held => (held.units, None),
                Due::Units(units) => (units, None),
                Due::Unpriced(price) => (held.units, Some(price)),
            };
            let delta = i64::from(units) - i64::from(held.units);
            let left = if delta == 0 { None } else { held.settle(store, policy, now_us, delta) };
            if delta < 0 && policy.wait_us(held.budget).is_some() {
                lines.call(&held.charge(policy));
            }
            if policy.is_priced(held.budget) {
                charged.push((held.budget, units));
            }
            said(Settled { row: usize::from(held.row), budget: held.budget, unpriced, left });
            if let Some(hold) = &mut held.hold {
                hold.gave_back = delta < 0;
            }
            false
        });
    }
}

impl Held {
    /// The charge that it was taken for.
    fn charge<'a>(&'a self, policy: &'a Policy) -> Charge<'a> {
        let (key, group) = self.bytes.split_at(self.key);
        Charge { budget: &policy.budgets[usize::from(self.budget)], key, group, cost: self.units }
    }

    fn settle(&self, store: &impl Store, policy: &Policy, now_us: u64, delta: i64) -> Option<Decision> {
        match store.settle(&self.charge(policy), self.taken, now_us, delta) {
            // A store that fails to give back costs its owner units, and never adds any.
            Answer::Ready(settled) => settled.ok().flatten(),
            Answer::Pending(_) => None,
        }
    }
}
