//! What one request must pay.

use std::ops::Range;

use arrayvec::ArrayVec;
use smallvec::SmallVec;

use super::Policy;
use crate::charge::{Charge, MAX_CHARGES};

/// What one request must pay: for each rate that applies, the budget, the bytes that name the bucket, the cost. The
/// keys lie in one buffer, on the stack while they are of usual length.
#[derive(Debug, Default)]
pub struct Charges {
    rows: ArrayVec<Row, MAX_CHARGES>,
    bytes: SmallVec<[u8; 256]>,
    group: Range<usize>,
}

#[derive(Debug)]
struct Row {
    budget: u16,
    key: Range<usize>,
    cost: u32,
}

impl Charges {
    /// No rate applies.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The places of the budgets in [`Policy::budgets`], in the order of the file.
    pub fn budgets(&self) -> impl ExactSizeIterator<Item = u16> {
        self.rows.iter().map(|row| row.budget)
    }

    /// The charges as a store reads them.
    pub fn resolve<'a>(&'a self, policy: &'a Policy) -> ArrayVec<Charge<'a>, MAX_CHARGES> {
        let charge = |row: &'a Row| {
            let key = &self.bytes[row.key.clone()];
            let group = if self.group.is_empty() { key } else { &self.bytes[self.group.clone()] };
            Charge { budget: &policy.budgets[usize::from(row.budget)], key, group, cost: row.cost }
        };
        self.rows.iter().map(charge).collect()
    }

    /// The buffer in which keys are written; returns where writing begins.
    pub(super) fn bytes(&mut self) -> &mut SmallVec<[u8; 256]> {
        &mut self.bytes
    }

    /// Names the address block that newcomers of this request share.
    pub(super) fn set_group(&mut self, group: Range<usize>) {
        self.group = group;
    }

    /// Adds a charge whose key was written to [`bytes`](Self::bytes). The compiler has refused policies in which more
    /// than sixteen can meet.
    pub(super) fn push(&mut self, budget: u16, key: Range<usize>, cost: u32) {
        self.rows.push(Row { budget, key, cost });
    }
}
