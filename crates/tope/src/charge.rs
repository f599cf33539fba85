//! A budget, and a cost to take from one bucket of it.

use std::sync::Arc;

use tope_core::wire::draft;
use tope_core::{Algorithm, Quota};

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
    /// Its item of `RateLimit-Policy`, prepared.
    pub policy_item: String,
    /// What the store gave it when the policy was adopted.
    pub mark: Mark,
}

impl Budget {
    /// An enforced budget that no store has adopted yet.
    pub fn new(name: String, quota: Quota, edges: Arc<[u64]>) -> Self {
        let mut policy_item = String::new();
        // Writing to a string does not fail.
        let _ = draft::write_policy_item(&mut policy_item, &name, &quota);
        Self { name, quota, edges, shadow: false, policy_item, mark: Mark::default() }
    }

    /// Whether it counts requests in flight: its units are places, which come back when a request ends.
    pub fn in_flight(&self) -> bool {
        self.quota.algorithm() == Algorithm::Concurrency
    }
}

/// What a store gives a budget when it adopts it, to find its buckets again without a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The budget's name, as the store hashes it.
    pub label: u64,
    /// The quota, by the store's own number.
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
