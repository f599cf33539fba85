//! Unix microseconds that never run backwards.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use rustix::time::{ClockId, clock_gettime};

/// The clock of a process: CLOCK_BOOTTIME, which never steps and runs through suspension, plus an offset to Unix time
/// taken at start and moved towards the wall clock by at most a thousandth of the time that passes.
///
/// A wall clock that is set an hour back neither admits more nor locks anybody out: it is followed at 1 ms a second.
#[derive(Debug)]
pub struct Clock {
    offset_us: AtomicI64,
    adjusted_us: AtomicU64,
}

/// How often the offset is looked at, and how far it may move then.
const ADJUST_EVERY_US: u64 = 1_000_000;
const ADJUST_BY_US: i64 = 1_000;

impl Clock {
    /// A clock that begins at the wall clock's time.
    pub fn new() -> Self {
        let (boot, wall) = (boot_us(), wall_us());
        Self { offset_us: AtomicI64::new(wall.cast_signed() - boot.cast_signed()), adjusted_us: AtomicU64::new(boot) }
    }

    /// Unix microseconds, now.
    pub fn now_us(&self) -> u64 {
        self.unix_us(boot_us())
    }

    fn unix_us(&self, boot: u64) -> u64 {
        let adjusted = self.adjusted_us.load(Ordering::Relaxed);
        if boot.saturating_sub(adjusted) >= ADJUST_EVERY_US {
            self.adjust(boot, adjusted);
        }
        boot.saturating_add_signed(self.offset_us.load(Ordering::Relaxed))
    }

    /// A moment: Unix microseconds, and a stopwatch that began with them.
    pub fn moment(&self) -> Moment {
        let began_ns = boot_ns();
        Moment { unix_us: self.unix_us(began_ns / 1_000), began_ns }
    }

    /// How far the wall clock is ahead of this clock, in microseconds.
    pub fn gap_us(&self) -> i64 {
        wall_us().cast_signed() - boot_us().cast_signed() - self.offset_us.load(Ordering::Relaxed)
    }

    fn adjust(&self, boot: u64, adjusted: u64) {
        // One thread a second moves the offset; the others go on with the old one.
        if self.adjusted_us.compare_exchange(adjusted, boot, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            let by = self.gap_us().clamp(-ADJUST_BY_US, ADJUST_BY_US);
            self.offset_us.fetch_add(by, Ordering::Relaxed);
        }
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
