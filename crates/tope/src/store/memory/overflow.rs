//! Where newcomers are counted when every place that they could have is held by one with more debt: 256 buckets a
//! budget, chosen by a hash of the address block, so that a flood of new keys is limited as a group.

use std::collections::HashMap;

use super::table::Place;

/// Buckets of one budget.
const CELLS: usize = 256;

/// The overflow buckets of all budgets of the policy in force.
#[derive(Default)]
pub(super) struct Overflow {
    budgets: HashMap<(u64, u16), Box<[Place; CELLS]>>,
}

impl Overflow {
    /// Makes room for these budgets and forgets those of other policies.
    pub(super) fn adopt(&mut self, budgets: impl Iterator<Item = (u64, u16)>) {
        let mut before = std::mem::take(&mut self.budgets);
        for budget in budgets {
            let cells = before.remove(&budget).unwrap_or_else(|| Box::new([Place::default(); CELLS]));
            self.budgets.insert(budget, cells);
        }
    }

    /// The bucket of a group; `None` when the budget was never adopted.
    pub(super) fn cell(&mut self, label: u64, number: u16, group: u64) -> Option<&mut Place> {
        let cells = self.budgets.get_mut(&(label, number))?;
        Some(&mut cells[(group >> 56) as usize])
    }
}
