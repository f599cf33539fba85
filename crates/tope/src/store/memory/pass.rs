//! One request: lock its lines in ascending order, judge all, then commit all. Nothing is taken and rolled back.

use arrayvec::ArrayVec;
use tope_core::algorithm::{self, sliding_log};
use tope_core::{Decision, State};

use super::log::PlaceLog;
use super::overflow::Overflow;
use super::seat::{Again, Depth, Held, Search, Seat};
use super::sync::{MutexGuard, lock};
use super::table::Place;
use super::{Memory, Ordering, hash};
use crate::charge::{Charge, MAX_CHARGES};
use crate::store::{Answered, Charged, Taken};

/// A charge that was judged.
pub(super) struct Seated {
    hash: u64,
    pub(super) seat: Seat,
    place: Place,
    decision: Decision,
    next: State,
}

impl Memory {
    /// Takes all charges or none.
    #[inline]
    pub(super) fn take(&self, charges: &[Charge<'_>], now_us: u64, charged: &mut Charged) {
        charged.answers.clear();
        if !self.take_known(charges, now_us, charged) {
            self.take_any(charges, now_us, charged);
        }
    }

    /// The way of every request. Kept out of the short way, whose frame would be as large.
    #[inline(never)]
    fn take_any(&self, charges: &[Charge<'_>], now_us: u64, charged: &mut Charged) {
        let hashes = self.hashes(charges);
        let mut depth = Depth::Home;
        loop {
            match self.attempt(charges, &hashes, now_us, depth, charged) {
                Ok(()) => return,
                Err(Again::Further) => depth = Depth::Both,
                Err(Again::Full(newcomer)) => {
                    // One try to move somebody; whether it worked or not, the next look decides.
                    self.make_room(newcomer, now_us);
                    depth = if depth == Depth::Both { Depth::Last } else { Depth::Both };
                }
            }
        }
    }

    /// The hashes of all buckets.
    fn hashes(&self, charges: &[Charge<'_>]) -> ArrayVec<u64, MAX_CHARGES> {
        let mut last = None;
        let mut hashes = ArrayVec::new();
        for charge in charges {
            hashes.push(hash::bucket(self.key_hash(charge.key, &mut last), charge.budget.mark.label));
        }
        hashes
    }

    fn attempt(
        &self,
        charges: &[Charge<'_>],
        hashes: &[u64],
        now_us: u64,
        depth: Depth,
        charged: &mut Charged,
    ) -> Result<(), Again> {
        let held = Held::lock(&self.table, hashes, depth);
        let search = Search { held: &held, hashes, now_us, depth };
        let mut overflow: Option<MutexGuard<'_, Overflow>> = None;
        let mut seated: ArrayVec<Seated, MAX_CHARGES> = ArrayVec::new();
        for (charge, &hash) in charges.iter().zip(hashes) {
            let (seat, place) = match self.seat(&search, &seated, charge, hash)? {
                (Seat::Own { line, at, fresh: false }, place) if place.number() != charge.budget.mark.number => {
                    let place = self.renumber(&place, charge, now_us);
                    held.lines[line].put(at, place);
                    (Seat::Own { line, at, fresh: false }, place)
                }
                (Seat::Shared { group }, _) => {
                    let room = overflow.get_or_insert_with(|| lock(&self.overflow));
                    let mark = charge.budget.mark;
                    let mut place = room.cell(mark.label, mark.number, group).copied().unwrap_or_default();
                    if place.taken() && place.number() != mark.number {
                        place = self.renumber(&place, charge, now_us);
                    }
                    (Seat::Shared { group }, place)
                }
                found => found,
            };
            let (decision, next) = self.look(charge, seat, &place, now_us, charge.cost);
            seated.push(Seated { hash, seat, place, decision, next });
        }

        let allowed =
            charges.iter().zip(&seated).all(|(charge, seated)| seated.decision.allowed() || charge.budget.shadow);
        for (charge, seated) in charges.iter().zip(&mut seated) {
            if !seated.decision.allowed() {
                continue;
            }
            if !allowed {
                // Nothing is taken: each says what it would have said alone.
                seated.decision = self.look(charge, seated.seat, &seated.place, now_us, 0).0;
            } else if charge.cost > 0 {
                self.commit(&held, &mut overflow, charge, seated, now_us);
            }
        }
        charged.order = self.place_in_order();
        charged.allowed = allowed;
        charged.answers.extend(seated.iter().map(|seated| {
            let shared = matches!(seated.seat, Seat::Shared { .. });
            let at_us = now_us.max(seated.place.state().time_us);
            Answered { decision: seated.decision, taken: Taken { at_us, shared } }
        }));
        Ok(())
    }

    /// Judges a charge and says what its state becomes; a log's is written by `commit`.
    fn look(&self, charge: &Charge<'_>, seat: Seat, place: &Place, now_us: u64, cost: u32) -> (Decision, State) {
        let budget = charge.budget;
        if !budget.quota.algorithm().is_log() {
            return algorithm::step(&budget.quota, &budget.edges, place.state(), now_us, cost);
        }
        let mut slab = if matches!(seat, Seat::Own { fresh: false, .. }) { self.slab(place.hash) } else { None };
        let log = PlaceLog::new(place.state(), slab.as_deref_mut());
        (algorithm::step_log(&budget.quota, &log, now_us, cost), place.state())
    }

    fn commit(
        &self,
        held: &Held<'_>,
        overflow: &mut Option<MutexGuard<'_, Overflow>>,
        charge: &Charge<'_>,
        seated: &Seated,
        now_us: u64,
    ) {
        let Charge { budget, cost, .. } = *charge;
        let mark = budget.mark;
        let log = budget.quota.algorithm().is_log();
        let taken = |slab: Option<&mut super::Slab>| {
            let mut log = PlaceLog::new(seated.place.state(), slab);
            sliding_log::commit(&budget.quota, &mut log, now_us, cost);
            self.coarsened.fetch_add(u64::from(log.coarsened), Ordering::Relaxed);
            log.state()
        };
        match seated.seat {
            Seat::Own { line, at, fresh } => {
                let hash = seated.hash;
                let next = if log { taken(self.slab(hash).as_deref_mut()) } else { seated.next };
                if fresh {
                    self.forget(&held.lines[line].get(at), now_us);
                    held.close_home(self.table.home(hash), line);
                }
                held.lines[line].put(at, Place::new(hash, mark.number, next));
            }
            Seat::Shared { group } => {
                let cell = overflow.as_mut().and_then(|room| room.cell(mark.label, mark.number, group));
                if let Some(cell) = cell {
                    // Two charges of one request can't share a cell: their budgets differ.
                    *cell = Place::new(group.max(2), mark.number, if log { taken(None) } else { seated.next });
                }
            }
        }
    }

    /// Carries a bucket that was written under another quota to the charge's.
    fn renumber(&self, place: &Place, charge: &Charge<'_>, now_us: u64) -> Place {
        let old = self.quotas.read().at(place.number()).quota;
        let new = &charge.budget.quota;
        let state = match (old.algorithm(), new.algorithm()) {
            (from, to) if from == to && to.is_log() => {
                let mut slab = self.slab(place.hash);
                let mut log = PlaceLog::new(place.state(), slab.as_deref_mut());
                sliding_log::requota(&old, new, &mut log, now_us);
                log.state()
            }
            (from, to) if from.is_log() || to.is_log() => {
                self.release(place, from);
                State::FULL
            }
            _ => algorithm::requota(&old, new, &charge.budget.edges, place.state(), now_us),
        };
        Place::new(place.hash, charge.budget.mark.number, state)
    }

    /// Corrects what was taken from a bucket that is still remembered, and says what is left. One that had to go is not
    /// given anything back: that costs its owner units and never adds any.
    pub(super) fn correct(&self, charge: &Charge<'_>, taken: Taken, now_us: u64, delta: i64) -> Option<Decision> {
        if taken.shared {
            return self.correct_shared(charge, taken, now_us, delta);
        }
        let hash = self.bucket(charge);
        // Nearly every bucket is at home.
        let home = self.table.lock(self.table.home(hash));
        if let Some(at) = home.find(hash) {
            let (place, decision) = self.corrected(charge, home.get(at), taken, now_us, delta);
            home.put(at, place);
            return Some(decision);
        }
        drop(home);
        let held = Held::lock(&self.table, &[hash], Depth::Both);
        let lines = [held.line(self.table.home(hash)), held.line(self.table.away(hash))];
        let (line, at) = lines.into_iter().find_map(|line| Some((line, held.lines[line].find(hash)?)))?;
        let place = held.lines[line].get(at);
        let (place, decision) = self.corrected(charge, place, taken, now_us, delta);
        held.lines[line].put(at, place);
        Some(decision)
    }

    /// The same for a newcomer that was counted with others.
    fn correct_shared(&self, charge: &Charge<'_>, taken: Taken, now_us: u64, delta: i64) -> Option<Decision> {
        let mark = charge.budget.mark;
        let mut overflow = lock(&self.overflow);
        let cell = overflow.cell(mark.label, mark.number, self.seed.key(charge.group))?;
        if !cell.taken() {
            return None;
        }
        let (place, decision) = self.corrected(charge, *cell, taken, now_us, delta);
        *cell = place;
        Some(decision)
    }

    fn corrected(
        &self,
        charge: &Charge<'_>,
        mut place: Place,
        taken: Taken,
        now_us: u64,
        delta: i64,
    ) -> (Place, Decision) {
        let budget = charge.budget;
        if place.number() != budget.mark.number {
            place = self.renumber(&place, charge, now_us);
        }
        let (state, decision) = if budget.quota.algorithm().is_log() {
            let mut slab = if taken.shared { None } else { self.slab(place.hash) };
            let mut log = PlaceLog::new(place.state(), slab.as_deref_mut());
            sliding_log::settle(&budget.quota, &mut log, taken.at_us, now_us, delta);
            (log.state(), algorithm::step_log(&budget.quota, &log, now_us, 0))
        } else {
            let state = algorithm::settle(&budget.quota, &budget.edges, place.state(), taken.at_us, now_us, delta);
            (state, algorithm::step(&budget.quota, &budget.edges, state, now_us, 0).0)
        };
        (Place::new(place.hash, budget.mark.number, state), decision)
    }
}
