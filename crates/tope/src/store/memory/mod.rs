//! A bounded table in this process: allocated once, never grown, right under any interleaving.
//!
//! | room | what is in it |
//! |---|---|
//! | `table` | lines of five places, each line with its lock; 32 bytes a key at rated capacity |
//! | `known` | the short way of requests whose buckets are all known and at home |
//! | `pass` | one request: lock its lines in ascending order, judge all, then commit all |
//! | `seat`, `room` | where a bucket is or would be; what happens when both its lines are full |
//! | `overflow` | where newcomers are counted together when all places hold more debt |
//! | `log`, `slab` | the admissions of sliding logs, in blocks bought at start |
//! | `quotas` | the quotas that places are written under, by number |
//! | `hash` | which bucket a key names |
//! | [`snapshot`] | what outlives a restart |
//!
//! A bucket that is full again equals no bucket, so its place is reused and nothing is lost. When every place that a
//! newcomer could have is live, the one nearest to full in time goes, if it is nearer than the newcomer would be: an
//! attacker in debt is forgotten last. What was forgiven is counted in [`Counts`].

mod hash;
mod known;
mod log;
mod overflow;
mod pass;
mod quotas;
mod room;
mod seat;
mod slab;
pub mod snapshot;
mod sync;
mod table;

use std::collections::HashSet;
use std::fmt;
use std::future::Ready;
use std::sync::{Arc, OnceLock};

use tope_core::{Algorithm, Decision, Quota, State};

use self::hash::Seed;
use self::overflow::Overflow;
use self::quotas::{Known, Quotas};
use self::slab::Slab;
use self::sync::atomic::{AtomicU64, Ordering};
use self::sync::{Mutex, MutexGuard, lock};
use self::table::{Place, Table};
use super::{Answer, Charged, Store, StoreError, Taken};
use crate::charge::{Budget, Charge, Mark};

/// The default of [`Memory::new`]'s `max_keys`: a million buckets, 32 MB.
pub const DEFAULT_MAX_KEYS: usize = 1_000_000;

/// Shares of the slab, each with its own lock.
const SHARES: usize = 64;
/// A share holds two of the largest logs, but no log is so large that this takes more than 1 MiB a share.
const MOST_FOR_TWO_LOGS: usize = 16_384;

/// The memory store.
pub struct Memory {
    seed: Seed,
    max_keys: usize,
    table: Table,
    quotas: Quotas,
    overflow: Mutex<Overflow>,
    /// Bought when the first sliding log is adopted.
    slabs: OnceLock<Box<[Mutex<Slab>]>>,
    order: Option<AtomicU64>,
    evicted: AtomicU64,
    forgiven: AtomicU64,
    overflowed: AtomicU64,
    coarsened: AtomicU64,
}

/// What the bound on memory cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Live buckets that had to go for others.
    pub evicted: u64,
    /// Units that those buckets had used and that were forgotten.
    pub forgiven: u64,
    /// Charges of newcomers that were judged by an overflow bucket.
    pub overflowed: u64,
    /// Admissions of sliding logs that joined the one before, because no memory was left to tell them apart. Such a
    /// log refuses for longer than it need, and never admits more.
    pub coarsened: u64,
}

impl Memory {
    /// A store for `max_keys` buckets in all: 32 bytes each, and 64 bytes each for older admissions when a policy
    /// has a sliding log.
    ///
    /// # Errors
    /// [`StoreError::NoSeed`] when the system gives no random numbers.
    pub fn new(max_keys: usize) -> Result<Self, StoreError> {
        Ok(Self::with_seed(max_keys, Seed::random().map_err(StoreError::NoSeed)?, Vec::new()))
    }

    fn with_seed(max_keys: usize, seed: Seed, quotas: Vec<(Quota, Arc<[u64]>)>) -> Self {
        Self {
            seed,
            max_keys,
            table: Table::new(max_keys),
            quotas: Quotas::new(quotas),
            overflow: Mutex::new(Overflow::default()),
            slabs: OnceLock::new(),
            order: None,
            evicted: AtomicU64::new(0),
            forgiven: AtomicU64::new(0),
            overflowed: AtomicU64::new(0),
            coarsened: AtomicU64::new(0),
        }
    }

    /// Counts the requests it judges, so that a log of them can be replayed in their order: [`Charged::order`].
    #[must_use]
    pub fn in_order(mut self) -> Self {
        self.order = Some(AtomicU64::new(0));
        self
    }

    /// What the bound on memory cost so far.
    pub fn counts(&self) -> Counts {
        Counts {
            evicted: self.evicted.load(Ordering::Relaxed),
            forgiven: self.forgiven.load(Ordering::Relaxed),
            overflowed: self.overflowed.load(Ordering::Relaxed),
            coarsened: self.coarsened.load(Ordering::Relaxed),
        }
    }

    /// The buckets that are not full again at `now_us`. Looks at every place: for a metric, not for a request.
    pub fn live(&self, now_us: u64) -> usize {
        let mut live = 0;
        for line in 0..self.table.len() {
            let places = self.table.lock(line).all();
            live += places.iter().filter(|place| self.free_at(place) > now_us).count();
        }
        live
    }

    /// The buckets that it was made for. The table has a quarter more places, and a flood of keys fills them all.
    pub fn max_keys(&self) -> usize {
        self.max_keys
    }

    /// Makes room for the admissions of logs under this quota: in each share at least for two such logs.
    fn buy_slabs(&self, quota: &Quota) {
        let amount = usize::try_from(quota.amount()).unwrap_or(usize::MAX);
        // Those in flight end in any order, and a block is kept for the last of its four.
        let blocks = if quota.algorithm() == Algorithm::Concurrency { amount } else { amount.div_ceil(slab::BLOCK) };
        let two_logs = blocks.saturating_mul(2);
        let share = self.max_keys.div_ceil(SHARES).max(two_logs.min(MOST_FOR_TWO_LOGS));
        let slabs = self.slabs.get_or_init(|| (0..SHARES).map(|_| Mutex::new(Slab::default())).collect());
        slabs.iter().for_each(|slab| lock(slab).hold(share));
    }

    /// The moment from which a place may be taken: 0 when there is no bucket in it.
    fn free_at(&self, place: &Place) -> u64 {
        if place.taken() { full_at(self.quotas.read().at(place.number()), place.state()) } else { 0 }
    }

    /// The share of the slab in which a bucket's older admissions are.
    fn slab(&self, hash: u64) -> Option<MutexGuard<'_, Slab>> {
        self.slabs.get().map(|slabs| lock(&slabs[(hash >> 58) as usize]))
    }

    /// Gives the ring of a place back that is about to be overwritten.
    fn release(&self, place: &Place, algorithm: Algorithm) {
        if algorithm.is_log()
            && let Some(mut slab) = self.slab(place.hash)
        {
            slab.release(log::ring(place.state()));
        }
    }

    /// The hash of a charge's bucket.
    #[inline]
    fn bucket(&self, charge: &Charge<'_>) -> u64 {
        hash::bucket(self.seed.key(charge.key), charge.budget.mark.label)
    }

    #[inline]
    fn place_in_order(&self) -> u64 {
        self.order.as_ref().map_or(0, |order| order.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Numbers that some place still names.
    fn numbers_in_use(&self) -> HashSet<u16> {
        let places = (0..self.table.len()).flat_map(|line| self.table.lock(line).all());
        let in_lines: HashSet<u16> = places.filter(Place::taken).map(|place| place.number()).collect();
        in_lines.into_iter().chain(lock(&self.overflow).numbers()).collect()
    }
}

/// The moment from which a bucket equals no bucket.
fn full_at(known: &Known, state: State) -> u64 {
    if known.quota.algorithm().is_log() {
        return if state.units == 0 { 0 } else { state.time_us.saturating_add(known.quota.period_us()) };
    }
    tope_core::algorithm::full_at(&known.quota, &known.edges, state)
}

impl Store for Memory {
    type Charging = Ready<Result<Charged, StoreError>>;
    type Settling = Ready<Result<Option<Decision>, StoreError>>;

    fn adopt(&self, budgets: &mut [Budget]) -> Result<(), StoreError> {
        let wanted: Vec<(Quota, Arc<[u64]>)> =
            budgets.iter().map(|budget| (budget.quota, Arc::clone(&budget.edges))).collect();
        let numbers = self.quotas.adopt(&wanted, || self.numbers_in_use())?;
        for (budget, number) in budgets.iter_mut().zip(numbers) {
            budget.mark = Mark { label: self.seed.label(&budget.name), number };
            if budget.quota.algorithm().is_log() {
                self.buy_slabs(&budget.quota);
            }
        }
        let marks = budgets.iter().map(|budget| (budget.mark.label, budget.mark.number)).collect();
        lock(&self.overflow).adopt(&marks);
        Ok(())
    }

    #[inline]
    fn charge(
        &self,
        charges: &[Charge<'_>],
        now_us: u64,
        charged: &mut Charged,
    ) -> Answer<Result<(), StoreError>, Self::Charging> {
        self.take(charges, now_us.min(Quota::MAX_TIME_US), charged);
        Answer::Ready(Ok(()))
    }

    fn settle(
        &self,
        charge: &Charge<'_>,
        taken: Taken,
        now_us: u64,
        delta: i64,
    ) -> Answer<Result<Option<Decision>, StoreError>, Self::Settling> {
        Answer::Ready(Ok(self.correct(charge, taken, now_us.min(Quota::MAX_TIME_US), delta)))
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The seed is a secret.
        f.debug_struct("Memory")
            .field("max_keys", &self.max_keys)
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}
