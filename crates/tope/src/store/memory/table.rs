//! The table: places of 24 bytes, five to a line of two cache lines with its own lock, allocated once.
//!
//! A bucket lives in one of two lines, at home unless home was full when it came. A place that was never used ends a
//! search: no bucket of that home can be elsewhere. Places are never given back to that state, only reused.

use super::hash::scale;
use super::sync::{Mutex, MutexGuard, lock};
use tope_core::State;

/// The hash of a place that no bucket was ever in.
pub(super) const NEVER_USED: u64 = 0;
/// The hash of a place whose bucket moved away.
pub(super) const VACATED: u64 = 1;

/// Places in a line.
pub(super) const LINE: usize = 5;

/// Bits of a stamp that hold the number of the quota; the others hold the time.
const NUMBER_BITS: u32 = 11;
/// Numbers of quotas that can be told apart.
pub(super) const NUMBERS: usize = 1 << NUMBER_BITS;

/// One bucket: 24 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    pub(super) hash: u64,
    stamp: u64,
    pub(super) units: u64,
}

impl Place {
    pub(super) fn new(hash: u64, number: u16, state: State) -> Self {
        Self { hash, stamp: state.time_us << NUMBER_BITS | u64::from(number), units: state.units }
    }

    /// What a bucket leaves behind that moved away.
    pub(super) fn vacated() -> Self {
        Self { hash: VACATED, ..Self::default() }
    }

    pub(super) fn state(&self) -> State {
        State { time_us: self.stamp >> NUMBER_BITS, units: self.units }
    }

    pub(super) fn number(&self) -> u16 {
        (self.stamp & (NUMBERS as u64 - 1)) as u16
    }

    /// Whether there is a bucket in it, live or full again.
    pub(super) fn taken(&self) -> bool {
        self.hash > VACATED
    }
}

/// The places of one line.
pub(super) type Places = [Place; LINE];

/// A line and its lock: 128 bytes, so that a check touches two neighbouring cache lines.
#[repr(align(128))]
struct Line(Mutex<Places>);

/// All lines.
pub(super) struct Table {
    lines: Box<[Line]>,
}

impl Table {
    /// A table for `max_keys` buckets: a quarter more places, so that a line is rarely full before the table is.
    pub(super) fn new(max_keys: usize) -> Self {
        let lines = max_keys.saturating_add(max_keys / 4).div_ceil(LINE).max(2);
        Self { lines: (0..lines).map(|_| Line(Mutex::new(Places::default()))).collect() }
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn lock(&self, line: usize) -> MutexGuard<'_, Places> {
        lock(&self.lines[line].0)
    }

    /// The line that a bucket is looked for first.
    pub(super) fn home(&self, hash: u64) -> usize {
        scale(hash, self.lines.len())
    }

    /// The other line that it may be in.
    pub(super) fn away(&self, hash: u64) -> usize {
        let other = scale(hash.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32) ^ hash >> 7, self.lines.len());
        if other != self.home(hash) { other } else if other == 0 { 1 } else { other - 1 }
    }

    /// The line of a bucket's two that is not `line`.
    pub(super) fn other(&self, hash: u64, line: usize) -> usize {
        let home = self.home(hash);
        if home == line { self.away(hash) } else { home }
    }
}

/// Where a bucket is in a line.
pub(super) fn find(places: &Places, hash: u64) -> Option<usize> {
    places.iter().position(|place| place.hash == hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_two_cache_lines() {
        assert_eq!((size_of::<Place>(), size_of::<Line>()), (24, 128));
    }

    #[test]
    fn the_two_lines_of_a_bucket_differ() {
        for lines in [2, 3, 5, 1000] {
            let table = Table { lines: (0..lines).map(|_| Line(Mutex::new(Places::default()))).collect() };
            for hash in (2..10_000_u64).map(|n| n.wrapping_mul(0x1234_5678_9abc_def1)) {
                assert_ne!(table.home(hash), table.away(hash));
                assert_eq!(table.other(hash, table.away(hash)), table.home(hash));
            }
        }
    }
}
