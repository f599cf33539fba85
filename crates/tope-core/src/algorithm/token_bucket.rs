//! A bucket of `burst` units, refilled continuously: at most `burst + rate x t` units in any interval of length t.
//!
//! For an amount N per period P with g = gcd(N, P), a unit weighs P/g ticks and N/g ticks leak in a microsecond. The
//! state is the debt in ticks, so nothing is ever rounded, also at 3/s or 11/min.

use super::State;
use crate::{Decision, Outcome, Quota};

/// Judges `cost` units at `now_us`.
pub fn step(quota: &Quota, state: State, now_us: u64, cost: u32) -> (Decision, State) {
    let now_us = now_us.max(state.time_us);
    let (token, full) = (quota.token(), full(quota));
    let debt = debt(quota, state, now_us);
    let cost = u64::from(cost);
    if cost == 0 {
        return (decide(quota, Outcome::Allow, debt), state);
    }
    if cost > quota.capacity() {
        return (decide(quota, Outcome::Never, debt), state);
    }
    let room = full - cost * token;
    if debt <= room {
        let debt = debt + cost * token;
        return (decide(quota, Outcome::Allow, debt), State { time_us: now_us, units: debt });
    }
    let retry_us = (debt - room).div_ceil(quota.leak());
    (decide(quota, Outcome::Deny { retry_us }, debt), state)
}

/// Corrects by `delta` units; a token bucket has no windows, so the time of the admission does not matter.
pub fn settle(quota: &Quota, state: State, now_us: u64, delta: i64) -> State {
    let now_us = now_us.max(state.time_us);
    let debt = i128::from(debt(quota, state, now_us)) + i128::from(delta) * i128::from(quota.token());
    let most = i128::from(2 * full(quota));
    let units = u64::try_from(debt.clamp(0, most)).expect("clamped between 0 and twice the capacity in ticks");
    State { time_us: now_us, units }
}

/// Carries the units used, rounded up, to `new`.
pub fn requota(old: &Quota, new: &Quota, state: State, now_us: u64) -> State {
    let now_us = now_us.max(state.time_us);
    let used = debt(old, state, now_us).div_ceil(old.token()).min(new.capacity());
    State { time_us: now_us, units: used * new.token() }
}

/// The moment when the debt is gone.
pub fn full_at(quota: &Quota, state: State) -> u64 {
    state.time_us.saturating_add(time_to_leak(quota, state.units))
}

/// The capacity in ticks; [`Quota::new`] keeps it below 2^63.
fn full(quota: &Quota) -> u64 {
    quota.capacity() * quota.token()
}

fn debt(quota: &Quota, state: State, now_us: u64) -> u64 {
    state.units.saturating_sub((now_us - state.time_us).saturating_mul(quota.leak()))
}

fn time_to_leak(quota: &Quota, debt: u64) -> u64 {
    if debt == 0 { 0 } else { debt.div_ceil(quota.leak()) }
}

fn decide(quota: &Quota, outcome: Outcome, debt: u64) -> Decision {
    let remaining = full(quota).saturating_sub(debt) / quota.token();
    Decision::new(outcome, remaining, time_to_leak(quota, debt), 0)
}
