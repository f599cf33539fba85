//! What happens when both lines of a newcomer are full: somebody moves, or goes.

use tope_core::State;
use tope_core::algorithm::{self, sliding_log};

use super::log::PlaceLog;
use super::table::{LINE, Place};
use super::{Memory, Ordering, full_at};

impl Memory {
    /// Moves one bucket out of the lines of a newcomer, to the other line that it may be in, if that has room. Locks
    /// two lines at a time, in ascending order, and none that the caller holds.
    pub(super) fn make_room(&self, newcomer: u64, now_us: u64) {
        let (home, away) = (self.table.home(newcomer), self.table.away(newcomer));
        for line in [home, away] {
            let residents = self.table.lock(line).all();
            for (at, resident) in residents.iter().enumerate().filter(|(_, resident)| resident.taken()) {
                let other = self.table.other(resident.hash, line);
                if other != home && other != away && self.move_one(line, at, resident.hash, other, now_us) {
                    return;
                }
            }
        }
    }

    fn move_one(&self, from: usize, at: usize, hash: u64, to: usize, now_us: u64) -> bool {
        let (low, high) = (from.min(to), from.max(to));
        let (low_line, high_line) = (self.table.lock(low), self.table.lock(high));
        let (here, there) = if from == low { (low_line, high_line) } else { (high_line, low_line) };
        let Some(room) = (0..LINE).find(|room| self.reusable(&there.get(*room), now_us)) else { return false };
        // Between the look and the lock somebody else may have moved it.
        if here.get(at).hash != hash {
            return false;
        }
        self.forget(&there.get(room), now_us);
        there.put(room, here.get(at));
        here.put(at, Place::vacated());
        true
    }

    fn reusable(&self, place: &Place, now_us: u64) -> bool {
        self.free_at(place) <= now_us
    }

    /// A place is about to be overwritten: its ring goes back to the slab, and what it had used is counted as forgiven
    /// when it was live.
    pub(super) fn forget(&self, place: &Place, now_us: u64) {
        if !place.taken() {
            return;
        }
        let known = self.quotas.read().at(place.number()).clone();
        if full_at(&known, place.state()) > now_us {
            let left = if known.quota.algorithm().is_log() {
                let mut slab = self.slab(place.hash);
                algorithm::step_log(&known.quota, &PlaceLog::new(place.state(), slab.as_deref_mut()), now_us, 0)
            } else {
                algorithm::step(&known.quota, &known.edges, place.state(), now_us, 0).0
            };
            self.evicted.fetch_add(1, Ordering::Relaxed);
            self.forgiven.fetch_add(known.quota.capacity().saturating_sub(left.remaining), Ordering::Relaxed);
        }
        self.release(place, known.quota.algorithm());
    }

    /// A bucket as a test or a snapshot sees it: what its log holds, oldest first, or nothing for other algorithms.
    pub(super) fn admissions(&self, hash: u64, state: State) -> Vec<sliding_log::Admission> {
        use sliding_log::Log;
        let mut slab = self.slab(hash);
        PlaceLog::new(state, slab.as_deref_mut()).admissions().collect()
    }
}
