//! Quotas and arrivals for properties: everyday ones, and those at the bounds.

use proptest::prelude::*;
use tope_core::{Algorithm, Calendar, Quota};

use super::Bucket;

/// A number up to `most`, of any length alike, and often at an end.
pub(crate) fn any_length(most: u64) -> impl Strategy<Value = u64> {
    let bits = 64 - most.leading_zeros();
    prop_oneof![
        6 => (1..=bits, any::<u64>()).prop_map(move |(bits, number)| (number >> (64 - bits)).clamp(1, most)),
        1 => Just(1),
        1 => Just(most),
        1 => Just(most - 1),
    ]
}

fn periods() -> impl Strategy<Value = u64> {
    let usual = prop_oneof![Just(1_000_000_u64), Just(60_000_000), Just(3_600_000_000), Just(86_400_000_000)];
    prop_oneof![2 => usual, 1 => any_length(Quota::MAX_PERIOD_US)]
}

/// Quotas of one algorithm; what is beyond a bound is no quota and is tried again.
pub(crate) fn quotas(algorithm: Algorithm) -> impl Strategy<Value = Quota> {
    let amounts = prop_oneof![1 => 1..60_u64, 1 => any_length(Quota::MAX_AMOUNT)];
    let bursts = proptest::option::of(prop_oneof![1..100_u64, any_length(Quota::MAX_AMOUNT)]);
    (amounts, periods(), bursts).prop_filter_map("beyond a bound", move |(amount, period_us, burst)| {
        let burst = burst.filter(|_| algorithm == Algorithm::TokenBucket);
        Quota::new(algorithm, amount, period_us, burst).ok()
    })
}

/// Fresh buckets of every algorithm.
pub(crate) fn buckets() -> impl Strategy<Value = Bucket> {
    let fresh = |algorithm| quotas(algorithm).prop_map(|quota| Bucket::new(quota, Vec::new()));
    prop_oneof![
        2 => fresh(Algorithm::TokenBucket),
        1 => fresh(Algorithm::FixedWindow),
        2 => fresh(Algorithm::SlidingWindow),
        2 => fresh(Algorithm::SlidingLog),
        1 => calendars(),
    ]
}

fn calendars() -> impl Strategy<Value = Bucket> {
    let days = proptest::collection::vec(23 * 3_600_000_000_u64..=25 * 3_600_000_000, 1..8);
    (1..60_u64, days).prop_map(|(amount, days)| {
        let quota = Quota::calendar(amount, Calendar::Day).expect("a quota");
        let edges = days.iter().scan(1_790_000_000_000_000, |edge, day| {
            *edge += day;
            Some(*edge)
        });
        Bucket::new(quota, edges.chain([LAST + 1, LAST + 3_600_000_000]).collect())
    })
}

/// One arrival, to be placed by the quota that it meets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    gap: u8,
    cost: u8,
    random: u64,
}

pub(crate) fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let arrival = (0..10_u8, 0..16_u8, any::<u64>()).prop_map(|(gap, cost, random)| Arrival { gap, cost, random });
    proptest::collection::vec(arrival, 1..40)
}

/// When a trace begins.
pub(crate) fn starts() -> impl Strategy<Value = u64> {
    prop_oneof![4 => Just(1_790_000_000_000_000_u64), 1 => any_length(LAST), 1 => Just(0)]
}

/// The last moment at which anything arrives: what is promised for then can still be told.
pub(crate) const LAST: u64 = Quota::MAX_TIME_US - 2 * Quota::MAX_PERIOD_US;

impl Arrival {
    /// The moment of this arrival after `now_us`: at once, about a unit later, at a window's edge, long after.
    pub(crate) fn time(self, quota: &Quota, now_us: u64) -> u64 {
        let (period, unit) = (quota.period_us(), (quota.period_us() / quota.amount()).max(1));
        let later = match self.gap {
            0..=3 => now_us,
            4 | 5 => now_us + 1 + self.random % (2 * unit),
            6 => now_us + unit,
            7 => ((now_us / period + 1) * period + self.random % 3).saturating_sub(1),
            8 => now_us + self.random % period,
            _ => now_us + self.random % (3 * period),
        };
        later.clamp(now_us, LAST.max(now_us))
    }

    /// Mostly a unit; sometimes none, many, all, or more than all.
    pub(crate) fn cost(self, quota: &Quota) -> u32 {
        let cost = match self.cost {
            0..=7 => 1,
            8 => 0,
            9 => 2,
            10 | 11 => quota.capacity() / 2,
            12 | 13 => quota.capacity(),
            14 => quota.capacity() + 1,
            _ => self.random,
        };
        u32::try_from(cost).unwrap_or(u32::MAX)
    }
}
