//! The short way: every bucket is known and at home. Nothing is searched, a refusal needs no lock, and an admission
//! holds its lines only while it writes.

use arrayvec::ArrayVec;
use tope_core::algorithm::{self, token_bucket};
use tope_core::{Algorithm, Decision, State};

use super::Memory;
use super::hash;
use super::table::{Glimpse, Held, Place};
use crate::charge::{Charge, MAX_CHARGES};
use crate::store::{Answered, Charged, Taken};

/// A charge that was judged by a glimpse of its bucket.
struct Seen {
    line: usize,
    glimpse: Glimpse,
    decision: Decision,
    next: State,
}

impl Memory {
    /// Takes all charges or none, if it can be done the short way; `false` when not, and then nothing was done.
    #[inline]
    pub(super) fn take_known(&self, charges: &[Charge<'_>], now_us: u64, charged: &mut Charged) -> bool {
        match charges {
            [charge] => self.take_one(charge, now_us, charged),
            _ => self.take_several(charges, now_us, charged),
        }
    }

    #[inline]
    fn take_one(&self, charge: &Charge<'_>, now_us: u64, charged: &mut Charged) -> bool {
        let budget = charge.budget;
        if budget.quota.algorithm().is_log() {
            return false;
        }
        let hash = self.bucket(charge);
        let line = self.table.line(self.table.home(hash));
        let Some(seen) = line.glimpse(hash) else { return false };
        if seen.place.number() != budget.mark.number {
            return false;
        }
        // Two ways to the end, for a reason: joined, the answers would go through memory twice.
        if budget.quota.algorithm() == Algorithm::TokenBucket {
            let step = token_bucket::step(&budget.quota, seen.place.state(), now_us, charge.cost);
            return self.answer_known(charge, hash, &seen, step, now_us, charged);
        }
        let step = algorithm::step(&budget.quota, &budget.edges, seen.place.state(), now_us, charge.cost);
        self.answer_known(charge, hash, &seen, step, now_us, charged)
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the decision stays in registers: 5 ns less, a quarter of a whole check")]
    fn answer_known(
        &self,
        charge: &Charge<'_>,
        hash: u64,
        seen: &Glimpse,
        (decision, next): (Decision, State),
        now_us: u64,
        charged: &mut Charged,
    ) -> bool {
        let state = seen.place.state();
        let changed = (next != state).then(|| Place::new(hash, charge.budget.mark.number, next));
        charged.order = 0;
        // A refusal writes nothing, so it needs no lock, unless its place among others is asked for.
        if changed.is_some() || self.order.is_some() {
            let line = self.table.line(self.table.home(hash));
            let Some(order) = line.replace(seen, changed, || self.place_in_order()) else { return false };
            charged.order = order;
        }
        charged.allowed = decision.allowed() || charge.budget.shadow;
        charged.answers.push(Answered { decision, taken: Taken::at(now_us.max(state.time_us)) });
        true
    }

    /// Several charges. What was glimpsed is what is taken from, or nothing is: every line is locked at the version
    /// that was read, in ascending order. A refusal is what its bucket said at that moment.
    fn take_several(&self, charges: &[Charge<'_>], now_us: u64, charged: &mut Charged) -> bool {
        let mut seen: ArrayVec<Seen, MAX_CHARGES> = ArrayVec::new();
        let (mut allowed, mut last) = (true, None);
        for charge in charges {
            let (budget, mark) = (charge.budget, charge.budget.mark);
            if budget.quota.algorithm().is_log() {
                return false;
            }
            let key = self.key_hash(charge.key, &mut last);
            let hash = hash::bucket(key, mark.label);
            let line = self.table.home(hash);
            let Some(glimpse) = self.table.line(line).glimpse(hash) else { return false };
            if glimpse.place.number() != mark.number {
                return false;
            }
            let state = glimpse.place.state();
            let (decision, next) = algorithm::step(&budget.quota, &budget.edges, state, now_us, charge.cost);
            allowed &= decision.allowed() || budget.shadow;
            seen.push(Seen { line, glimpse, decision, next });
        }
        charged.order = 0;
        if allowed || self.order.is_some() {
            let Some(held) = self.lock_as_seen(&seen) else { return false };
            if allowed {
                for (charge, seen) in charges.iter().zip(&seen).filter(|(_, seen)| seen.decision.allowed()) {
                    let place = Place::new(seen.glimpse.place.hash, charge.budget.mark.number, seen.next);
                    let (_, line) = held.iter().find(|(line, _)| *line == seen.line).expect("every line is held");
                    line.put(seen.glimpse.at, place);
                }
            }
            charged.order = self.place_in_order();
        }
        charged.allowed = allowed;
        for (charge, seen) in charges.iter().zip(&seen) {
            let (budget, state) = (charge.budget, seen.glimpse.place.state());
            let decision = if !allowed && seen.decision.allowed() {
                // Nothing is taken: each says what it would have said alone.
                algorithm::step(&budget.quota, &budget.edges, state, now_us, 0).0
            } else {
                seen.decision
            };
            charged.answers.push(Answered { decision, taken: Taken::at(now_us.max(state.time_us)) });
        }
        true
    }

    /// The lines of these buckets, if nothing was written to any of them since it was read.
    fn lock_as_seen(&self, seen: &[Seen]) -> Option<ArrayVec<(usize, Held<'_>), MAX_CHARGES>> {
        let mut lines: ArrayVec<(usize, u64), MAX_CHARGES> =
            seen.iter().map(|seen| (seen.line, seen.glimpse.version)).collect();
        lines.sort_unstable();
        let mut held: ArrayVec<(usize, Held<'_>), MAX_CHARGES> = ArrayVec::new();
        let mut last = None;
        for (line, version) in lines {
            match last {
                Some((before, seen)) if before == line && seen == version => {}
                Some((before, _)) if before == line => return None,
                _ => held.push((line, self.table.line(line).lock_at(version)?)),
            }
            last = Some((line, version));
        }
        Some(held)
    }

    /// The hash of a key; neighbouring charges often have one key, which is hashed once.
    pub(super) fn key_hash<'k>(&self, key: &'k [u8], last: &mut Option<(&'k [u8], u64)>) -> u64 {
        match last {
            Some((before, hash)) if *before == key => *hash,
            _ => {
                let hash = self.seed.key(key);
                *last = Some((key, hash));
                hash
            }
        }
    }
}
