//! Unix microseconds that never run backwards.

use std::sync::Arc;

use arc_swap::ArcSwap;
use rustix::time::{ClockId, clock_gettime};

/// The clock of a process: CLOCK_BOOTTIME, which never steps and runs through suspension, plus an offset to Unix time
/// taken at start and moved towards the wall clock by at most a thousandth of the time that passes, evenly, so that the
/// clock only ever runs a little slower or faster.
///
/// A wall clock that is set an hour back neither admits more nor locks anybody out: it is followed at 1 ms a second.
#[derive(Debug)]
pub struct Clock(ArcSwap<Drift>);

/// How Unix time is made of the time since boot, for one second. All in microseconds.
#[derive(Clone, Copy, Debug)]
struct Drift {
    since: u64,
    offset: i64,
    /// What the offset moves by until the second is over.
    by: i64,
}

/// How often the offset is looked at, and how far it may move until then.
const ADJUST_EVERY_US: u64 = 1_000_000;
const ADJUST_BY_US: i64 = 1_000;

impl Drift {
    fn unix_us(&self, boot_us: u64) -> u64 {
        let passed = boot_us.saturating_sub(self.since).min(ADJUST_EVERY_US);
        let moved = self.by * passed.cast_signed() / ADJUST_EVERY_US.cast_signed();
        boot_us.saturating_add_signed(self.offset + moved)
    }
}

impl Clock {
    /// A clock that begins at the wall clock's time.
    pub fn new() -> Self {
        let since = boot_us();
        let offset = wall_us().cast_signed() - since.cast_signed();
        Self(ArcSwap::from_pointee(Drift { since, offset, by: 0 }))
    }

    /// Unix microseconds, now.
    pub fn now_us(&self) -> u64 {
        self.unix_us(boot_us())
    }

    /// A moment: Unix microseconds, and a stopwatch that began with them.
    pub fn moment(&self) -> Moment {
        let began_ns = boot_ns();
        Moment { unix_us: self.unix_us(began_ns / 1_000), began_ns }
    }

    /// How far the wall clock is ahead of this clock, in microseconds.
    pub fn gap_us(&self) -> i64 {
        wall_us().cast_signed() - self.0.load().unix_us(boot_us()).cast_signed()
    }

    fn unix_us(&self, boot_us: u64) -> u64 {
        let drift = self.0.load();
        if boot_us.saturating_sub(drift.since) >= ADJUST_EVERY_US {
            self.adjust(&drift, boot_us);
        }
        drift.unix_us(boot_us)
    }

    /// Begins another second where the last one ended. Of several threads that see its end one decides; what the
    /// others still say by the old one is the same time.
    fn adjust(&self, old: &Arc<Drift>, boot_us: u64) {
        let offset = old.offset + old.by;
        let ahead = wall_us().cast_signed() - boot_us.saturating_add_signed(offset).cast_signed();
        let by = ahead.clamp(-ADJUST_BY_US, ADJUST_BY_US);
        self.0.compare_and_swap(old, Arc::new(Drift { since: boot_us, offset, by }));
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

/// A moment, and what has passed since.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Unix microseconds.
    pub unix_us: u64,
    began_ns: u64,
}

impl Moment {
    /// Nanoseconds since then.
    pub fn elapsed_ns(&self) -> u64 {
        boot_ns().saturating_sub(self.began_ns)
    }
}

fn boot_us() -> u64 {
    boot_ns() / 1_000
}

fn boot_ns() -> u64 {
    nanoseconds(ClockId::Boottime)
}

fn wall_us() -> u64 {
    nanoseconds(ClockId::Realtime) / 1_000
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wall_clock_set_back_only_slows_the_clock() {
        let clock = Clock::new();
        // As if the wall clock had been an hour ahead when we began.
        let hour_us = 3_600_000_000;
        let began = boot_us();
        clock.0.store(Arc::new(Drift { since: began, offset: clock.0.load().offset + hour_us, by: 0 }));
        let mut last = clock.unix_us(began);
        for step in 1..5_000_u64 {
            let now = clock.unix_us(began + step * 1_234);
            assert!((1_232..=1_235).contains(&(now - last)), "{} us in a step of 1,234", now - last);
            last = now;
        }
    }
}
