//! What every store must do. A store passes this file unchanged, or it is no store of ours.

#![allow(dead_code, unused_macros, unused_imports, reason = "each test takes what it needs of the suite")]

#[path = "../../../tope-core/tests/oracle/mod.rs"]
mod oracle;

use std::sync::Arc;

use tope::core::{Quota, Rate};
use tope::store::{Answer, Answered, Charged, Store, Taken};
use tope::{Budget, Charge};

use oracle::{Case, RequestCase, Said, Shape, lines, quota};

/// A moment in 2026.
pub(crate) const NOW: u64 = 1_790_000_000_000_000;

pub(crate) fn budget(name: &str, quota: Quota) -> Budget {
    Budget::new(name.to_owned(), quota, Arc::new([]))
}

pub(crate) fn rate(name: &str, text: &str) -> Budget {
    match text.parse().expect("a rate") {
        Rate::Quota(quota) => budget(name, quota),
        other => panic!("{other} is no quota"),
    }
}

fn shaped(name: &str, shape: &Shape) -> Budget {
    Budget { edges: shape.edges_us.clone().into(), ..budget(name, shape.quota()) }
}

pub(crate) fn adopt<const N: usize>(store: &impl Store, mut budgets: [Budget; N]) -> [Budget; N] {
    store.adopt(&mut budgets).expect("the store has room for these budgets");
    budgets
}

/// Charges, waiting for a store that answers later.
pub(crate) fn charge(store: &impl Store, charges: &[Charge<'_>], now_us: u64) -> Charged {
    let mut charged = Charged::default();
    match store.charge(charges, now_us, &mut charged) {
        Answer::Ready(done) => done.map(|()| charged),
        Answer::Pending(charging) => block_on(charging),
    }
    .expect("the store is well")
}

pub(crate) fn settle(store: &impl Store, charge: &Charge<'_>, taken: Taken, now_us: u64, delta: i64) {
    match store.settle(charge, taken, now_us, delta) {
        Answer::Ready(done) => done,
        Answer::Pending(settling) => block_on(settling),
    }
    .expect("the store is well");
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

pub(crate) fn on<'a>(budget: &'a Budget, key: &'a [u8], cost: u32) -> Charge<'a> {
    Charge { budget, key, group: key, cost }
}

/// One charge of one budget.
pub(crate) fn one(store: &impl Store, budget: &Budget, key: &[u8], now_us: u64, cost: u32) -> Answered {
    charge(store, &[on(budget, key, cost)], now_us).answers[0]
}

fn remaining(store: &impl Store, budget: &Budget, key: &[u8], now_us: u64) -> u64 {
    one(store, budget, key, now_us, 0).decision.remaining
}

const ALGORITHMS: [&str; 4] = ["1000/d", "1000/d fixed-window", "1000/d sliding-window", "1000/d sliding-log"];

/// Every vector of one limit, every field; each case has a key of its own.
pub(crate) fn vectors(store: &impl Store) {
    for name in ["token-bucket", "fixed-window", "sliding-window", "sliding-log", "calendar", "settle", "requota"] {
        let mut checked = 0;
        for (number, line) in lines(name).iter().enumerate() {
            let case: Case = serde_json::from_str(line).expect("a case");
            let key = format!("{name}:{number}");
            let [mut limit] = adopt(store, [shaped(name, &case.shape)]);
            for step in case.steps {
                if let Some(correction) = step.settle {
                    let charge = on(&limit, key.as_bytes(), 1);
                    settle(store, &charge, Taken::at(correction.taken_at_us), step.at_us, correction.delta);
                } else if let Some(new) = step.requota {
                    let quota = quota(limit.quota.algorithm(), new.limit, new.period_us, Some(new.burst));
                    [limit] = adopt(store, [budget(name, quota)]);
                } else {
                    let cost = step.cost.expect("a check has a cost");
                    let said = one(store, &limit, key.as_bytes(), step.at_us, cost);
                    assert_eq!(Some(Said::from(said.decision)), step.said, "{name}, case {number}, at {}", step.at_us);
                    checked += 1;
                }
            }
        }
        assert!(checked > 100, "{name} has only {checked} checks");
    }
}

/// Every vector of several limits on one request.
pub(crate) fn request_vectors(store: &impl Store) {
    for (number, line) in lines("request").iter().enumerate() {
        let case: RequestCase = serde_json::from_str(line).expect("a case");
        let key = format!("request:{number}");
        let mut limits: Vec<Budget> =
            case.limits.iter().enumerate().map(|(i, shape)| shaped(&format!("l{i}"), shape)).collect();
        store.adopt(&mut limits).expect("the store has room for these budgets");
        for step in case.steps {
            let charges: Vec<Charge<'_>> = limits.iter().map(|limit| on(limit, key.as_bytes(), step.cost)).collect();
            let charged = charge(store, &charges, step.at_us);
            let said: Vec<Said> = charged.answers.iter().map(|answered| Said::from(answered.decision)).collect();
            assert_eq!((charged.allowed, said), (step.allowed, step.limits), "case {number} at {}", step.at_us);
        }
    }
}

/// A refused request costs nobody's budget, in whatever order its limits stand.
pub(crate) fn a_refusal_costs_nothing(store: &impl Store) {
    for (i, text) in ALGORITHMS.into_iter().enumerate() {
        let names = [format!("wide{i}"), format!("none-left{i}")];
        let [wide, spent] = adopt(store, [rate(&names[0], text), rate(&names[1], "2/d")]);
        assert!(one(store, &spent, b"k", NOW, 2).decision.allowed());
        for charges in [[on(&wide, b"k", 5), on(&spent, b"k", 1)], [on(&spent, b"k", 1), on(&wide, b"k", 5)]] {
            let charged = charge(store, &charges, NOW);
            assert!(!charged.allowed);
            let said: Vec<bool> = charged.answers.iter().map(|answered| answered.decision.allowed()).collect();
            assert_eq!(said.iter().filter(|allowed| **allowed).count(), 1, "each says what it would have said alone");
        }
        assert_eq!(remaining(store, &wide, b"k", NOW), 1000, "{text}");
    }
}

/// A shadow budget that refuses stops nobody and is not charged; one that has room is.
pub(crate) fn shadows_count_and_stop_nobody(store: &impl Store) {
    let shadow = |budget: Budget| Budget { shadow: true, ..budget };
    let [real, tight, roomy] =
        adopt(store, [rate("real", "10/d"), shadow(rate("tight", "1/d")), shadow(rate("roomy", "9/d"))]);
    let charges = [on(&real, b"k", 1), on(&tight, b"k", 1), on(&roomy, b"k", 1)];
    assert!(charge(store, &charges, NOW).answers.iter().all(|answered| answered.decision.allowed()));
    let second = charge(store, &charges, NOW);
    assert!(second.allowed && !second.answers[1].decision.allowed());
    let left = [&real, &tight, &roomy].map(|budget| remaining(store, budget, b"k", NOW));
    assert_eq!(left, [8, 0, 7]);
    // And what an enforced limit refuses is charged to no shadow.
    assert!(!charge(store, &[on(&real, b"k", 9), on(&roomy, b"k", 1)], NOW).allowed);
    assert_eq!(remaining(store, &roomy, b"k", NOW), 7);
}

/// No two different keys and no two different names share a bucket.
pub(crate) fn keys_and_names_are_apart(store: &impl Store) {
    let [a, b] = adopt(store, [rate("a", "1/d"), rate("b", "1/d")]);
    let long = vec![b'x'; 65_536];
    let keys: [&[u8]; 8] = [b"", b"\0", b"\0\0", b"}", b"{}", b"a", b"a:b", &long];
    for budget in [&a, &b] {
        for key in keys {
            assert!(
                one(store, budget, key, NOW, 1).decision.allowed(),
                "{} {:?}",
                budget.name,
                &key[..key.len().min(4)]
            );
            assert!(!one(store, budget, key, NOW, 1).decision.allowed());
        }
    }
}

/// A charge older than its bucket is judged at the bucket's time and never moves it back.
pub(crate) fn time_never_runs_backwards(store: &impl Store) {
    for (i, text) in ALGORITHMS.into_iter().enumerate() {
        let [limit] = adopt(store, [rate(&format!("back{i}"), text)]);
        let before = one(store, &limit, b"k", NOW, 1000);
        let older = one(store, &limit, b"k", NOW - 3_600_000_000, 1);
        assert!(!older.decision.allowed() && older.taken.at_us == NOW, "{text}");
        assert_eq!(older.decision.reset_us, before.decision.reset_us, "{text}");
    }
}

/// What can never pass says so, and a peek takes nothing.
pub(crate) fn peeks_and_nevers(store: &impl Store) {
    let [limit, none] = adopt(store, [rate("some", "5/min"), rate("nothing", "none")]);
    assert_eq!(one(store, &limit, b"k", NOW, 6).decision.retry_us(), None);
    assert_eq!(one(store, &none, b"k", NOW, 1).decision.retry_us(), None);
    assert!(one(store, &none, b"k", NOW, 0).decision.allowed());
    assert!((0..20).all(|_| one(store, &limit, b"k", NOW, 0).decision.remaining == 5));
}

/// Another plan of the same limit is the same bucket: units used are kept.
pub(crate) fn a_change_of_plan_keeps_the_units_used(store: &impl Store) {
    for algorithm in ["", " fixed-window", " sliding-window", " sliding-log"] {
        let name = format!("plan{algorithm}");
        let [free, pro] =
            adopt(store, [rate(&name, &format!("10/h{algorithm}")), rate(&name, &format!("30/h{algorithm}"))]);
        assert!(one(store, &free, b"k", NOW, 10).decision.allowed());
        assert_eq!(remaining(store, &pro, b"k", NOW), 20, "{algorithm}");
        assert_eq!(remaining(store, &free, b"k", NOW), 0, "{algorithm}");
    }
}

/// What is in flight, in a random history: never more than there are places, whoever ends when; a place that nobody gives
/// back is free after its hold, and what is given back too late, or twice, is nobody's.
pub(crate) fn places_come_back(store: &impl Store) {
    for (number, places) in [1, 4, 70].into_iter().enumerate() {
        let hold = 200 * u64::from(places);
        let quota = Quota::at_once(places, hold).expect("a quota");
        let [limit] = adopt(store, [budget(&format!("places{number}"), quota)]);
        let (mut under_way, mut over, mut now) = (Vec::<Answered>::new(), Vec::<Answered>::new(), NOW);
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut refused = 0;
        for _ in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let pick = usize::try_from(random >> 40).expect("24 bits");
            now += (random >> 33) % 4 * (random >> 35) % 40;
            over.extend(under_way.extract_if(.., |one| one.taken.at_us + hold <= now));
            match pick % 5 {
                0..3 => {
                    let said = one(store, &limit, b"k", now, 1);
                    let free = places as usize - under_way.len();
                    assert_eq!(said.decision.allowed(), free > 0, "{places} places, {free} free");
                    assert_eq!(said.decision.remaining, free.saturating_sub(1) as u64);
                    refused += u32::from(free == 0);
                    under_way.extend(said.decision.allowed().then_some(said));
                }
                3 if !under_way.is_empty() => {
                    let done = under_way.swap_remove(pick / 5 % under_way.len());
                    settle(store, &on(&limit, b"k", 1), done.taken, now, -1);
                    // Two of one moment are one admission, so a second time would be the other's.
                    over.extend((!under_way.iter().any(|one| one.taken == done.taken)).then_some(done));
                }
                _ if !over.is_empty() => {
                    let late = over.swap_remove(pick / 5 % over.len());
                    if under_way.iter().all(|one| one.taken != late.taken) {
                        settle(store, &on(&limit, b"k", 1), late.taken, now, -1);
                    }
                }
                _ => {}
            }
            assert_eq!(remaining(store, &limit, b"k", now), u64::from(places) - under_way.len() as u64);
        }
        assert!(refused > 100, "{places}: {refused}");
    }
}

/// Many threads, two limits: exactly the smaller is admitted, and the larger has paid for no more than that.
pub(crate) fn all_or_nothing_under_contention<S: Store>(store: &Arc<S>) {
    for (i, text) in ALGORITHMS.into_iter().enumerate() {
        let names = [format!("thousand{i}"), format!("seven-hundred{i}")];
        let small = text.replace("1000", "700");
        let [a, b] = adopt(&**store, [rate(&names[0], text), rate(&names[1], &small)]);
        let admitted: usize = std::thread::scope(|scope| {
            let worker = |reversed: bool| {
                let (a, b) = (&a, &b);
                scope.spawn(move || {
                    let charges =
                        if reversed { [on(b, b"k", 1), on(a, b"k", 1)] } else { [on(a, b"k", 1), on(b, b"k", 1)] };
                    (0..1250).filter(|_| charge(&**store, &charges, NOW).allowed).count()
                })
            };
            let workers: Vec<_> = [false, true, false, true].map(worker).into();
            workers.into_iter().map(|worker| worker.join().expect("no panic")).sum()
        });
        assert_eq!((admitted, remaining(&**store, &a, b"k", NOW)), (700, 300), "{text}");
    }
}

#[cfg(not(shuttle))]
/// The suite for a store that `$make` makes, each test with a fresh one.
macro_rules! suite {
    ($make:expr) => {
        $crate::suite::suite!(@each $make; vectors, request_vectors, a_refusal_costs_nothing, shadows_count_and_stop_nobody,
            keys_and_names_are_apart, time_never_runs_backwards, peeks_and_nevers,
            a_change_of_plan_keeps_the_units_used, places_come_back);

        #[test]
        fn all_or_nothing_under_contention() {
            suite::all_or_nothing_under_contention(&std::sync::Arc::new($make));
        }
    };
    (@each $make:expr; $($test:ident),*) => {
        $(#[test]
        fn $test() {
            suite::$test(&$make);
        })*
    };
}
#[cfg(not(shuttle))]
pub(crate) use suite;
