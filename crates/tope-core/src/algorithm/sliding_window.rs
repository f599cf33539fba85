//! Two aligned windows; the earlier counts in proportion to its overlap with the last period.
//!
//! Never twice the amount in an instant, as a fixed window allows; over any interval it keeps the bound of a token
//! bucket whose burst is the amount.

use super::{State, corrected};
use crate::{Decision, Outcome, Quota};

/// The two counters at one moment.
#[derive(Clone, Copy)]
struct Pair {
    current: u64,
    previous: u64,
    /// Microseconds since the current window began.
    elapsed: u64,
}

/// Judges `cost` units at `now_us`.
pub fn step(quota: &Quota, state: State, now_us: u64, cost: u32) -> (Decision, State) {
    let now_us = now_us.max(state.time_us);
    let (period, limit) = (quota.period_us(), quota.capacity());
    let pair = Pair::at(period, state, now_us);
    let cost = u64::from(cost);
    if cost == 0 {
        return (pair.decide(quota, Outcome::Allow), state);
    }
    if cost > limit {
        return (pair.decide(quota, Outcome::Never), state);
    }
    if pair.current + pair.faded(period) + cost <= limit {
        let taken = Pair { current: pair.current + cost, ..pair };
        return (taken.decide(quota, Outcome::Allow), taken.state(now_us));
    }
    let left = period - pair.elapsed;
    let retry_us = if pair.current + cost <= limit && pair.previous > 0 {
        // It passes within this window, as the earlier one fades.
        fade_to(period, pair.previous, limit - pair.current - cost) - pair.elapsed
    } else {
        // It passes in the next window, as this one fades.
        left + fade_to(period, pair.current, limit - cost)
    };
    (pair.decide(quota, Outcome::Deny { retry_us }), state)
}

/// Corrects by `delta` what was taken at `at_us`, if that is in the window of `now_us` or in the one before.
pub fn settle(quota: &Quota, state: State, at_us: u64, now_us: u64, delta: i64) -> State {
    let now_us = now_us.max(state.time_us);
    let period = quota.period_us();
    let mut pair = Pair::at(period, state, now_us);
    let (taken, current) = (at_us / period, now_us / period);
    if taken == current {
        pair.current = corrected(pair.current, delta, quota.capacity());
    } else if taken + 1 == current {
        pair.previous = corrected(pair.previous, delta, quota.capacity());
    }
    pair.state(now_us)
}

/// Carries the units used in both windows to `new`; another period starts fresh.
pub fn requota(old: &Quota, new: &Quota, state: State, now_us: u64) -> State {
    if old.period() != new.period() {
        return State::FULL;
    }
    let now_us = now_us.max(state.time_us);
    let pair = Pair::at(old.period_us(), state, now_us);
    let (current, previous) = (pair.current.min(new.capacity()), pair.previous.min(new.capacity()));
    Pair { current, previous, ..pair }.state(now_us)
}

/// The end of the window in which the last used one has faded.
pub fn full_at(quota: &Quota, state: State) -> u64 {
    let pair = Pair::at(quota.period_us(), state, state.time_us);
    state.time_us.saturating_add(pair.reset_us(quota.period_us()))
}

/// How far into a window the one before, of `previous` units, must fade until at most `room` of it counts.
fn fade_to(period: u64, previous: u64, room: u64) -> u64 {
    if previous <= room {
        return 0;
    }
    // previous x (period - e) / period <= room, for the least e; the product is below 2^77.
    let gone = u128::from(previous - room) * u128::from(period);
    u64::try_from(gone.div_ceil(u128::from(previous))).expect("a part of the period")
}

impl Pair {
    fn at(period: u64, state: State, now_us: u64) -> Self {
        let (current, previous) = (state.units >> 32, state.units & u64::from(u32::MAX));
        let windows_since = now_us / period - state.time_us / period;
        let (current, previous) = match windows_since {
            0 => (current, previous),
            1 => (0, current),
            _ => (0, 0),
        };
        Self { current, previous, elapsed: now_us % period }
    }

    /// Counters stay below 2^32: the capacity is below 2^31 and each may owe as much again.
    fn state(self, now_us: u64) -> State {
        State { time_us: now_us, units: self.current << 32 | self.previous }
    }

    /// What still counts of the earlier window, rounded up.
    fn faded(self, period: u64) -> u64 {
        let overlap = u128::from(self.previous) * u128::from(period - self.elapsed);
        u64::try_from(overlap.div_ceil(u128::from(period))).expect("a part of the earlier window")
    }

    fn reset_us(self, period: u64) -> u64 {
        if self.current > 0 {
            2 * period - self.elapsed
        } else if self.previous > 0 {
            period - self.elapsed
        } else {
            0
        }
    }

    fn decide(self, quota: &Quota, outcome: Outcome) -> Decision {
        let period = quota.period_us();
        let remaining = quota.capacity().saturating_sub(self.current + self.faded(period));
        let used = quota.capacity() - remaining;
        let more_us = if used == 0 {
            0
        } else if self.current < used {
            // One unit less of the earlier window counts, at its end at the latest.
            fade_to(period, self.previous, used - 1 - self.current) - self.elapsed
        } else {
            // The earlier window counts nothing; one unit less of this one does when it is the earlier one.
            period - self.elapsed + fade_to(period, self.current, (used - 1).min(self.current))
        };
        Decision::new(outcome, remaining, self.reset_us(period), more_us)
    }
}
