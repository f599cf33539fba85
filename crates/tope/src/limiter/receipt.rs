//! What an admitted request holds until its answer is known, and what becomes of it.

use std::sync::Arc;

use smallvec::SmallVec;
use tope_core::Decision;

use super::holds::{Hold, Holds};
use crate::charge::Charge;
use crate::facts::Reply;
use crate::policy::Policy;
use crate::store::{Answer, Charged, Store, Taken};

/// The units that limits hold for one admitted request until they know its answer.
///
/// Each is settled once. What is still held when a receipt is dropped stays taken.
#[derive(Debug)]
pub struct Receipt {
    policy: Arc<Policy>,
    held: SmallVec<[Held; 1]>,
}

/// The units that one budget holds.
#[derive(Debug)]
struct Held {
    /// The place among the rows of the judgement.
    row: u16,
    budget: u16,
    units: u32,
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
            held.push(Held { row, budget, units, taken, bytes, key, hold });
        }
        (!held.is_empty()).then(|| Box::new(Self { policy: Arc::clone(policy), held }))
    }

    /// Settles in `store` what `reply` decides, and says of each row what is left now. Whether something is still held.
    pub(super) fn hear(
        &mut self,
        store: &impl Store,
        reply: Reply<'_>,
        now_us: u64,
        mut said: impl FnMut(usize, Decision),
    ) -> bool {
        let policy = &self.policy;
        self.held.retain(|held| {
            let Some(due) = policy.due(held.budget, held.units, reply) else { return true };
            let delta = i64::from(due) - i64::from(held.units);
            if delta != 0
                && let Some(decision) = held.settle(store, policy, now_us, delta)
            {
                said(usize::from(held.row), decision);
            }
            if let Some(hold) = &mut held.hold {
                hold.gave_back = delta < 0;
            }
            false
        });
        !self.held.is_empty()
    }
}

impl Held {
    fn settle(&self, store: &impl Store, policy: &Policy, now_us: u64, delta: i64) -> Option<Decision> {
        let (key, group) = self.bytes.split_at(self.key);
        let charge = Charge { budget: &policy.budgets[usize::from(self.budget)], key, group, cost: self.units };
        match store.settle(&charge, self.taken, now_us, delta) {
            // A store that fails to give back costs its owner units, and never adds any.
            Answer::Ready(settled) => settled.ok().flatten(),
            Answer::Pending(_) => None,
        }
    }
}
