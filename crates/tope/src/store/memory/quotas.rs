//! The quotas that places are written under, by number: those of the policy in force and of those before it, for as
//! long as a bucket remembers them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tope_core::Quota;

use super::sync::{RwLock, RwLockReadGuard};
use super::table::NUMBERS;
use crate::store::StoreError;

/// One quota with the edges of its calendar.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) quota: Quota,
    pub(super) edges: Arc<[u64]>,
    /// The adoption that last asked for it; 0: the number is free.
    adopted: u64,
}

/// All quotas that have a number.
pub(super) struct Quotas(RwLock<Numbered>);

#[derive(Default)]
pub(super) struct Numbered {
    rows: Vec<Known>,
    adoptions: u64,
}

impl Numbered {
    pub(super) fn at(&self, number: u16) -> &Known {
        &self.rows[usize::from(number)]
    }

    /// All rows, by number.
    pub(super) fn rows(&self) -> &[Known] {
        &self.rows
    }
}

impl Quotas {
    /// Known quotas, in the order of their numbers.
    pub(super) fn new(rows: Vec<(Quota, Arc<[u64]>)>) -> Self {
        let rows = rows.into_iter().map(|(quota, edges)| Known { quota, edges, adopted: 1 }).collect();
        Self(RwLock::new(Numbered { rows, adoptions: 1 }))
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, Numbered> {
        self.0.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Gives each of these quotas its number. When numbers run out, those go that were asked for neither by the last
    /// adoption nor by this one and that `in_use` doesn't name; it locks lines, so it is asked before anything is
    /// locked here.
    pub(super) fn adopt(
        &self,
        wanted: &[(Quota, Arc<[u64]>)],
        in_use: impl FnOnce() -> HashSet<u16>,
    ) -> Result<Vec<u16>, StoreError> {
        let scarce = self.read().rows.len() + wanted.len() > NUMBERS;
        let used = if scarce { in_use() } else { HashSet::new() };
        let mut numbered = self.0.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let adoption = numbered.adoptions + 1;
        let mut known: HashMap<Quota, Vec<usize>> = HashMap::new();
        for (number, row) in numbered.rows.iter().enumerate().filter(|(_, row)| row.adopted > 0) {
            known.entry(row.quota).or_default().push(number);
        }
        let mut fresh: Vec<Known> = Vec::new();
        let base = numbered.rows.len();
        let mut places = Vec::with_capacity(wanted.len());
        for (quota, edges) in wanted {
            let of = |at: usize| if at < base { &numbered.rows[at].edges } else { &fresh[at - base].edges };
            let same = |at: &&usize| Arc::ptr_eq(of(**at), edges) || of(**at) == edges;
            let place = known.get(quota).and_then(|rows| rows.iter().find(same)).copied();
            places.push(place.unwrap_or_else(|| {
                let place = base + fresh.len();
                fresh.push(Known { quota: *quota, edges: Arc::clone(edges), adopted: adoption });
                known.entry(*quota).or_default().push(place);
                place
            }));
        }
        let kept: HashSet<usize> = places.iter().copied().collect();
        let mut free = if scarce {
            let idle = |(number, row): &(usize, &Known)| {
                row.adopted + 1 < adoption
                    && !kept.contains(number)
                    && !u16::try_from(*number).is_ok_and(|n| used.contains(&n))
            };
            numbered.rows.iter().enumerate().filter(idle).map(|(number, _)| number).collect()
        } else {
            Vec::new()
        };
        if base + fresh.len() - free.len().min(fresh.len()) > NUMBERS {
            return Err(StoreError::TooManyQuotas(NUMBERS));
        }
        // From here on nothing fails.
        let mut moved = Vec::with_capacity(fresh.len());
        for row in fresh {
            if let Some(number) = free.pop() {
                numbered.rows[number] = row;
                moved.push(number);
            } else {
                numbered.rows.push(row);
                moved.push(numbered.rows.len() - 1);
            }
        }
        numbered.adoptions = adoption;
        let number = |place: usize| if place < base { place } else { moved[place - base] };
        let numbers: Vec<usize> = places.into_iter().map(number).collect();
        for number in &numbers {
            numbered.rows[*number].adopted = adoption;
        }
        Ok(numbers.into_iter().map(|number| u16::try_from(number).expect("below 2,048")).collect())
    }
}
