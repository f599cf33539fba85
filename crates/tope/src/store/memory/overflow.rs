//! Where newcomers are counted when every place that they could have is held by one with more debt: 256 buckets a
//! budget, chosen by a hash of the address block, so that a flood of new keys is limited as a group.

use std::collections::{HashMap, HashSet};

use super::table::Place;

/// Buckets of one budget.
const CELLS: usize = 256;

/// The overflow buckets of the policy in force, and of the one before it: requests under way may still be under that.
#[derive(Default)]
pub(super) struct Overflow {
    budgets: HashMap<(u64, u16), Cells>,
    adoptions: u64,
}

struct Cells {
    places: Box<[Place; CELLS]>,
    adopted: u64,
}

impl Overflow {
    /// Makes room for these budgets, each a label and a number. One whose quota has changed begins with the places of
    /// the one it replaces, which are carried to the new quota when they are next looked at.
    pub(super) fn adopt(&mut self, budgets: &HashSet<(u64, u16)>) {
        self.adoptions += 1;
        let adopted = self.adoptions;
        for budget in budgets {
            if let Some(cells) = self.budgets.get_mut(budget) {
                cells.adopted = adopted;
                continue;
            }
            let replaced = |(old, _): &(&(u64, u16), &Cells)| old.0 == budget.0 && !budgets.contains(old);
            let before = self.budgets.iter().filter(replaced).max_by_key(|(_, cells)| cells.adopted);
            let places = before.map_or_else(|| Box::new([Place::default(); CELLS]), |(_, cells)| cells.places.clone());
            self.budgets.insert(*budget, Cells { places, adopted });
        }
        self.budgets.retain(|_, cells| cells.adopted + 1 >= adopted);
    }

    /// The bucket of a group; `None` when the budget was not adopted lately.
    pub(super) fn cell(&mut self, label: u64, number: u16, group: u64) -> Option<&mut Place> {
        let cells = self.budgets.get_mut(&(label, number))?;
        Some(&mut cells.places[(group >> 56) as usize])
    }

    /// Numbers of quotas that some bucket here was written under.
    pub(super) fn numbers(&self) -> HashSet<u16> {
        let places = self.budgets.values().flat_map(|cells| cells.places.iter());
        places.filter(|place| place.taken()).map(Place::number).collect()
    }
}
