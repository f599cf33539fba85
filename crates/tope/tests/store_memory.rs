//! The suite of all stores, and what only a bounded table must do.

#[path = "../../tope-core/tests/model/mod.rs"]
mod model;
mod suite;

use std::collections::HashMap;
use std::sync::Arc;

use suite::{NOW, adopt, charge, on, one, rate};
use tope::core::Quota;
use tope::store::memory::Memory;
use tope::{Budget, Charge};

suite::suite!(Memory::new(10_000).expect("randomness"));

const SECOND: u64 = 1_000_000;

/// A table of a thousand keys, all exhausted, forgets none of them.
#[test]
fn rated_capacity_is_kept() {
    for text in ["5/h", "5/h fixed-window", "5/h sliding-window", "5/h sliding-log"] {
        let store = Memory::new(10_000).expect("randomness");
        let [limit] = adopt(&store, [rate("limit", text)]);
        let keys: Vec<[u8; 4]> = (0..10_000_u32).map(u32::to_le_bytes).collect();
        for key in &keys {
            for _ in 0..5 {
                one(&store, &limit, key, NOW, 1);
            }
        }
        let forgotten = keys.iter().filter(|key| one(&store, &limit, *key, NOW, 1).decision.allowed()).count();
        assert!(forgotten <= 10, "{text}: {forgotten} of 10,000 were forgotten at rated capacity");
        assert_eq!(store.counts().evicted, 0, "{text}: {:?}", store.counts());
    }
}

/// A flood of new keys neither frees an exhausted one nor refuses those who are within their budget.
#[test]
fn a_flood_forgets_no_debtor() {
    let store = Memory::new(1_000).expect("randomness");
    let [limit] = adopt(&store, [rate("limit", "60/min")]);
    let mut now = NOW;
    for _ in 0..60 {
        assert!(one(&store, &limit, b"attacker", now, 1).decision.allowed());
    }
    let mut refused = 0;
    for n in 0..200_000_u32 {
        one(&store, &limit, &n.to_le_bytes(), now, 1);
        if n % 100 == 0 {
            // Each of the known asks once in a hundred steps of 5 ms: twice a second for all, one per minute each.
            let known = format!("known {}", n / 100 % 120);
            refused += usize::from(!one(&store, &limit, known.as_bytes(), now, 1).decision.allowed());
        }
        assert!(!one(&store, &limit, b"attacker", now, 60).decision.allowed(), "after {n} others");
        now += 50;
    }
    assert_eq!(refused, 0, "{:?}", store.counts());
    assert!(store.counts().evicted > 0);
}

/// When every place holds more debt than a newcomer would have, newcomers are limited as a group, not let go.
#[test]
fn newcomers_without_room_share_a_budget() {
    let store = Memory::new(20).expect("randomness");
    for text in ["1000/h", "1000/h fixed-window", "1000/h sliding-window", "1000/h sliding-log"] {
        let [deep, shallow] = adopt(&store, [rate("deep", "10/400d"), rate(text, "100/min")]);
        for n in 0..100_u32 {
            one(&store, &deep, &n.to_le_bytes(), NOW, 10);
        }
        let group = b"one address";
        let newcomer = |n: u32| {
            let key = n.to_be_bytes();
            charge(&store, &[Charge { budget: &shallow, key: &key, group, cost: 1 }], NOW).allowed
        };
        let admitted = (0..10_000).filter(|n| newcomer(*n)).count();
        assert_eq!(admitted, 100, "{text}: {:?}", store.counts());
    }
}

/// Newcomers in flight share places too, and who ends gives one back; not when it had lost it already.
#[test]
fn newcomers_without_room_share_places() {
    const HOLD: u64 = 1_000;
    let store = Memory::new(20).expect("randomness");
    let places = Budget::new("places".to_owned(), Quota::at_once(3, HOLD).expect("a quota"), Arc::new([]));
    let [deep, places] = adopt(&store, [rate("deep", "10/400d"), places]);
    for n in 0..100_u32 {
        one(&store, &deep, &n.to_le_bytes(), NOW, 10);
    }
    let come = |n: u8, now| {
        let said = charge(&store, &[Charge { budget: &places, key: &[n], group: b"one address", cost: 1 }], now);
        assert!(said.answers[0].taken.shared);
        said.allowed.then_some(said.answers[0].taken)
    };
    let leave = |n: u8, taken, now| {
        let charge = Charge { budget: &places, key: &[n], group: b"one address", cost: 1 };
        suite::settle(&store, &charge, taken, now, -1);
    };
    let [first, second, _] = [0, 1, 2].map(|n| come(n, NOW + u64::from(n)).expect("a place"));
    assert_eq!(come(3, NOW + 3), None);
    leave(0, first, NOW + 4);
    assert!(come(3, NOW + 10).is_some());
    assert_eq!(come(4, NOW + 11), None);
    // Counted together they keep their places as long as the last that came.
    let now = NOW + 10 + HOLD;
    assert!((5..8).all(|n| come(n, now).is_some()));
    leave(1, second, now);
    assert_eq!(come(8, now), None, "what is over gives nobody's place away");
}

/// A bucket that is full again gives its place away, and nothing is forgiven by that.
#[test]
fn what_is_full_again_is_no_bucket() {
    for text in ["10/s", "10/s fixed-window", "10/s sliding-window", "10/s sliding-log"] {
        let store = Memory::new(100).expect("randomness");
        let [limit] = adopt(&store, [rate(text, text)]);
        let mut now = NOW;
        for n in 0..5_000_u32 {
            for _ in 0..3 {
                assert!(one(&store, &limit, &n.to_le_bytes(), now, 1).decision.allowed());
                now += 1;
            }
            now += SECOND / 10;
        }
        assert_eq!((store.counts().evicted, store.counts().overflowed), (0, 0), "{text}");
        assert!(store.live(now) <= 25, "{text}: {} live", store.live(now));
        assert_eq!(store.live(now + 3 * SECOND), 0);
    }
}

/// Policies come and go; the numbers of quotas that nobody remembers are used again, and no bucket changes hands.
#[test]
fn a_thousand_reloads() {
    let store = Memory::new(1_000).expect("randomness");
    let [kept] = adopt(&store, [rate("kept", "7/d")]);
    assert!(one(&store, &kept, b"k", NOW, 7).decision.allowed());
    for reload in 1..1_000_u64 {
        let mut budgets: Vec<Budget> = (0..50).map(|n| rate("other", &format!("{}/h", reload * 50 + n + 1))).collect();
        budgets.push(rate("kept", "7/d"));
        tope::store::Store::adopt(&store, &mut budgets).expect("numbers are used again");
        let spent = one(&store, &budgets[50], b"k", NOW, 1);
        assert!(!spent.decision.allowed() && spent.decision.remaining == 0, "reload {reload}");
    }
}

/// More quotas than can be told apart are refused, and the policy in force is untouched.
#[test]
fn too_many_quotas_change_nothing() {
    let store = Memory::new(100).expect("randomness");
    let [kept] = adopt(&store, [rate("kept", "7/d")]);
    assert!(one(&store, &kept, b"k", NOW, 7).decision.allowed());
    let mut budgets: Vec<Budget> = (1..4_000).map(|n| rate("many", &format!("{n}/h"))).collect();
    assert!(tope::store::Store::adopt(&store, &mut budgets).is_err());
    assert!(!one(&store, &kept, b"k", NOW, 1).decision.allowed());
}

/// What was used is still used after a restart, also in a smaller table; damage is noticed.
#[test]
fn a_snapshot_outlives_a_restart() {
    let texts = ["5/h", "5/h fixed-window", "5/h sliding-window", "5/h sliding-log", "5/s burst 3", "40/day"];
    let budgets = |store: &Memory| {
        let mut budgets: Vec<Budget> = texts.iter().map(|text| rate(text, text)).collect();
        budgets[5].edges = vec![NOW - 3_600 * SECOND, NOW + 3_600 * SECOND].into();
        tope::store::Store::adopt(store, &mut budgets).expect("room");
        budgets
    };
    let store = Memory::new(2_000).expect("randomness");
    let mine = budgets(&store);
    let keys: Vec<[u8; 4]> = (0..300_u32).map(u32::to_le_bytes).collect();
    for (i, key) in keys.iter().enumerate() {
        for budget in &mine {
            for late in 0..=i as u64 % 3 {
                one(&store, budget, key, NOW + late, 1);
            }
        }
    }
    let places = || Budget::new("places".to_owned(), Quota::at_once(2, SECOND).expect("a quota"), Arc::new([]));
    let [in_flight] = adopt(&store, [places()]);
    assert!(one(&store, &in_flight, b"k", NOW, 2).decision.allowed());
    let mut bytes = Vec::new();
    store.write_snapshot(&mut bytes, NOW + 3).expect("a vector takes everything");
    for max_keys in [2_000, 100_000] {
        let again = Memory::from_snapshot(&bytes, max_keys, NOW + 3).expect("a snapshot");
        let theirs = budgets(&again);
        for key in &keys {
            for (a, b) in mine.iter().zip(&theirs) {
                let (was, is) = (one(&store, a, key, NOW + 3, 0), one(&again, b, key, NOW + 3, 0));
                assert_eq!(was.decision, is.decision, "{} in a table of {max_keys}", a.name);
            }
        }
        assert_eq!(again.counts().evicted, 0);
        // Who was in flight is not any more.
        let [in_flight] = adopt(&again, [places()]);
        assert!(one(&again, &in_flight, b"k", NOW + 3, 2).decision.allowed());
    }
    let small = Memory::from_snapshot(&bytes, 50, NOW + 3).expect("a snapshot");
    assert!(small.live(NOW + 3) <= 65);

    let wrong = |bytes: &[u8]| Memory::from_snapshot(bytes, 100, NOW).map(|_| ()).expect_err("damage").to_string();
    assert!(wrong(b"").contains("no file of buckets"));
    assert!(wrong(&bytes[..bytes.len() - 1]).contains("damaged"));
    for at in (20..bytes.len()).step_by(997) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1;
        assert!(wrong(&bytes).contains("damaged"));
    }
}

/// Requests on one bucket are numbered in the order in which it judged them.
#[test]
fn orders_are_the_orders_of_buckets() {
    let store = Arc::new(Memory::new(100).expect("randomness").in_order());
    let [limit] = adopt(&*store, [rate("limit", "2000/d")]);
    let mut seen: Vec<(u64, u64)> = std::thread::scope(|scope| {
        let worker = || {
            scope.spawn(|| {
                let ask = || charge(&*store, &[on(&limit, b"k", 1)], NOW);
                (0..1_000)
                    .map(|_| ask())
                    .map(|done| (done.order, done.answers[0].decision.remaining))
                    .collect::<Vec<_>>()
            })
        };
        [worker(), worker()].into_iter().flat_map(|worker| worker.join().expect("no panic")).collect()
    });
    seen.sort_unstable();
    let expected: Vec<(u64, u64)> = (1..=2_000).map(|order| (order, 2_000 - order)).collect();
    assert_eq!(seen, expected);
}

/// In a table so small that the buckets of one request are neighbours, every decision is the model's: no charge of a
/// request takes the place of another's.
#[test]
fn charges_of_one_request_do_not_take_each_others_places() {
    for (seed, texts) in [["3/min", "3/min"], ["3/min sliding-window", "2/min burst 4"], ["3/min sliding-log", "3/min"]]
        .into_iter()
        .enumerate()
    {
        let store = Memory::new(8).expect("randomness");
        let limits = adopt(&store, [rate("a", texts[0]), rate("b", texts[1])]);
        let mut models: HashMap<(usize, u8), model::Bucket> = HashMap::new();
        let (mut now, mut random) = (NOW, seed as u64);
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            u8::try_from((random >> 33) % below).expect("few")
        };
        let mut eras = [0, 0];
        for step in 0..20_000 {
            if step % 8 == 0 {
                // All buckets are full again, and their places anybody's; some of their keys come back.
                now += 200 * SECOND;
                eras = [next(4), next(4)];
            }
            now += 1_000;
            // Two of each kind are live at once, in ten places.
            let keys = [0, 1].map(|i| eras[i] * 2 + next(2));
            let charged = charge(&store, &[on(&limits[0], &keys[..1], 1), on(&limits[1], &keys[1..], 1)], now);
            let mut buckets = [0, 1].map(|i| {
                let fresh = || model::Bucket::new(limits[i].quota, Vec::new());
                models.entry((i, keys[i])).or_insert_with(fresh).clone()
            });
            let (allowed, decisions) = model::request(&mut buckets, now, 1);
            for (i, bucket) in buckets.into_iter().enumerate() {
                models.insert((i, keys[i]), bucket);
            }
            let said: Vec<_> = charged.answers.iter().map(|answered| answered.decision).collect();
            assert_eq!((charged.allowed, said), (allowed, decisions), "{texts:?}, step {step}: {:?}", store.counts());
        }
        assert_eq!((store.counts().evicted, store.counts().overflowed), (0, 0));
    }
}

/// What was counted together is still counted after a reload that changes the rate.
#[test]
fn a_reload_keeps_what_newcomers_used_together() {
    let store = Memory::new(20).expect("randomness");
    let [deep, mut shallow] = adopt(&store, [rate("deep", "10/400d"), rate("shallow", "5/h")]);
    for n in 0..100_u32 {
        one(&store, &deep, &n.to_le_bytes(), NOW, 10);
    }
    let admitted = |shallow: &Budget, from: u32| {
        let newcomer = |n: u32| {
            let key = n.to_be_bytes();
            charge(&store, &[Charge { budget: shallow, key: &key, group: b"one address", cost: 1 }], NOW).allowed
        };
        (from..from + 100).filter(|n| newcomer(*n)).count()
    };
    assert_eq!(admitted(&shallow, 1_000), 5);
    let before = shallow.clone();
    [_, shallow] = adopt(&store, [rate("deep", "10/400d"), rate("shallow", "6/h")]);
    // A request that began under the old policy is judged by it.
    assert_eq!(admitted(&before, 2_000), 0);
    assert_eq!(admitted(&shallow, 3_000), 1);
    [_, shallow] = adopt(&store, [rate("deep", "10/400d"), rate("shallow", "5/h")]);
    assert_eq!(admitted(&shallow, 4_000), 0);
}

/// One large log in a small store is exact: it does not run out of memory that nobody else uses.
#[test]
fn a_large_log_in_a_small_store_is_exact() {
    let store = Memory::new(1_000).expect("randomness");
    let [limit] = adopt(&store, [rate("log", "300/10min sliding-log")]);
    let mut model = model::Bucket::new(limit.quota, Vec::new());
    for step in 0..3_000 {
        let now = NOW + step * 1_500_000;
        assert_eq!(one(&store, &limit, b"k", now, 1).decision, model.check(now, 1), "step {step}");
    }
    assert_eq!(store.counts().coarsened, 0);
}
