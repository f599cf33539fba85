//! The time of every admission: at most the amount in every interval (t - period, t]. The strict one.
//!
//! A log needs memory for each admission, so it lives with the store, behind [`Log`]. `step` only judges; `commit`
//! writes what was judged.

use crate::{Decision, Outcome, Quota};

/// Units admitted at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// When, in Unix microseconds.
    pub at_us: u64,
    /// How many units, at least 1.
    pub units: u64,
}

/// Where the admissions of one bucket are kept, oldest first, each moment once.
pub trait Log {
    /// The sum of all units.
    fn total(&self) -> u64;
    /// The last admission.
    fn newest(&self) -> Option<Admission>;
    /// Every admission, oldest first.
    fn admissions(&self) -> impl Iterator<Item = Admission>;
    /// Adds units at a moment not before the newest; the same moment is one admission.
    fn push(&mut self, admission: Admission);
    /// Takes this many units away, from the oldest on.
    fn trim(&mut self, units: u64);
    /// Adds or takes units of the admission at exactly this moment, which is removed when none are left.
    fn correct(&mut self, at_us: u64, delta: i64);
}

/// Judges `cost` units at `now_us`.
pub fn step(quota: &Quota, log: &impl Log, now_us: u64, cost: u32) -> Decision {
    let (period, limit, cost) = (quota.period_us(), quota.capacity(), u64::from(cost));
    let newest = log.newest();
    let now_us = now_us.max(newest.map_or(0, |newest| newest.at_us));
    let live = || log.admissions().skip_while(move |old| old.at_us + period <= now_us);
    let used = log.total() - expired(log, period, now_us);
    let wait = |at_us: u64| at_us + period - now_us;

    let outcome = if cost == 0 || used + cost <= limit {
        Outcome::Allow
    } else if cost > limit {
        Outcome::Never
    } else {
        let mut must_go = used + cost - limit;
        let last = live().find(|old| {
            must_go = must_go.saturating_sub(old.units);
            must_go == 0
        });
        Outcome::Deny { retry_us: last.map_or(0, |last| wait(last.at_us)) }
    };
    let taken = if outcome == Outcome::Allow { cost } else { 0 };
    let reset_us = if taken > 0 { period } else { newest.filter(|_| used > 0).map_or(0, |newest| wait(newest.at_us)) };
    let more_us = live().next().map_or(reset_us, |oldest| wait(oldest.at_us));
    Decision::new(outcome, limit.saturating_sub(used + taken), reset_us, more_us)
}

/// Writes an allowed charge, and forgets what is over.
pub fn commit(quota: &Quota, log: &mut impl Log, now_us: u64, cost: u32) {
    let now_us = now_us.max(log.newest().map_or(0, |newest| newest.at_us));
    log.trim(expired(log, quota.period_us(), now_us));
    if cost > 0 {
        log.push(Admission { at_us: now_us, units: u64::from(cost) });
    }
}

/// Corrects by `delta` what was taken at exactly `at_us`; nothing when that is over.
pub fn settle(quota: &Quota, log: &mut impl Log, at_us: u64, now_us: u64, delta: i64) {
    commit(quota, log, now_us, 0);
    if at_us.saturating_add(quota.period_us()) <= now_us {
        return; // in a log that is coarser than its moments, what is left is of others
    }
    let room = (2 * quota.capacity()).saturating_sub(log.total());
    log.correct(at_us, delta.min(i64::try_from(room).unwrap_or(i64::MAX)));
}

/// Carries the admissions to `new`; when there are more than it holds, the oldest go.
pub fn requota(old: &Quota, new: &Quota, log: &mut impl Log, now_us: u64) {
    commit(old, log, now_us, 0);
    log.trim(log.total().saturating_sub(new.capacity()));
}

/// The moment when the last admission is over.
pub fn full_at(quota: &Quota, log: &impl Log) -> u64 {
    log.newest().map_or(0, |newest| newest.at_us.saturating_add(quota.period_us()))
}

fn expired(log: &impl Log, period: u64, now_us: u64) -> u64 {
    log.admissions().take_while(|old| old.at_us + period <= now_us).map(|old| old.units).sum()
}
