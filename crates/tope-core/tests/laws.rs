//! The laws of every algorithm, over random quotas up to the bounds and random arrivals.

mod model;

use model::Bucket;
use model::shapes::{Arrival, any_length, arrivals, buckets, quotas, starts};
use proptest::prelude::*;
use tope_core::{Algorithm, Calendar, Decision, Outcome, Quota, QuotaError};

/// Sends the arrivals and hands each to `look`: the bucket before, the moment, the cost, the decision, the bucket after.
fn drive(
    mut bucket: Bucket,
    mut now_us: u64,
    arrivals: &[Arrival],
    mut look: impl FnMut(&Bucket, u64, u32, Decision, &Bucket) -> Result<(), TestCaseError>,
) -> Result<Bucket, TestCaseError> {
    for arrival in arrivals {
        now_us = arrival.time(&bucket.quota, now_us);
        let cost = arrival.cost(&bucket.quota);
        let before = bucket.clone();
        let decision = bucket.check(now_us, cost);
        look(&before, now_us, cost, decision, &bucket)?;
    }
    Ok(bucket)
}

fn peek(bucket: &Bucket, at_us: u64) -> Decision {
    bucket.clone().check(at_us, 0)
}

/// The worst excess of a trace over burst + rate x length, over every interval, in units x period: the one pass of
/// the oracle's `audit`.
fn excess(quota: &Quota, admitted: &[(u64, u32)]) -> i128 {
    let (amount, period) = (i128::from(quota.amount()), i128::from(quota.period_us()));
    let (mut total, mut low, mut worst) = (0_i128, i128::MAX, i128::MIN);
    for (at_us, cost) in admitted {
        let allowed = amount * i128::from(*at_us);
        low = low.min(total * period - allowed);
        total += i128::from(*cost);
        worst = worst.max(total * period - allowed - low - i128::from(quota.capacity()) * period);
    }
    worst
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn refused_until_exactly_the_moment_we_said(bucket in buckets(), start in starts(), arrivals in arrivals()) {
        drive(bucket, start, &arrivals, |before, now_us, cost, decision, _| {
            let capacity = before.quota.capacity();
            prop_assert_eq!(decision.outcome() == Outcome::Never, u64::from(cost) > capacity);
            if let Outcome::Deny { retry_us } = decision.outcome() {
                prop_assert!(retry_us > 0);
                let early = before.clone().check(now_us + retry_us - 1, cost);
                prop_assert_eq!(early.retry_us(), Some(if retry_us == 1 { retry_us } else { 1 }));
                prop_assert!(before.clone().check(now_us + retry_us, cost).allowed());
            }
            Ok(())
        })?;
    }

    #[test]
    fn full_exactly_when_we_said(bucket in buckets(), start in starts(), arrivals in arrivals(), later: u32) {
        drive(bucket, start, &arrivals, |_, now_us, _, decision, after| {
            let (capacity, reset) = (after.quota.capacity(), decision.reset_us);
            let full = peek(after, now_us + reset);
            prop_assert_eq!((full.remaining, full.reset_us), (capacity, 0));
            if reset > 0 {
                let nearly = peek(after, now_us + reset - 1);
                prop_assert_eq!(nearly.reset_us, 1);
                prop_assert!(nearly.remaining < capacity);
                prop_assert_eq!(after.full_at(), now_us + reset);
            } else {
                prop_assert!(after.full_at() <= now_us);
            }
            let at_us = after.full_at().max(now_us) + u64::from(later) % 3;
            for cost in [1, u32::try_from(capacity).unwrap_or(u32::MAX)] {
                let mut fresh = Bucket::new(after.quota, after.edges.clone());
                prop_assert_eq!(after.clone().check(at_us, cost), fresh.check(at_us, cost));
            }
            Ok(())
        })?;
    }

    #[test]
    fn more_is_left_exactly_when_we_said(bucket in buckets(), start in starts(), arrivals in arrivals()) {
        drive(bucket, start, &arrivals, |_, now_us, _, decision, after| {
            let more_us = decision.more_us(&after.quota);
            if decision.remaining == after.quota.capacity() {
                return Ok(());
            }
            prop_assert!(more_us > 0 && more_us <= decision.reset_us, "{more_us} of {}", decision.reset_us);
            // A bucket's is made from its reset, which was rounded up already: it may be a microsecond late.
            let slack = u64::from(after.quota.algorithm() == Algorithm::TokenBucket);
            prop_assert_eq!(peek(after, now_us + more_us.saturating_sub(1 + slack)).remaining, decision.remaining);
            prop_assert!(peek(after, now_us + more_us).remaining > decision.remaining);
            Ok(())
        })?;
    }

    #[test]
    fn a_peek_and_a_refusal_change_nothing(bucket in buckets(), start in starts(), arrivals in arrivals()) {
        drive(bucket, start, &arrivals, |before, now_us, cost, decision, after| {
            prop_assert!(decision.remaining <= after.quota.capacity());
            let at_once = peek(before, now_us);
            if cost == 0 {
                prop_assert!(decision.allowed());
            }
            if cost == 0 || !decision.allowed() {
                prop_assert_eq!(before, after);
                prop_assert_eq!((decision.remaining, decision.reset_us), (at_once.remaining, at_once.reset_us));
            } else {
                prop_assert_eq!(decision.remaining, at_once.remaining - u64::from(cost));
            }
            Ok(())
        })?;
    }

    #[test]
    fn what_is_admitted_stays_within_the_promise(bucket in buckets(), start in starts(), arrivals in arrivals()) {
        let mut admitted = Vec::new();
        let bucket = drive(bucket, start, &arrivals, |_, now_us, cost, decision, _| {
            if decision.allowed() {
                admitted.push((now_us, cost));
            }
            Ok(())
        })?;
        let (quota, edges) = (bucket.quota, &bucket.edges);
        let within = |from_us: u64, to_us: u64| -> u64 {
            admitted.iter().filter(|(at, _)| (from_us..to_us).contains(at)).map(|(_, cost)| u64::from(*cost)).sum()
        };
        for (at_us, _) in &admitted {
            let most = match quota.algorithm() {
                Algorithm::TokenBucket | Algorithm::SlidingWindow => {
                    prop_assert!(excess(&quota, &admitted) <= 0);
                    break;
                }
                Algorithm::SlidingLog | Algorithm::Concurrency => within(*at_us, at_us + quota.period_us()),
                Algorithm::FixedWindow => {
                    let window = tope_core::Window::of(&quota, edges, *at_us);
                    within(window.start_us, window.end_us)
                }
            };
            prop_assert!(most <= quota.capacity(), "{most} units");
        }
    }

    #[test]
    fn an_older_time_is_judged_at_the_buckets_own(
        bucket in buckets(), start in starts(), arrivals in arrivals(), back: u64,
    ) {
        let mut last_us = None;
        drive(bucket, start, &arrivals, |before, _, cost, _, after| {
            if let Some(last_us) = last_us {
                let (mut old, mut own) = (before.clone(), before.clone());
                prop_assert_eq!(old.check(back % (last_us + 1), cost), own.check(last_us, cost));
                prop_assert_eq!(old, own);
            }
            last_us = if before == after { last_us } else { Some(after.time_us()) };
            Ok(())
        })?;
    }

    #[test]
    fn a_correction_never_lifts_above_full_nor_owes_more_than_a_capacity(
        bucket in buckets(), start in starts(), arrivals in arrivals(), delta: i64,
    ) {
        let capacity = i64::try_from(bucket.quota.capacity()).expect("a capacity");
        drive(bucket, start, &arrivals, |_, now_us, cost, decision, after| {
            let settled = |deltas: &[i64]| {
                let mut bucket = after.clone();
                for delta in deltas {
                    bucket.settle(now_us, now_us, *delta);
                }
                bucket.check(now_us, 0).remaining
            };
            prop_assert!(settled(&[delta]) <= after.quota.capacity());
            prop_assert!(settled(&[i64::MIN]) >= decision.remaining);
            if decision.allowed() && cost > 0 {
                prop_assert_eq!(settled(&[-1]), decision.remaining + 1);
                prop_assert_eq!(settled(&[-i64::from(cost)]), decision.remaining + u64::from(cost));
                // It owes one capacity and no more: with that back it has nothing, and with one more it has one.
                if after.quota.algorithm() != Algorithm::SlidingWindow {
                    prop_assert_eq!(settled(&[i64::MAX, -capacity]), 0);
                    prop_assert_eq!(settled(&[i64::MAX, -capacity, -1]), 1);
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_correction_of_what_is_over_is_ignored(bucket in buckets(), start in starts(), arrivals in arrivals(), delta: i64) {
        prop_assume!(bucket.quota.algorithm() != Algorithm::TokenBucket);
        drive(bucket, start, &arrivals, |_, now_us, _, _, after| {
            let later_us = now_us + 2 * after.quota.period_us();
            let mut settled = after.clone();
            settled.settle(now_us, later_us, delta);
            if tope_core::Window::of(&after.quota, &after.edges, now_us).end_us <= later_us {
                prop_assert_eq!(settled.check(later_us, 1), after.clone().check(later_us, 1));
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_reload_keeps_the_units_used(
        bucket in buckets(), start in starts(), arrivals in arrivals(), amount in any_length(Quota::MAX_AMOUNT),
    ) {
        let old = bucket.quota;
        let new = match old.period() {
            tope_core::Period::Calendar(calendar) => Quota::calendar(amount, calendar),
            tope_core::Period::Rolling(period_us) => Quota::new(old.algorithm(), amount, period_us, None),
        };
        prop_assume!(new.is_ok());
        let new = new.expect("assumed");
        drive(bucket, start, &arrivals, |_, now_us, _, decision, after| {
            let mut reloaded = after.clone();
            reloaded.requota(new, now_us);
            let used = (old.capacity() - decision.remaining).min(new.capacity());
            let left = reloaded.check(now_us, 0).remaining;
            // Each of a sliding window's two counters is kept, at most the new capacity.
            if old.algorithm() != Algorithm::SlidingWindow || new.capacity() >= old.capacity() {
                prop_assert_eq!(left, new.capacity() - used);
            } else {
                prop_assert!(left >= new.capacity() - used);
            }
            Ok(())
        })?;
    }

    #[test]
    fn another_rate_of_a_bucket_keeps_the_units_used(
        old in quotas(Algorithm::TokenBucket), new in quotas(Algorithm::TokenBucket), arrivals in arrivals(), start in starts(),
    ) {
        drive(Bucket::new(old, Vec::new()), start, &arrivals, |_, now_us, _, decision, after| {
            let mut reloaded = after.clone();
            reloaded.requota(new, now_us);
            let used = (old.capacity() - decision.remaining).min(new.capacity());
            prop_assert_eq!(reloaded.check(now_us, 0).remaining, new.capacity() - used);
            Ok(())
        })?;
    }

    #[test]
    fn a_quota_is_refused_by_the_name_of_its_bound(
        amount in prop_oneof![any_length(Quota::MAX_AMOUNT), any::<u64>()],
        period_us in prop_oneof![any_length(Quota::MAX_PERIOD_US), any::<u64>()],
        burst in proptest::option::of(prop_oneof![any_length(Quota::MAX_AMOUNT), any::<u64>()]),
        algorithm in prop_oneof![
            Just(Algorithm::TokenBucket), Just(Algorithm::FixedWindow),
            Just(Algorithm::SlidingWindow), Just(Algorithm::SlidingLog),
        ],
    ) {
        let capacity = burst.unwrap_or(amount);
        let bucket = algorithm == Algorithm::TokenBucket;
        match Quota::new(algorithm, amount, period_us, burst) {
            Ok(quota) => {
                prop_assert!(amount <= Quota::MAX_AMOUNT && capacity <= Quota::MAX_AMOUNT);
                prop_assert!((1..=Quota::MAX_PERIOD_US).contains(&period_us));
                prop_assert!(bucket || burst.is_none());
                prop_assert_eq!(quota.capacity(), if amount == 0 { 0 } else { capacity });
            }
            Err(QuotaError::Period(said)) => {
                prop_assert_eq!(said, period_us);
                prop_assert!(!(1..=Quota::MAX_PERIOD_US).contains(&period_us));
            }
            Err(QuotaError::Burst(said)) => prop_assert!(said == algorithm && !bucket && burst.is_some()),
            Err(QuotaError::Amount(said)) => {
                prop_assert!(said > Quota::MAX_AMOUNT && (said == amount || said == capacity));
            }
            Err(QuotaError::NoBurst) => prop_assert!(amount > 0 && capacity == 0),
            Err(QuotaError::Ticks(said)) => {
                prop_assert!(bucket && said == capacity);
                prop_assert!(u128::from(capacity) * u128::from(period_us) >= 1 << 63);
            }
            Err(QuotaError::Paired(said, units)) => {
                prop_assert!(said == algorithm && units == capacity && units >= 1 << 31);
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}

#[test]
fn the_bounds_are_where_they_are_said_to_be() {
    use Algorithm::{FixedWindow, SlidingLog, SlidingWindow, TokenBucket};
    let (most, longest) = (Quota::MAX_AMOUNT, Quota::MAX_PERIOD_US);
    assert!(Quota::new(FixedWindow, most, longest, None).is_ok());
    assert!(Quota::new(TokenBucket, most, 1, Some(most)).is_ok());
    assert_eq!(Quota::new(TokenBucket, 1, 0, None), Err(QuotaError::Period(0)));
    assert_eq!(Quota::new(TokenBucket, 1, longest + 1, None), Err(QuotaError::Period(longest + 1)));
    assert_eq!(Quota::new(FixedWindow, most + 1, 1, None), Err(QuotaError::Amount(most + 1)));
    assert_eq!(Quota::new(TokenBucket, 1, 1, Some(most + 1)), Err(QuotaError::Amount(most + 1)));
    assert_eq!(Quota::new(SlidingLog, 1, 1, Some(1)), Err(QuotaError::Burst(SlidingLog)));
    assert_eq!(Quota::new(TokenBucket, 1, 1, Some(0)), Err(QuotaError::NoBurst));
    let full = (1 << 63) / longest;
    assert!(Quota::new(TokenBucket, 1, longest, Some(full)).is_ok());
    assert_eq!(Quota::new(TokenBucket, 1, longest, Some(full + 1)), Err(QuotaError::Ticks(full + 1)));
    for algorithm in [SlidingWindow, SlidingLog] {
        assert!(Quota::new(algorithm, (1 << 31) - 1, longest, None).is_ok());
        assert_eq!(Quota::new(algorithm, 1 << 31, longest, None), Err(QuotaError::Paired(algorithm, 1 << 31)));
    }
    assert!(Quota::at_once((1 << 31) - 1, longest).is_ok());
    assert_eq!(Quota::at_once(1 << 31, 1), Err(QuotaError::Paired(Algorithm::Concurrency, 1 << 31)));
    for hold_us in [0, longest + 1] {
        assert_eq!(Quota::at_once(1, hold_us), Err(QuotaError::Hold(hold_us)));
    }
    assert!(Quota::calendar(most, Calendar::Month).is_ok());
    assert_eq!(Quota::calendar(most + 1, Calendar::Day), Err(QuotaError::Amount(most + 1)));
}
