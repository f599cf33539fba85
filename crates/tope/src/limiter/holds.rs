//! Requests that wait for others to be decided: a budget whose units are held, and not yet used, may still have room
//! when the answers are there. First come, first served, and bounded.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::charge::Charge;

/// Requests that may wait for one bucket.
pub(super) const MOST_FOR_ONE: usize = 1_000;
/// Requests that may wait in all, or a few more when they come at one moment.
pub(super) const MOST: usize = 65_536;
/// Parts of the table, each with its own lock.
pub(super) const SHARES: usize = 64;

/// By a hash of the bucket, which is not hashed again.
type Buckets = HashMap<u64, Bucket, BuildHasherDefault<Hashed>>;

/// The buckets whose units are held for requests under way, and who waits for them.
#[derive(Debug)]
pub(super) struct Holds {
    shares: Box<[Mutex<Buckets>]>,
    hasher: RandomState,
    waiting: AtomicUsize,
}

/// A keyed hash is as good as another one of it.
#[derive(Debug, Default)]
pub(super) struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, _: &[u8]) {
        unreachable!("the keys are hashes");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[derive(Debug, Default)]
struct Bucket {
    /// Requests under way that hold units of it.
    holders: u32,
    waiters: VecDeque<Arc<Waiter>>,
}

impl Bucket {
    /// Somebody who was called and is not judged yet may still wait: it calls the next, or holds units itself.
    fn is_idle(&self) -> bool {
        self.holders == 0 && self.waiters.is_empty()
    }
}

#[derive(Debug, Default)]
struct Waiter(Mutex<Turn>);

#[derive(Debug, Default)]
struct Turn {
    come: bool,
    waker: Option<Waker>,
}

/// One request under way holds units of a bucket. When it is dropped they are decided.
#[derive(Debug)]
pub(super) struct Hold {
    holds: Arc<Holds>,
    bucket: u64,
    /// Units came back: there is room for somebody.
    pub(super) gave_back: bool,
}

/// A place in the queue of a bucket: ready when it may have room, or nothing is left to wait for.
#[derive(Debug)]
pub struct Ticket(Option<Queued>);

/// A place among those who wait.
#[derive(Debug)]
struct Queued {
    holds: Arc<Holds>,
    bucket: u64,
    waiter: Arc<Waiter>,
    used: bool,
}

impl Holds {
    pub(super) fn new() -> Self {
        let shares = (0..SHARES).map(|_| Mutex::default()).collect();
        Self { shares, hasher: RandomState::new(), waiting: AtomicUsize::new(0) }
    }

    /// A request under way holds units of this charge's bucket.
    pub(super) fn hold(self: &Arc<Self>, charge: &Charge<'_>) -> Hold {
        let bucket = self.bucket(charge);
        self.share(bucket).entry(bucket).or_default().holders += 1;
        Hold { holds: Arc::clone(self), bucket, gave_back: false }
    }

    /// Whether requests under way hold units of this charge's bucket.
    pub(super) fn is_held(&self, charge: &Charge<'_>) -> bool {
        let bucket = self.bucket(charge);
        self.share(bucket).get(&bucket).is_some_and(|found| found.holders > 0)
    }

    /// A place in the queue; `None` when nobody holds units any more, or the queue is as long as it may be.
    pub(super) fn queue(self: &Arc<Self>, charge: &Charge<'_>) -> Option<Ticket> {
        let bucket = self.bucket(charge);
        let mut share = self.share(bucket);
        let queue = &mut share.get_mut(&bucket).filter(|found| found.holders > 0)?.waiters;
        if queue.len() >= MOST_FOR_ONE || self.waiting.load(Ordering::Relaxed) >= MOST {
            return None;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let waiter = Arc::<Waiter>::default();
        queue.push_back(Arc::clone(&waiter));
        Some(Ticket(Some(Queued { holds: Arc::clone(self), bucket, waiter, used: false })))
    }

    fn bucket(&self, charge: &Charge<'_>) -> u64 {
        self.hasher.hash_one((charge.budget.mark.label, charge.key))
    }

    fn share(&self, bucket: u64) -> MutexGuard<'_, Buckets> {
        lock(&self.shares[(bucket >> 32) as usize % SHARES])
    }

    /// The turn of the first in the queue has come.
    fn call_one(&self, bucket: u64) {
        let first = {
            let mut share = self.share(bucket);
            let Some(found) = share.get_mut(&bucket) else { return };
            let first = found.waiters.pop_front();
            if found.is_idle() {
                share.remove(&bucket);
            }
            first
        };
        if let Some(waiter) = first {
            waiter.call();
        }
    }
}

impl Waiter {
    fn call(&self) {
        let waker = {
            let mut turn = lock(&self.0);
            turn.come = true;
            turn.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let called = {
            let mut share = self.holds.share(self.bucket);
            let Some(bucket) = share.get_mut(&self.bucket) else { return };
            bucket.holders -= 1;
            let called = if self.gave_back {
                // Room for one. Whether it is enough for the first is seen when it is judged.
                bucket.waiters.pop_front().into_iter().collect()
            } else if bucket.holders == 0 {
                // Nobody is left who could give anything back.
                std::mem::take(&mut bucket.waiters)
            } else {
                VecDeque::new()
            };
            if bucket.is_idle() {
                share.remove(&self.bucket);
            }
            called
        };
        for waiter in called {
            waiter.call();
        }
    }
}

impl Future for Ticket {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(queued) = &self.0 else { return Poll::Ready(()) };
        let mut turn = lock(&queued.waiter.0);
        if turn.come {
            return Poll::Ready(());
        }
        turn.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Ticket {
    /// One that is ready, unless the one before was so too.
    pub(super) fn at_once(before: Option<&Self>) -> Option<Self> {
        before.is_none_or(|before| before.0.is_some()).then_some(Self(None))
    }

    /// The turn has come and is taken: nobody else is called in its place.
    pub fn take(&mut self) {
        if let Some(queued) = &mut self.0 {
            queued.used = true;
        }
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.holds.waiting.fetch_sub(1, Ordering::Relaxed);
        let mut share = self.holds.share(self.bucket);
        if let Some(bucket) = share.get_mut(&self.bucket) {
            bucket.waiters.retain(|waiter| !Arc::ptr_eq(waiter, &self.waiter));
            if bucket.is_idle() {
                share.remove(&self.bucket);
            }
        }
        drop(share);
        // Whoever leaves when called lets the next one in.
        if !self.used && lock(&self.waiter.0).come {
            self.holds.call_one(self.bucket);
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
