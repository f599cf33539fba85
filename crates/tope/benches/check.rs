//! One check through the memory store, beside governor's keyed limiter with its defaults: 24-byte string keys,
//! SipHash in both, the time passed in to both, every field of the answer read, each key chosen by the last answer.
//!
//! `cargo bench -p tope --bench check`

#![allow(missing_docs, clippy::pedantic, clippy::print_stdout, clippy::float_arithmetic, clippy::unwrap_used)]

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

const AMOUNT: u32 = 1_000;

struct Peer {
    limiter: Governor,
    now: Told,
}

impl Peer {
    fn new() -> Self {
        let now = Told::default();
        now.0.store(1_000_000_000_000, Ordering::Relaxed);
        let quota = Quota::per_second(NonZeroU32::new(AMOUNT).unwrap());
        Self { limiter: Governor::new(quota, DefaultKeyedStateStore::default(), now.clone()), now }
    }

    fn check(&self, key: &String, now_us: u64) -> u64 {
        self.now.0.store(now_us * 1_000, Ordering::Relaxed);
        match self.limiter.check_key(key) {
            Ok(state) => {
                let left = u64::from(state.remaining_burst_capacity());
                left + u64::from(state.quota().burst_size().get()) - left
            }
            Err(until) => until.wait_time_from(self.now.now()).as_nanos() as u64 + u64::from(until.quota().burst_size().get()),
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
        let mut budget =
            [Budget { name: "bench".into(), quota, edges: Arc::new([]), shadow: false, mark: Default::default() }];
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

fn keys(many: usize) -> Vec<String> {
    (0..many).map(|n| format!("client-{:017x}", n as u64 * 0x9e37_79b9)).collect()
}

/// Steps through keys, each chosen by the answer before: no check can begin before the last has ended.
fn walk(keys: &[String], steps: u64, now_us: &mut u64, mut check: impl FnMut(&String, u64) -> u64) -> u64 {
    let (mut next, mut last) = (0x1234_5678_9abc_def1_u64, 0);
    for _ in 0..steps {
        next = (next ^ (last & 1)).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let key = &keys[((next >> 32) as usize * keys.len()) >> 32];
        *now_us += 1;
        last = check(key, *now_us);
    }
    black_box(last)
}

fn contest(what: &str, keys: &[String], rounds: usize, steps: u64, least: f64) {
    let (ours, peer) = (Ours::new(keys.len().max(1_000)), Peer::new());
    let (mut a, mut b) = (1_790_000_000_000_000_u64, 1_790_000_000_000_000_u64);
    let mut charged = Charged::default();
    for key in keys {
        ours.check(key, a, &mut charged);
        peer.check(key, b);
    }
    let mut our_steps = |steps| walk(keys, steps, &mut a, |key, now| ours.check(key, now, &mut charged));
    let mut their_steps = |steps| walk(keys, steps, &mut b, |key, now| peer.check(key, now));
    let [mut ours, mut theirs] = interleaved(rounds, steps, [&mut our_steps, &mut their_steps]);
    line(what, ours.median(), theirs.median(), least);
}

/// Both threads at once, each its own walk; nanoseconds a check for the pair.
fn pair(keys: &[String], steps: u64, check: &(dyn Fn(&String, u64, &mut Charged) -> u64 + Sync)) -> u64 {
    std::thread::scope(|scope| {
        for thread in 0..2_u64 {
            scope.spawn(move || {
                let (mut now, mut charged) = (1_790_000_000_000_000 + thread, Charged::default());
                walk(keys, steps / 2, &mut now, |key, now| check(key, now, &mut charged))
            });
        }
    });
    steps
}

fn two_threads(what: &str, keys: &[String], steps: u64) {
    let (ours, peer) = (Ours::new(keys.len().max(1_000)), Peer::new());
    let mut charged = Charged::default();
    for key in keys {
        ours.check(key, 1_790_000_000_000_000, &mut charged);
        peer.check(key, 1_790_000_000_000_000);
    }
    let mut now = 1_790_000_000_000_000;
    let mut alone = |steps| walk(keys, steps, &mut now, |key, now| ours.check(key, now, &mut charged));
    let mut two = |steps| pair(keys, steps, &|key, now, charged| ours.check(key, now, charged));
    let mut theirs = |steps| pair(keys, steps, &|key, now, _| peer.check(key, now));
    let [mut alone, mut two, mut theirs] = interleaved(7, steps, [&mut alone, &mut two, &mut theirs]);
    let (alone, two, theirs) = (alone.median(), two.median(), theirs.median());
    if keys.len() > 1 {
        line(&format!("{what}: two threads against one of ours"), two, alone, 1.5);
    } else {
        line(&format!("{what}: two threads against governor's two"), two, theirs, 1.0);
    }
}

fn main() {
    let (one, million) = (keys(1), keys(1_000_000));
    println!("{:<44} {:>9} {:>9} {:>8}", "nanoseconds a check", "tope", "peer", "ratio");
    contest("one hot key", &one, 31, 300_000, 1.5);
    contest("1,000,000 keys, uniform", &million, 9, 300_000, 3.0);
    two_threads("1,000,000 keys, uniform", &million, 400_000);
    two_threads("one hot key", &one, 400_000);
}
