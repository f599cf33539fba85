//! One check through the memory store, beside governor's keyed limiter with its defaults: 24-byte string keys,
//! SipHash in both, the time passed in to both, every field of the answer read, each key chosen by the last answer.
//!
//! `cargo bench -p tope --bench check`

#![allow(missing_docs, clippy::pedantic, clippy::print_stdout, clippy::float_arithmetic, clippy::unwrap_used)]
#![expect(clippy::disallowed_methods, reason = "a measurement")]

mod side;

use std::hint::black_box;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use governor::clock::{Clock, Reference};
use governor::middleware::StateInformationMiddleware;
use governor::nanos::Nanos;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};
use side::{interleaved, line};
use tope::store::memory::Memory;
use tope::store::{Charged, Store};
use tope::{Budget, Charge};

/// A clock for governor that says what it was told.
#[derive(Clone, Default, Debug)]
struct Told(Arc<AtomicU64>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct At(u64);

impl Reference for At {
    fn duration_since(&self, earlier: Self) -> Nanos {
        Nanos::from(self.0.saturating_sub(earlier.0))
    }
    fn saturating_sub(&self, nanos: Nanos) -> Self {
        Self(self.0.saturating_sub(nanos.as_u64()))
    }
}

impl std::ops::Add<Nanos> for At {
    type Output = Self;
    fn add(self, nanos: Nanos) -> Self {
        Self(self.0 + nanos.as_u64())
    }
}

impl Clock for Told {
    type Instant = At;
    fn now(&self) -> At {
        At(self.0.load(Ordering::Relaxed))
    }
}

type Governor = RateLimiter<String, DefaultKeyedStateStore<String>, Told, StateInformationMiddleware>;

/// Half of the checks of one hot key pass: one every other microsecond.
const AMOUNT: u32 = 500_000;

struct Peer {
    limiter: Governor,
    now: Told,
    interval_ns: u64,
}

impl Peer {
    fn new() -> Self {
        let now = Told::default();
        now.0.store(1_000_000_000_000, Ordering::Relaxed);
        let quota = Quota::per_second(NonZeroU32::new(AMOUNT).unwrap());
        let interval_ns = quota.replenish_interval().as_nanos() as u64;
        Self { limiter: Governor::new(quota, DefaultKeyedStateStore::default(), now.clone()), now, interval_ns }
    }

    fn check(&self, key: &String, now_us: u64) -> u64 {
        self.now.0.store(now_us * 1_000, Ordering::Relaxed);
        // Four fields: allowed, remaining, reset, retry. governor gives the first two and a wait; the reset follows.
        match self.limiter.check_key(key) {
            Ok(state) => {
                let remaining = u64::from(state.remaining_burst_capacity());
                let reset = (u64::from(AMOUNT) - remaining) * self.interval_ns;
                1 + remaining + reset / 1_000
            }
            Err(until) => {
                let retry = until.wait_time_from(self.now.now()).as_nanos() as u64;
                let reset = retry + u64::from(AMOUNT - 1) * self.interval_ns;
                reset / 1_000 + retry / 1_000
            }
        }
    }
}

struct Ours {
    store: Memory,
    budget: Budget,
}

impl Ours {
    fn new(keys: usize) -> Self {
        let store = Memory::new(keys).unwrap();
        let quota = tope::core::Quota::per_second(u64::from(AMOUNT)).unwrap();
        let mut budget = [Budget::new("bench".to_owned(), quota, Arc::new([]))];
        store.adopt(&mut budget).unwrap();
        let [budget] = budget;
        Self { store, budget }
    }

    fn check(&self, key: &str, now_us: u64, charged: &mut Charged) -> u64 {
        let charge = Charge { budget: &self.budget, key: key.as_bytes(), group: key.as_bytes(), cost: 1 };
        let _ = self.store.charge(&[charge], now_us, charged);
        let decision = charged.answers[0].decision;
        u64::from(decision.allowed()) + decision.remaining + decision.reset_us + decision.retry_us().unwrap_or(7)
    }
}

/// Keys in the order in which they are asked for, two for each step: which of the two is decided by the last answer.
/// They are read in sequence, so that what is timed is the table and not the list of keys.
struct Walk {
    keys: Vec<String>,
    at: usize,
    now_us: u64,
}

fn key(n: u64) -> String {
    format!("client-{n:017x}")
}

impl Walk {
    fn new(many: u64, seed: u64) -> Self {
        let mut next = seed;
        let mut random = || {
            next = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((next >> 32) * many) >> 32
        };
        let keys = if many == 1 { 2_000 } else { 2_000_000 };
        Self { keys: (0..keys).map(|_| key(random())).collect(), at: 0, now_us: 1_790_000_000_000_000 }
    }

    /// No check can begin before the last has ended.
    fn run(&mut self, steps: u64, mut check: impl FnMut(&String, u64) -> u64) -> u64 {
        let mut last = 0;
        for _ in 0..steps {
            self.at = if self.at + 2 == self.keys.len() { 0 } else { self.at + 2 };
            self.now_us += 1;
            last = check(&self.keys[self.at + (last & 1) as usize], self.now_us);
        }
        black_box(last)
    }
}

fn filled(many: u64) -> (Ours, Peer) {
    let (ours, peer) = (Ours::new((many as usize).max(1_000)), Peer::new());
    let mut charged = Charged::default();
    for n in 0..many {
        ours.check(&key(n), 1_790_000_000_000_000, &mut charged);
        peer.check(&key(n), 1_790_000_000_000_000);
    }
    (ours, peer)
}

fn contest(what: &str, many: u64, rounds: usize, steps: u64, least: f64) {
    let (ours, peer) = filled(many);
    let (mut a, mut b) = (Walk::new(many, 1), Walk::new(many, 1));
    let mut charged = Charged::default();
    let mut our_steps = |steps| a.run(steps, |key, now| ours.check(key, now, &mut charged));
    let mut their_steps = |steps| b.run(steps, |key, now| peer.check(key, now));
    let [mut ours, mut theirs] = interleaved(rounds, steps, [&mut our_steps, &mut their_steps]);
    line(what, ours.median(), theirs.median(), least);
}

/// Both threads at once, each its own walk; nanoseconds a check for the pair.
fn pair(walks: &mut [Walk; 2], steps: u64, check: &(dyn Fn(&String, u64, &mut Charged) -> u64 + Sync)) -> u64 {
    std::thread::scope(|scope| {
        for walk in walks {
            scope.spawn(move || {
                let mut charged = Charged::default();
                walk.run(steps / 2, |key, now| check(key, now, &mut charged))
            });
        }
    });
    steps
}

fn two_threads(what: &str, many: u64, steps: u64) {
    let (ours, peer) = filled(many);
    let mut charged = Charged::default();
    let mut walk = Walk::new(many, 1);
    let mut walks = [Walk::new(many, 2), Walk::new(many, 3)];
    let mut others = [Walk::new(many, 2), Walk::new(many, 3)];
    let mut alone = |steps| walk.run(steps, |key, now| ours.check(key, now, &mut charged));
    let mut two = |steps| pair(&mut walks, steps, &|key, now, charged| ours.check(key, now, charged));
    let mut theirs = |steps| pair(&mut others, steps, &|key, now, _| peer.check(key, now));
    let [mut alone, mut two, mut theirs] = interleaved(9, steps, [&mut alone, &mut two, &mut theirs]);
    if many > 1 {
        line(&format!("{what}, two threads: against one"), two.median(), alone.median(), 1.5);
    } else {
        line(&format!("{what}, two threads: against two"), two.median(), theirs.median(), 1.0);
    }
}

fn main() {
    println!("{:<44} {:>9} {:>9} {:>8}", "nanoseconds a check", "tope", "peer", "ratio");
    contest("one hot key", 1, 31, 300_000, 1.5);
    contest("1,000,000 keys, uniform", 1_000_000, 15, 200_000, 3.0);
    two_threads("1,000,000 keys, uniform", 1_000_000, 400_000);
    two_threads("one hot key", 1, 400_000);
}
