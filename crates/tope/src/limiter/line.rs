//! Requests that wait in line for a budget to have room again: first come, first served, and bounded. Who is first tries
//! again when the budget should have room, and when somebody gives something back; the others wait for the one before.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use tope_core::Algorithm;

use super::holds::{Hashed, MOST, MOST_FOR_ONE, SHARES, lock};
use crate::charge::{Budget, Charge};

type Buckets = HashMap<u64, Line, BuildHasherDefault<Hashed>>;

/// The lines of all buckets for which somebody waits.
#[derive(Debug)]
pub(super) struct Lines {
    shares: Box<[Mutex<Buckets>]>,
    hasher: RandomState,
    waiting: AtomicUsize,
}

/// Those who wait for one bucket, the first in front.
#[derive(Debug, Default)]
struct Line {
    waiters: VecDeque<Arc<Waiter>>,
    /// When the last of them should have room, in Unix microseconds.
    last_us: u64,
    /// Units that are wanted at that moment.
    units: u64,
}

#[derive(Debug)]
struct Waiter {
    cost: u32,
    turn: Mutex<Turn>,
}

#[derive(Debug, Default)]
struct Turn {
    /// It is first, or something was given back while it was.
    called: bool,
    waker: Option<Waker>,
}

/// A place in a line. Whoever leaves it lets the next one come forward.
#[derive(Debug)]
pub struct Place {
    lines: Arc<Lines>,
    bucket: u64,
    /// How long the next unit takes, where units come evenly.
    spacing_us: u64,
    admitted: bool,
    waiter: Arc<Waiter>,
}

impl Lines {
    pub(super) fn new() -> Self {
        let shares = (0..SHARES).map(|_| Mutex::default()).collect();
        Self { shares, hasher: RandomState::new(), waiting: AtomicUsize::new(0) }
    }

    /// Whether somebody waits for the bucket of this charge.
    pub(super) fn is_busy(&self, charge: &Charge<'_>) -> bool {
        let bucket = self.bucket(charge);
        self.share(bucket).contains_key(&bucket)
    }

    /// Whether nobody waits at all.
    pub(super) fn are_empty(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) == 0
    }

    /// A place at the end of the line for a charge that has room in `wait_us` if nobody is before it. How long it would have
    /// to wait, if that is beyond `deadline_us` or the line is as long as it may be.
    pub(super) fn join(
        self: &Arc<Self>,
        charge: &Charge<'_>,
        now_us: u64,
        wait_us: u64,
        deadline_us: u64,
    ) -> Result<Place, u64> {
        let bucket = self.bucket(charge);
        let mut share = self.share(bucket);
        let line = share.entry(bucket).or_default();
        let (room_us, units) = line.room(charge.budget, charge.cost, now_us, wait_us);
        let full = line.waiters.len() >= MOST_FOR_ONE || self.waiting.load(Ordering::Relaxed) >= MOST;
        if full || room_us > deadline_us {
            if line.waiters.is_empty() {
                share.remove(&bucket);
            }
            return Err(room_us.saturating_sub(now_us));
        }
        let waiter = Arc::new(Waiter { cost: charge.cost, turn: Mutex::default() });
        line.waiters.push_back(Arc::clone(&waiter));
        (line.last_us, line.units) = (room_us, units);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let even = charge.budget.quota.algorithm() == Algorithm::TokenBucket;
        let spacing_us = if even { charge.budget.quota.spacing_us(charge.cost).unwrap_or(0) } else { 0 };
        Ok(Place { lines: Arc::clone(self), bucket, spacing_us, admitted: false, waiter })
    }

    /// Something was given back to the bucket of this charge: whoever is first tries again.
    pub(super) fn call(&self, charge: &Charge<'_>) {
        if !self.are_empty() {
            let bucket = self.bucket(charge);
            let first = self.share(bucket).get(&bucket).and_then(|line| line.waiters.front().cloned());
            if let Some(first) = first {
                first.call();
            }
        }
    }

    fn bucket(&self, charge: &Charge<'_>) -> u64 {
        self.hasher.hash_one((charge.budget.mark.label, charge.key))
    }

    fn share(&self, bucket: u64) -> MutexGuard<'_, Buckets> {
        lock(&self.shares[(bucket >> 32) as usize % SHARES])
    }
}

impl Line {
    /// When there should be room for one more, behind all that wait, and how many units are wanted at that moment: never
    /// later than there is, so that nobody is sent away who could have waited.
    fn room(&self, budget: &Budget, cost: u32, now_us: u64, wait_us: u64) -> (u64, u64) {
        let (quota, units) = (&budget.quota, u64::from(cost));
        let own_us = now_us.saturating_add(wait_us);
        if self.waiters.is_empty() {
            return (own_us, units);
        }
        let (behind_us, wanted) = match quota.algorithm() {
            Algorithm::TokenBucket => (self.last_us.saturating_add(quota.spacing_us(cost).unwrap_or(u64::MAX)), units),
            // Places are free when others end.
            Algorithm::Concurrency => (now_us, units),
            _ if self.units + units <= quota.capacity() => (self.last_us, self.units + units),
            _ => (self.last_us.saturating_add(quota.period_us()), units),
        };
        (behind_us.max(own_us), wanted)
    }
}

impl Waiter {
    fn call(&self) {
        let waker = {
            let mut turn = lock(&self.turn);
            turn.called = true;
            turn.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }
}

impl Place {
    /// Ready when it has come to the front, and each time something was given back since.
    pub fn poll_called(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut turn = lock(&self.waiter.turn);
        if std::mem::take(&mut turn.called) {
            return Poll::Ready(());
        }
        turn.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// It has what it waited for.
    pub fn admit(&mut self) {
        self.admitted = true;
    }

    /// Whether nobody is before it.
    pub fn is_first(&self) -> bool {
        let share = self.lines.share(self.bucket);
        let first = share.get(&self.bucket).and_then(|line| line.waiters.front());
        first.is_some_and(|first| Arc::ptr_eq(first, &self.waiter))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.lines.waiting.fetch_sub(1, Ordering::Relaxed);
        let next = {
            let mut share = self.lines.share(self.bucket);
            let Some(line) = share.get_mut(&self.bucket) else { return };
            let at = line.waiters.iter().position(|waiter| Arc::ptr_eq(waiter, &self.waiter));
            let Some(at) = at else { return };
            line.waiters.remove(at);
            if !self.admitted {
                // Those behind it move up.
                line.last_us = line.last_us.saturating_sub(self.spacing_us);
                line.units = line.units.saturating_sub(u64::from(self.waiter.cost));
            }
            let next = if at == 0 { line.waiters.front().cloned() } else { None };
            if line.waiters.is_empty() {
                share.remove(&self.bucket);
            }
            next
        };
        if let Some(next) = next {
            next.call();
        }
    }
}
