//! Six ways to count, each a pure step: `(quota, state, now, cost) -> (decision, state)`.
//!
//! Each room has the same verbs in the same order: `step` judges and says what the state would become, `settle`
//! corrects what was taken earlier, `requota` carries the units used to another quota, `full_at` tells when a
//! bucket is full again, which makes it equal to a bucket that was never there.
//!
//! | room | state |
//! |---|---|
//! | [`token_bucket`] | debt in ticks |
//! | [`fixed_window`] | units used in the window of `time_us`; a calendar period is one between given edges |
//! | [`sliding_window`] | units of the window of `time_us` and of the one before, 32 bits each |
//! | [`sliding_log`] | each admission; lives behind the [`sliding_log::Log`] trait, not in a [`State`] |
//! | [`concurrency`] | the admissions that are still under way, in such a log |
//!
//! Time never runs backwards in a bucket: a step older than its state is judged at the state's time.

pub mod concurrency;
pub mod fixed_window;
pub mod sliding_log;
pub mod sliding_window;
pub mod token_bucket;

use crate::{Algorithm, Decision, Period, Quota};

/// What is remembered of one bucket: 128 bits, of which the time uses 53.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The moment of the last change, in Unix microseconds.
    pub time_us: u64,
    /// What was used, in the algorithm's own form; 0 is nothing.
    pub units: u64,
}

impl State {
    /// A full budget: the state of a bucket that nobody has asked yet.
    pub const FULL: Self = Self { time_us: 0, units: 0 };
}

/// The window of a moment: from `start_us`, which belongs to it, to `end_us`, which does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first moment in it.
    pub start_us: u64,
    /// The first moment after it.
    pub end_us: u64,
}

impl Window {
    /// The window of `now_us`: aligned to Unix time, or between two of the ascending `edges` for a calendar period.
    /// Before the first edge and after the last there is one long window.
    pub fn of(quota: &Quota, edges: &[u64], now_us: u64) -> Self {
        match quota.period() {
            Period::Rolling(period) => {
                let start_us = now_us - now_us % period;
                Self { start_us, end_us: start_us + period }
            }
            Period::Calendar(_) => {
                let after = edges.partition_point(|edge| *edge <= now_us);
                Self {
                    start_us: after.checked_sub(1).map_or(0, |before| edges[before]),
                    end_us: edges.get(after).copied().unwrap_or(Quota::MAX_TIME_US + 1),
                }
            }
        }
    }
}

/// Judges a charge of `cost` units at `now_us` and says what the state becomes if it is taken. The state comes back
/// as it was when the charge is refused or is a peek (cost 0). `edges` are those of a calendar period, else empty.
///
/// A log is no [`State`]: this counts it as the token bucket of its amount and period would; use [`step_log`].
#[inline]
pub fn step(quota: &Quota, edges: &[u64], state: State, now_us: u64, cost: u32) -> (Decision, State) {
    match quota.algorithm() {
        Algorithm::FixedWindow => fixed_window::step(quota, edges, state, now_us, cost),
        Algorithm::SlidingWindow => sliding_window::step(quota, state, now_us, cost),
        _ => token_bucket::step(quota, state, now_us, cost),
    }
}

/// The same for a quota whose buckets are [logs](Algorithm::is_log); what is allowed is written by
/// [`sliding_log::commit`].
pub fn step_log(quota: &Quota, log: &impl sliding_log::Log, now_us: u64, cost: u32) -> Decision {
    match quota.algorithm() {
        Algorithm::Concurrency => concurrency::step(quota, log, now_us, cost),
        _ => sliding_log::step(quota, log, now_us, cost),
    }
}

/// Corrects at `now_us` what was taken at `at_us`: fewer units (`delta` below 0, never above full) or more (a budget
/// may then owe up to one capacity). What belongs to a window that is over is ignored.
pub fn settle(quota: &Quota, edges: &[u64], state: State, at_us: u64, now_us: u64, delta: i64) -> State {
    match quota.algorithm() {
        Algorithm::FixedWindow => fixed_window::settle(quota, edges, state, at_us, now_us, delta),
        Algorithm::SlidingWindow => sliding_window::settle(quota, state, at_us, now_us, delta),
        _ => token_bucket::settle(quota, state, now_us, delta),
    }
}

/// Carries a state written under `old` to `new` at `now_us`: the units used are kept, at most the new capacity.
/// Another algorithm or another window starts fresh. `edges` belong to both.
pub fn requota(old: &Quota, new: &Quota, edges: &[u64], state: State, now_us: u64) -> State {
    if old.algorithm() != new.algorithm() {
        return State::FULL;
    }
    match new.algorithm() {
        Algorithm::FixedWindow => fixed_window::requota(old, new, edges, state, now_us),
        Algorithm::SlidingWindow => sliding_window::requota(old, new, state, now_us),
        _ => token_bucket::requota(old, new, state, now_us),
    }
}

/// The moment from which this state equals [`State::FULL`], if nothing more arrives.
pub fn full_at(quota: &Quota, edges: &[u64], state: State) -> u64 {
    match quota.algorithm() {
        Algorithm::FixedWindow => fixed_window::full_at(quota, edges, state),
        Algorithm::SlidingWindow => sliding_window::full_at(quota, state),
        _ => token_bucket::full_at(quota, state),
    }
}

/// `units` corrected by `delta`, between nothing and twice the capacity: a budget may owe one capacity.
pub(crate) fn corrected(units: u64, delta: i64, capacity: u64) -> u64 {
    units.saturating_add_signed(delta).min(2 * capacity)
}
