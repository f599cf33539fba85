//! A sliding log as its place in the table holds it: the newest admission in the place, older ones in a ring.

use tope_core::State;
use tope_core::algorithm::sliding_log::{Admission, Log};

use super::slab::{NO_RING, Slab};

/// A log, taken out of a place to be looked at or changed; [`state`](Self::state) is what to put back.
pub(super) struct PlaceLog<'a> {
    newest: Admission,
    ring: u32,
    /// Where older admissions can be kept; a bucket without one keeps them all as its newest.
    slab: Option<&'a mut Slab>,
    /// An admission had to join the one before it.
    pub(super) coarsened: bool,
}

impl<'a> PlaceLog<'a> {
    pub(super) fn new(state: State, slab: Option<&'a mut Slab>) -> Self {
        let newest = Admission { at_us: state.time_us, units: state.units >> 32 };
        Self { newest, ring: ring(state), slab, coarsened: false }
    }

    pub(super) fn state(&self) -> State {
        State { time_us: self.newest.at_us, units: self.newest.units << 32 | u64::from(self.ring) }
    }

    fn older(&self) -> u64 {
        self.slab.as_ref().map_or(0, |slab| u64::from(slab.sum(self.ring)))
    }

    /// The newest admission may have gone: the one before takes its place.
    fn settle_down(&mut self) {
        if self.newest.units == 0
            && let Some((newest, ring)) = self.slab.as_mut().and_then(|slab| slab.pop(self.ring))
        {
            (self.newest, self.ring) = (newest, ring);
        }
    }
}

/// The ring of a log's state.
#[expect(clippy::cast_possible_truncation, reason = "the lower half is the ring")]
pub(super) fn ring(state: State) -> u32 {
    state.units as u32
}

/// Units have 32 bits: a log holds at most twice its capacity, and that is below 2^31.
fn narrow(units: u64) -> u32 {
    u32::try_from(units).unwrap_or(u32::MAX)
}

impl Log for PlaceLog<'_> {
    fn total(&self) -> u64 {
        self.older() + self.newest.units
    }

    fn newest(&self) -> Option<Admission> {
        Some(self.newest).filter(|newest| newest.units > 0)
    }

    fn admissions(&self) -> impl Iterator<Item = Admission> {
        self.slab.as_ref().into_iter().flat_map(|slab| slab.iter(self.ring)).chain(self.newest())
    }

    fn push(&mut self, admission: Admission) {
        if self.newest.units > 0 && self.newest.at_us != admission.at_us {
            let older = self.newest;
            let pushed = self.slab.as_mut().and_then(|slab| slab.push(self.ring, older.at_us, narrow(older.units)));
            if let Some(ring) = pushed {
                (self.ring, self.newest) = (ring, admission);
                return;
            }
            self.coarsened = true;
        }
        self.newest = Admission { at_us: admission.at_us, units: self.newest.units + admission.units };
    }

    fn trim(&mut self, units: u64) {
        let older = self.older();
        if let Some(slab) = self.slab.as_mut() {
            self.ring = slab.trim(self.ring, narrow(units));
        }
        self.newest.units -= units.saturating_sub(older).min(self.newest.units);
    }

    fn correct(&mut self, at_us: u64, delta: i64) {
        let changed = |units: u64| units.saturating_add_signed(delta);
        // Without room for older moments the newest stands for all of them.
        let joined = self.slab.is_none() && delta < 0 && self.newest.at_us >= at_us;
        if self.newest.at_us == at_us || joined {
            self.newest.units = changed(self.newest.units);
        } else if let Some(slab) = self.slab.as_mut()
            && self.ring != NO_RING
        {
            self.ring = slab.correct(self.ring, at_us, |units| narrow(changed(u64::from(units))));
        }
        self.settle_down();
    }
}
