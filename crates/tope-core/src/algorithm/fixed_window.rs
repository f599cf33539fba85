//! A counter that starts anew at each edge: of aligned Unix time, or of a calendar (local midnights).
//!
//! Across an edge up to twice the amount can pass in an instant:
//! ```text
//!   amount 4:     ....####|####....        8 units around the edge, each window within its 4
//! ```

use super::{State, Window, corrected};
use crate::{Decision, Outcome, Quota};

/// Judges `cost` units at `now_us`. `edges` are those of a calendar period, else empty.
pub fn step(quota: &Quota, edges: &[u64], state: State, now_us: u64, cost: u32) -> (Decision, State) {
    let now_us = now_us.max(state.time_us);
    let window = Window::of(quota, edges, now_us);
    let used = used(state, window);
    let cost = u64::from(cost);
    let left = window.end_us - now_us;
    if cost == 0 {
        return (decide(quota, Outcome::Allow, used, left), state);
    }
    if used + cost <= quota.capacity() {
        let taken = State { time_us: now_us, units: used + cost };
        return (decide(quota, Outcome::Allow, used + cost, left), taken);
    }
    let outcome = if cost > quota.capacity() { Outcome::Never } else { Outcome::Deny { retry_us: left } };
    (decide(quota, outcome, used, left), state)
}

/// Corrects by `delta` what was taken at `at_us`, if that is in the window of `now_us`.
pub fn settle(quota: &Quota, edges: &[u64], state: State, at_us: u64, now_us: u64, delta: i64) -> State {
    let now_us = now_us.max(state.time_us);
    let window = Window::of(quota, edges, now_us);
    let used = used(state, window);
    let ours = (window.start_us..window.end_us).contains(&at_us);
    State { time_us: now_us, units: if ours { corrected(used, delta, quota.capacity()) } else { used } }
}

/// Carries the units used to `new`; another period starts fresh.
pub fn requota(old: &Quota, new: &Quota, edges: &[u64], state: State, now_us: u64) -> State {
    if old.period() != new.period() {
        return State::FULL;
    }
    let now_us = now_us.max(state.time_us);
    let used = used(state, Window::of(old, edges, now_us));
    State { time_us: now_us, units: used.min(new.capacity()) }
}

/// The end of the window, if something was used in it.
pub fn full_at(quota: &Quota, edges: &[u64], state: State) -> u64 {
    if state.units == 0 { state.time_us } else { Window::of(quota, edges, state.time_us).end_us }
}

fn used(state: State, window: Window) -> u64 {
    if state.time_us >= window.start_us { state.units } else { 0 }
}

fn decide(quota: &Quota, outcome: Outcome, used: u64, left: u64) -> Decision {
    let reset_us = if used > 0 { left } else { 0 };
    Decision::new(outcome, quota.capacity().saturating_sub(used), reset_us, reset_us)
}
