//! The memory store under a scheduler that tries interleavings: every atomic step and every lock is a place where
//! another thread may go on. `make interleavings` runs it; an ordinary build has nothing here.
#![cfg(shuttle)]

mod suite;

use std::sync::Arc;

use shuttle::thread;
use suite::{NOW, adopt, charge, on, one, rate};
use tope::store::memory::Memory;
use tope::{Budget, Charge};

/// Of each of two kinds: random ones, and such as change threads at few, unlucky moments.
const SCHEDULES: usize = 2_000;

fn under_many_schedules(test: impl Fn() + Send + Sync + 'static) {
    let test = Arc::new(test);
    let again = Arc::clone(&test);
    shuttle::check_random(move || test(), SCHEDULES);
    shuttle::check_pct(move || again(), SCHEDULES, 3);
}

/// A store and its budgets, shared by the threads of one schedule.
fn shared<const N: usize>(max_keys: usize, texts: [&str; N]) -> Arc<(Memory, [Budget; N])> {
    let store = Memory::new(max_keys).unwrap();
    let budgets = adopt(&store, texts.map(|text| rate(text, text)));
    Arc::new((store, budgets))
}

/// Runs these on threads of their own and adds up what they return.
fn total(bodies: Vec<Box<dyn FnOnce() -> u64 + Send>>) -> u64 {
    let threads: Vec<_> = bodies.into_iter().map(thread::spawn).collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).sum()
}

/// Three threads and two limits in both orders: exactly the smaller is admitted, and the larger paid for no more.
#[test]
fn all_or_nothing() {
    for text in ["4/d", "4/d fixed-window", "4/d sliding-window", "4/d sliding-log"] {
        let small = text.replace('4', "2");
        under_many_schedules(move || {
            let shared = shared(4, [text, &small]);
            let body = |reversed: bool| {
                let shared = Arc::clone(&shared);
                let body = move || {
                    let (store, [wide, tight]) = &*shared;
                    let mut charges = [on(wide, b"k", 1), on(tight, b"k", 1)];
                    if reversed {
                        charges.reverse();
                    }
                    (0..2).filter(|_| charge(store, &charges, NOW).allowed).count() as u64
                };
                Box::new(body) as Box<dyn FnOnce() -> u64 + Send>
            };
            assert_eq!(total(vec![body(false), body(true), body(false)]), 2);
            let (store, [wide, tight]) = &*shared;
            let left = [wide, tight].map(|budget| one(store, budget, b"k", NOW, 0).decision.remaining);
            assert_eq!(left, [2, 0], "{text}");
        });
    }
}

/// A bucket that is read without a lock is read whole: what a peek says is what some admission left.
#[test]
fn a_peek_sees_whole_places() {
    under_many_schedules(|| {
        let shared = shared(4, ["3/d"]);
        let (store, [limit]) = &*shared;
        one(store, limit, b"k", NOW, 1);
        let writer = Arc::clone(&shared);
        let reader = Arc::clone(&shared);
        let write = move || {
            let (store, [limit]) = &*writer;
            (1..3).map(|late| u64::from(one(store, limit, b"k", NOW + late, 1).decision.allowed())).sum()
        };
        let read = move || {
            let (store, [limit]) = &*reader;
            for _ in 0..3 {
                let seen = one(store, limit, b"k", NOW, 0).decision;
                let unit = 86_400_000_000 / 3;
                // Three units less what is left, and at most the two microseconds that leaked.
                let owed = (3 - seen.remaining) * unit;
                assert!((owed - 2..=owed).contains(&seen.reset_us), "{seen:?}");
            }
            0
        };
        assert_eq!(total(vec![Box::new(write), Box::new(read)]), 2);
    });
}

/// Newcomers move and evict others around a key in debt: it is never twice in the table, and never forgotten.
#[test]
fn newcomers_do_not_free_a_debtor() {
    under_many_schedules(|| {
        let shared = shared(16, ["3/d"]);
        let body = |keys: std::ops::Range<u8>| {
            let shared = Arc::clone(&shared);
            let body = move || {
                let (store, [limit]) = &*shared;
                let mut admitted = 0;
                for key in keys {
                    one(store, limit, &[key], NOW, 1);
                    admitted += u64::from(one(store, limit, b"debtor", NOW, 1).decision.allowed());
                }
                admitted
            };
            Box::new(body) as Box<dyn FnOnce() -> u64 + Send>
        };
        assert_eq!(total(vec![body(0..12), body(12..24)]), 3);
    });
}

/// Corrections and charges of one bucket, in any order, add up.
#[test]
fn corrections_add_up() {
    for text in ["5/d", "5/d fixed-window", "5/d sliding-window", "5/d sliding-log"] {
        under_many_schedules(move || {
            let shared = shared(4, [text]);
            let body = || {
                let shared = Arc::clone(&shared);
                let body = move || {
                    let (store, [limit]) = &*shared;
                    let charge = Charge { budget: limit, key: b"k", group: b"k", cost: 2 };
                    let taken = suite::charge(store, &[charge], NOW).answers[0];
                    assert!(taken.decision.allowed());
                    suite::settle(store, &charge, taken.taken, NOW, -1);
                    1_u64
                };
                Box::new(body) as Box<dyn FnOnce() -> u64 + Send>
            };
            assert_eq!(total(vec![body(), body()]), 2);
            let (store, [limit]) = &*shared;
            assert_eq!(one(store, limit, b"k", NOW, 0).decision.remaining, 3, "{text}");
        });
    }
}
