//! The table: places of 24 bytes, five to a line of two cache lines with its own lock, allocated once.
//!
//! A bucket lives in one of two lines, at home unless home was full when it came. A place that was never used ends a
//! search: no bucket of that home can be elsewhere. Places are never given back to that state, only reused.

use super::hash::scale;
use super::sync::atomic::{AtomicU64, Ordering, fence};
use super::sync::relax;
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
        u16::try_from(self.stamp & (NUMBERS as u64 - 1)).expect("eleven bits")
    }

    /// Whether there is a bucket in it, live or full again.
    pub(super) fn taken(&self) -> bool {
        self.hash > VACATED
    }
}

/// The places of one line.
pub(super) type Places = [Place; LINE];

/// A line and its lock: 128 bytes, so that a check touches two neighbouring cache lines. A writer makes the version
/// odd while it works; a reader that finds the same even version before and after has read whole places (a sequence
/// lock: Boehm, "Can Seqlocks Get Along With Programming Language Memory Models?", 2012).
#[repr(align(128))]
#[derive(Default)]
pub(super) struct Line {
    version: AtomicU64,
    words: [[AtomicU64; 3]; LINE],
}

/// The right to write a line.
pub(super) struct Held<'a> {
    line: &'a Line,
    version: u64,
}

/// One place as it was at one version of its line.
pub(super) struct Glimpse {
    pub(super) place: Place,
    pub(super) at: usize,
    pub(super) version: u64,
}

impl Line {
    /// Waits for the right to write. Whoever has it works for well under a microsecond and never waits for another
    /// line that is lower, so waiting is short, and ends.
    pub(super) fn lock(&self) -> Held<'_> {
        for tries in 0_u32.. {
            let version = self.version.load(Ordering::Relaxed);
            if version.is_multiple_of(2)
                && let Some(held) = self.lock_at(version)
            {
                return held;
            }
            relax(tries);
        }
        unreachable!("the loop has no end")
    }

    /// The right to write, if nothing was written since `version`.
    #[inline]
    pub(super) fn lock_at(&self, version: u64) -> Option<Held<'_>> {
        self.version.compare_exchange(version, version + 1, Ordering::Acquire, Ordering::Relaxed).ok()?;
        // What is written from here on is not seen before the odd version is.
        fence(Ordering::Release);
        Some(Held { line: self, version })
    }

    /// A bucket, read without a lock. `None` when it is not here, or somebody is writing.
    #[inline]
    pub(super) fn glimpse(&self, hash: u64) -> Option<Glimpse> {
        let version = self.version.load(Ordering::Acquire);
        let at = (0..LINE).find(|at| self.words[*at][0].load(Ordering::Relaxed) == hash)?;
        let place = self.read(at);
        fence(Ordering::Acquire);
        let whole = version.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == version;
        whole.then_some(Glimpse { place, at, version })
    }

    /// Writes a place that was glimpsed, if nothing was written since; `also` runs while the line is held.
    #[inline]
    pub(super) fn replace<R>(&self, seen: &Glimpse, place: Option<Place>, also: impl FnOnce() -> R) -> Option<R> {
        let held = self.lock_at(seen.version)?;
        if let Some(place) = place {
            held.put(seen.at, place);
        }
        Some(also())
    }

    #[inline]
    fn read(&self, at: usize) -> Place {
        let [hash, stamp, units] = &self.words[at];
        Place {
            hash: hash.load(Ordering::Relaxed),
            stamp: stamp.load(Ordering::Relaxed),
            units: units.load(Ordering::Relaxed),
        }
    }
}

impl Held<'_> {
    pub(super) fn get(&self, at: usize) -> Place {
        self.line.read(at)
    }

    pub(super) fn all(&self) -> Places {
        std::array::from_fn(|at| self.get(at))
    }

    pub(super) fn find(&self, hash: u64) -> Option<usize> {
        (0..LINE).find(|at| self.line.words[*at][0].load(Ordering::Relaxed) == hash)
    }

    #[inline]
    pub(super) fn put(&self, at: usize, place: Place) {
        let words = [place.hash, place.stamp, place.units];
        for (word, value) in self.line.words[at].iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// From now on the line's virgin places don't end a search: a bucket of this home goes elsewhere.
    pub(super) fn close(&self) {
        for place in self.line.words.iter().filter(|place| place[0].load(Ordering::Relaxed) == NEVER_USED) {
            place[0].store(VACATED, Ordering::Relaxed);
        }
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        self.line.version.store(self.version.wrapping_add(2), Ordering::Release);
    }
}

/// All lines.
pub(super) struct Table {
    lines: Box<[Line]>,
}

impl Table {
    /// A table for `max_keys` buckets: a quarter more places, so that a line is rarely full before the table is.
    pub(super) fn new(max_keys: usize) -> Self {
        let lines = max_keys.saturating_add(max_keys / 4).div_ceil(LINE).max(2);
        Self { lines: (0..lines).map(|_| Line::default()).collect() }
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    #[inline]
    pub(super) fn line(&self, line: usize) -> &Line {
        &self.lines[line]
    }

    pub(super) fn lock(&self, line: usize) -> Held<'_> {
        self.lines[line].lock()
    }

    /// The line that a bucket is looked for first.
    pub(super) fn home(&self, hash: u64) -> usize {
        scale(hash, self.lines.len())
    }

    /// The other line that it may be in.
    pub(super) fn away(&self, hash: u64) -> usize {
        let other = scale(hash.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32) ^ hash >> 7, self.lines.len());
        if other != self.home(hash) {
            other
        } else if other == 0 {
            1
        } else {
            other - 1
        }
    }

    /// The line of a bucket's two that is not `line`.
    pub(super) fn other(&self, hash: u64, line: usize) -> usize {
        let home = self.home(hash);
        if home == line { self.away(hash) } else { home }
    }
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
            let table = Table { lines: (0..lines).map(|_| Line::default()).collect() };
            for hash in (2..10_000_u64).map(|n| n.wrapping_mul(0x1234_5678_9abc_def1)) {
                assert_ne!(table.home(hash), table.away(hash));
                assert_eq!(table.other(hash, table.away(hash)), table.home(hash));
            }
        }
    }
}
