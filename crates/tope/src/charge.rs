//! A budget, and a cost to take from one bucket of it.

use std::sync::Arc;

use tope_core::Quota;

/// One rate of one limit on one plan: what a store must know to judge a charge.
#[derive(Clone, Debug)]
pub struct Budget {
    /// The name that the client sees: `login`, and `login.2` for the second rate of a list.
    pub name: String,
    /// How much per period.
    pub quota: Quota,
    /// The edges of a calendar period, in Unix microseconds, ascending; else empty.
    pub edges: Arc<[u64]>,
    /// Counted and reported, never enforced.
    pub shadow: bool,
    /// The store's own number for this quota; given by [`Store::adopt`](crate::store::Store::adopt).
    pub number: u16,
}

/// A cost to take from one bucket of a budget.
#[derive(Clone, Copy, Debug)]
pub struct Charge<'a> {
    /// Whose bucket.
    pub budget: &'a Budget,
    /// Which bucket: the facts that name it, each part length-prefixed. Never leaves the process unhashed.
    pub key: &'a [u8],
    /// Which newcomers share a bucket when the store is full: the address block, or the key where there is none.
    pub group: &'a [u8],
    /// Units to take; 0 is a peek.
    pub cost: u32,
}

/// The most charges one request can make.
pub const MAX_CHARGES: usize = 16;
