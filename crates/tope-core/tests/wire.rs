//! Header text: read back by another's parser, true to the decision, worked examples.

mod model;

use model::Bucket;
use model::shapes::{Arrival, arrivals, buckets};
use proptest::prelude::*;
use sfv::{ListEntry, Parser};
use tope_core::wire::{draft, retry_after, text, triple, x_ratelimit};
use tope_core::{Algorithm, Decision, Entry, Outcome, Quota, Verdict};

const NOW: u64 = 1_790_000_000_000_000;
const NAMES: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];

fn state(verdict: &Verdict<'_>) -> String {
    let mut out = String::new();
    draft::write_state(&mut out, draft::listed(verdict)).expect("a string takes all");
    out
}

fn policy(verdict: &Verdict<'_>) -> String {
    let mut out = String::new();
    draft::write_policy(&mut out, draft::listed(verdict)).expect("a string takes all");
    out
}

/// The items of a list: the name and the parameters asked for.
fn items<const N: usize>(field: &str, keys: [&str; N]) -> Vec<(String, [Option<i64>; N])> {
    let list: sfv::List = Parser::new(field).parse().expect("a list");
    let read = |entry: &ListEntry| {
        let ListEntry::Item(item) = entry else { panic!("{field}: an inner list") };
        let name = item.bare_item.as_string().expect("a string").as_str().to_owned();
        assert!(item.params.keys().all(|key| keys.contains(&key.as_str())), "{field}");
        let number = |key: &str| item.params.get(key).map(|value| value.as_integer().expect("an integer").into());
        (name, keys.map(number))
    };
    list.iter().map(read).collect()
}

fn told(number: u64) -> i64 {
    i64::try_from(number.min(text::MAX_INTEGER)).expect("fifteen digits")
}

/// Buckets that have seen some traffic, and what each says of one more charge.
fn decisions(buckets: Vec<Bucket>, arrivals: &[Arrival], cost: u32) -> Vec<(Quota, Decision)> {
    let decide = |mut bucket: Bucket| {
        let mut now_us = NOW;
        for arrival in arrivals {
            now_us = arrival.time(&bucket.quota, now_us);
            bucket.check(now_us, arrival.cost(&bucket.quota));
        }
        (bucket.quota, bucket.check(now_us, cost))
    };
    buckets.into_iter().map(decide).collect()
}

fn entries(decisions: &[(Quota, Decision)], shadow: u16) -> Vec<Entry<'_>> {
    decisions
        .iter()
        .enumerate()
        .map(|(place, (quota, decision))| Entry {
            name: NAMES[place],
            quota,
            decision: *decision,
            enforced: shadow >> place & 1 == 0,
            policy_item: "",
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_as_the_same(
        buckets in proptest::collection::vec(buckets(), 0..12), arrivals in arrivals(),
        cost in prop_oneof![4 => Just(1_u32), 1 => 0..100_u32, 1 => any::<u32>()], shadow: u16,
    ) {
        let decisions = decisions(buckets, &arrivals, cost);
        let entries = entries(&decisions, shadow & shadow >> 1);
        let verdict = Verdict::new(&entries);
        let listed: Vec<&Entry<'_>> = draft::listed(&verdict).collect();
        let Some(leading) = listed.first() else {
            prop_assert!(verdict.enforced().next().is_none());
            prop_assert_eq!((state(&verdict), policy(&verdict)), (String::new(), String::new()));
            prop_assert_eq!(triple::values(&verdict), None);
            prop_assert_eq!(x_ratelimit::values(&verdict, NOW), None);
            return Ok(());
        };

        // Which limits, and in which order.
        let refuses = |entry: &&Entry<'_>| !entry.decision.allowed();
        let due = verdict.enforced().filter(|entry| verdict.allowed() || refuses(entry)).count();
        prop_assert_eq!(listed.len(), due.min(draft::MOST));
        prop_assert!(listed.iter().all(|entry| entry.enforced && (verdict.allowed() || refuses(entry))));
        prop_assert!(std::ptr::eq(*leading, verdict.leading().expect("a limit")));
        prop_assert!(listed[1..].is_sorted_by_key(|entry| entry.name));

        // Each value.
        let states = items(&state(&verdict), ["r", "t"]);
        let policies = items(&policy(&verdict), ["q", "w"]);
        prop_assert_eq!((states.len(), policies.len()), (listed.len(), listed.len()));
        for ((entry, (name, [r, t])), (of, [q, w])) in listed.iter().zip(&states).zip(&policies) {
            let (decision, quota) = (entry.decision, entry.quota);
            prop_assert_eq!((name.as_str(), of.as_str()), (entry.name, entry.name));
            prop_assert_eq!((*r, *q), (Some(told(decision.remaining)), Some(told(quota.capacity()))));
            prop_assert_eq!(*w, quota.window_s().map(told));
            prop_assert!(*r >= Some(0) && r <= q, "{r:?} of {q:?}");
            prop_assert!(*t >= Some(1));
            let t = u64::try_from(t.expect("just seen")).expect("not negative");
            if let Some(retry_after) = retry_after::value(&verdict) {
                prop_assert!(retry_after >= t || decision.outcome() == Outcome::Never, "{retry_after} < {t}");
            }
            // Never an invitation to more than the rate of a bucket.
            if decision.allowed() && quota.algorithm() == Algorithm::TokenBucket {
                let used = u128::from(decision.remaining) * u128::from(quota.period_us());
                prop_assert!(used <= u128::from(quota.amount()) * u128::from(t) * 1_000_000);
            }
        }

        // The single-valued dialects.
        let [limit, remaining, reset] = triple::values(&verdict).expect("a limit");
        prop_assert_eq!((limit, remaining), (leading.quota.capacity(), leading.decision.remaining));
        let ([x_limit, x_remaining, x_used, x_reset], name) = x_ratelimit::values(&verdict, NOW).expect("a limit");
        prop_assert_eq!((x_limit, x_remaining, name), (limit, remaining, leading.name));
        prop_assert_eq!(x_used, limit - remaining);
        prop_assert_eq!(x_reset, NOW / 1_000_000 + reset.max(1));
        if let Outcome::Deny { retry_us } = leading.decision.outcome() {
            prop_assert_eq!(retry_after::value(&verdict), Some(reset));
            prop_assert!(reset * 1_000_000 >= retry_us && (reset - 1) * 1_000_000 < retry_us);
        } else {
            prop_assert_eq!(retry_after::value(&verdict), None);
            prop_assert_eq!(reset, leading.decision.reset_us.div_ceil(1_000_000));
        }
    }

    #[test]
    fn numbers_are_written_as_numbers(number in (any::<u64>(), 0..64_u32).prop_map(|(number, bits)| number >> bits)) {
        let (mut digits, mut integer) = (String::new(), String::new());
        text::write_digits(&mut digits, number).expect("a string takes all");
        text::write_integer(&mut integer, number).expect("a string takes all");
        prop_assert_eq!(digits, number.to_string());
        prop_assert_eq!(integer, told(number).to_string());
    }

    #[test]
    fn any_name_makes_a_string(name: String) {
        let mut out = String::new();
        text::write_string(&mut out, &name).expect("a string takes all");
        let item: sfv::Item = Parser::new(&out).parse().expect("an item");
        let expected: String = name.chars().map(|char| if matches!(char, ' '..='~') { char } else { '_' }).collect();
        prop_assert_eq!(item.bare_item.as_string().map(sfv::StringRef::as_str), Some(&*expected));
    }
}

fn after(quota: &Quota, used: u32, at_us: u64, cost: u32) -> Decision {
    let mut bucket = Bucket::new(*quota, Vec::new());
    assert!(bucket.check(NOW, used).allowed());
    bucket.check(at_us, cost)
}

fn entry<'a>(name: &'a str, quota: &'a Quota, decision: Decision) -> Entry<'a> {
    Entry { name, quota, decision, enforced: true, policy_item: "" }
}

#[test]
fn one_bucket_with_a_part_of_a_unit() {
    // 60 units, 1/s, 41.3 left.
    let quota = Quota::per_minute(60).expect("a quota");
    let entries = [entry("default", &quota, after(&quota, 19, NOW + 1_300_000, 1))];
    let verdict = Verdict::new(&entries);
    assert_eq!(policy(&verdict), "\"default\";q=60;w=60");
    assert_eq!(state(&verdict), "\"default\";r=41;t=41");
    assert_eq!(triple::values(&verdict), Some([60, 41, 19]));
}

#[test]
fn two_windows() {
    let windows = |amount, period_s: u64| Quota::new(Algorithm::FixedWindow, amount, period_s * 1_000_000, None);
    let (ip, key) = (windows(600, 60).expect("a quota"), windows(1000, 3600).expect("a quota"));
    // 1740 s before the end of the hour, 59 s before that of the minute.
    let now_us = 1_790_002_800_000_000 - 1_740_000_000 + 1_000_000;
    let decide = |quota: &Quota, used: u32| {
        let mut bucket = Bucket::new(*quota, Vec::new());
        bucket.check(now_us, used - 1);
        bucket.check(now_us, 1)
    };
    let entries = [entry("ip", &ip, decide(&ip, 12)), entry("key", &key, decide(&key, 988))];
    let verdict = Verdict::new(&entries);
    assert_eq!(policy(&verdict), "\"key\";q=1000;w=3600, \"ip\";q=600;w=60");
    assert_eq!(state(&verdict), "\"key\";r=12;t=1739, \"ip\";r=588;t=59");
}

#[test]
fn the_refusal_of_the_article() {
    let quota: tope_core::Rate = "100/min".parse().expect("a rate");
    let tope_core::Rate::Quota(quota) = quota else { panic!("a quota") };
    // Refused for 20 units, which are back after twelve seconds.
    let entries = [entry("api", &quota, after(&quota, 100, NOW, 20))];
    let verdict = Verdict::new(&entries);
    assert_eq!(triple::values(&verdict), Some([100, 0, 12]));
    assert_eq!(retry_after::value(&verdict), Some(12));
    assert_eq!(state(&verdict), "\"api\";r=0;t=12");
}

#[test]
fn a_refusal_lists_only_what_refused() {
    let (burst, day) = (Quota::per_second(20).expect("a quota"), Quota::per_hour(1000).expect("a quota"));
    let entries = [entry("day", &day, after(&day, 20, NOW, 0)), entry("burst", &burst, after(&burst, 20, NOW, 1))];
    let verdict = Verdict::new(&entries);
    assert_eq!(policy(&verdict), "\"burst\";q=20;w=1");
    assert_eq!(state(&verdict), "\"burst\";r=0;t=1");
    assert_eq!(retry_after::value(&verdict), Some(1));
}

#[test]
fn a_full_budget_is_told_its_window() {
    for algorithm in ["token-bucket", "fixed-window", "sliding-window", "sliding-log"] {
        let rate = format!("100/min {algorithm}").parse().expect("a rate");
        let tope_core::Rate::Quota(quota) = rate else { panic!("a quota") };
        let entries = [entry("a", &quota, Bucket::new(quota, Vec::new()).check(NOW, 0))];
        assert_eq!(state(&Verdict::new(&entries)), "\"a\";r=100;t=60", "{algorithm}");
    }
}

#[test]
fn places_have_a_unit_and_no_time() {
    let quota = Quota::at_once(4, 600_000_000).expect("a quota");
    let mut bucket = Bucket::new(quota, Vec::new());
    let entries = [entry("uploads", &quota, bucket.check(NOW, 1))];
    let verdict = Verdict::new(&entries);
    assert_eq!(policy(&verdict), "\"uploads\";q=4;qu=\"concurrent-requests\"");
    assert_eq!((state(&verdict), triple::values(&verdict)), ("\"uploads\";r=3".to_owned(), Some([4, 3, 1])));
    let entries = [entry("uploads", &quota, bucket.check(NOW, 4))];
    let verdict = Verdict::new(&entries);
    // When a place will be free is known to those who have them.
    assert_eq!((state(&verdict), retry_after::value(&verdict)), ("\"uploads\";r=3".to_owned(), Some(1)));
    bucket.settle(NOW, NOW + 1, -1);
    let entries = [entry("uploads", &quota, bucket.check(NOW + 1, 4))];
    assert_eq!(triple::values(&Verdict::new(&entries)), Some([4, 0, 1]));
}

#[test]
fn no_window_is_told_below_a_second_and_no_time_where_none_helps() {
    let fast = Quota::new(Algorithm::TokenBucket, 10, 100_000, None).expect("a quota");
    let entries = [entry("fast", &fast, Bucket::new(fast, Vec::new()).check(NOW, 1))];
    assert_eq!(policy(&Verdict::new(&entries)), "\"fast\";q=10");
    assert_eq!(state(&Verdict::new(&entries)), "\"fast\";r=9;t=1");

    let entries = [entry("closed", &Quota::NONE, Bucket::new(Quota::NONE, Vec::new()).check(NOW, 1))];
    let verdict = Verdict::new(&entries);
    assert!(verdict.never());
    assert_eq!(state(&verdict), "\"closed\";r=0");
    assert_eq!(retry_after::value(&verdict), None);
}
