//! Where the bucket of a charge is, or would be: its own place, a free one, one that somebody must leave, or none.

use arrayvec::ArrayVec;
use tope_core::State;
use tope_core::algorithm;

use super::pass::Seated;
use super::table::{self, LINE, NEVER_USED, Place, Table};
use super::{Memory, Ordering};
use crate::charge::{Charge, MAX_CHARGES};

/// How far a request has to look.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// In the home lines alone, where nearly every bucket is.
    Home,
    /// In both lines of every bucket.
    Both,
    /// In both lines, and what they hold must do: something goes, or the newcomer is counted with others.
    Last,
}

/// Why a request has to be looked at once more, from the start; nothing was taken.
pub(super) enum Again {
    /// A bucket may be in its other line.
    Further,
    /// Both lines of this newcomer are full of live buckets.
    Full(u64),
}

/// Where the bucket of a charge is, or will be if the charge is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Seat {
    /// In this place of this held line.
    Own { line: usize, at: usize, fresh: bool },
    /// With the other newcomers of its group.
    Shared { group: u64 },
}

/// Where one request looks for its buckets.
#[derive(Clone, Copy)]
pub(super) struct Search<'a> {
    pub(super) held: &'a Held<'a>,
    /// All buckets of the request.
    pub(super) hashes: &'a [u64],
    pub(super) now_us: u64,
    pub(super) depth: Depth,
}

impl Seat {
    fn is(self, line: usize, at: usize) -> bool {
        matches!(self, Self::Own { line: own, at: place, .. } if own == line && place == at)
    }
}

impl Memory {
    /// Where the bucket of a charge is, or would be.
    pub(super) fn seat(
        &self,
        search: &Search<'_>,
        seated: &[Seated],
        charge: &Charge<'_>,
        hash: u64,
    ) -> Result<(Seat, Place), Again> {
        let Search { held, hashes, now_us, depth } = *search;
        let home = held.line(self.table.home(hash));
        if let Some(at) = held.lines[home].find(hash) {
            return Ok((Seat::Own { line: home, at, fresh: false }, held.lines[home].get(at)));
        }
        // What another charge of this request sits in, or will find its bucket in, is nobody's to take.
        let ours = |line: usize, at: usize| {
            hashes.contains(&held.lines[line].get(at).hash) || seated.iter().any(|seated| seated.seat.is(line, at))
        };
        let fresh = |line, at| Ok((Seat::Own { line, at, fresh: true }, Place::default()));
        // What was never used ends the search: nothing of this home ever had to go elsewhere.
        let virgin = |at: &usize| held.lines[home].get(*at).hash == NEVER_USED && !ours(home, *at);
        if let Some(at) = (0..LINE).find(virgin) {
            return fresh(home, at);
        }
        if depth == Depth::Home {
            return Err(Again::Further);
        }
        let away = held.line(self.table.away(hash));
        if let Some(at) = held.lines[away].find(hash) {
            return Ok((Seat::Own { line: away, at, fresh: false }, held.lines[away].get(at)));
        }

        let open = [home, away].into_iter().flat_map(|line| (0..LINE).map(move |at| (line, at)));
        let weakest = open
            .filter(|(line, at)| !ours(*line, *at))
            .map(|(line, at)| (self.free_at(&held.lines[line].get(at)), line, at))
            .min_by_key(|(free_at, ..)| *free_at);
        match weakest {
            Some((free_at, line, at)) if free_at <= now_us => fresh(line, at),
            _ if depth != Depth::Last => Err(Again::Full(hash)),
            Some((free_at, line, at)) if free_at < newcomer_full_at(charge, now_us) => fresh(line, at),
            _ => {
                self.overflowed.fetch_add(1, Ordering::Relaxed);
                Ok((Seat::Shared { group: self.seed.key(charge.group) }, Place::default()))
            }
        }
    }
}

/// When a newcomer would be full again after this charge.
fn newcomer_full_at(charge: &Charge<'_>, now_us: u64) -> u64 {
    let budget = charge.budget;
    if budget.quota.algorithm().is_log() {
        return now_us.saturating_add(budget.quota.period_us());
    }
    let (_, next) = algorithm::step(&budget.quota, &budget.edges, State::FULL, now_us, charge.cost);
    algorithm::full_at(&budget.quota, &budget.edges, next)
}

/// The lines of a request, locked in ascending order.
pub(super) struct Held<'a> {
    ids: ArrayVec<usize, { 2 * MAX_CHARGES }>,
    pub(super) lines: ArrayVec<table::Held<'a>, { 2 * MAX_CHARGES }>,
}

impl<'a> Held<'a> {
    pub(super) fn lock(table: &'a Table, hashes: &[u64], depth: Depth) -> Self {
        let mut wanted: ArrayVec<usize, { 2 * MAX_CHARGES }> = hashes.iter().map(|hash| table.home(*hash)).collect();
        if depth != Depth::Home {
            wanted.extend(hashes.iter().map(|hash| table.away(*hash)));
        }
        wanted.sort_unstable();
        let mut held = Self { ids: ArrayVec::new(), lines: ArrayVec::new() };
        for line in wanted {
            if held.ids.last() != Some(&line) {
                held.ids.push(line);
                held.lines.push(table.lock(line));
            }
        }
        held
    }

    /// A bucket goes to `line`: if that is not its home, its home must be searched to the end from now on.
    pub(super) fn close_home(&self, home: usize, line: usize) {
        if self.ids[line] != home {
            self.lines[self.line(home)].close();
        }
    }

    /// Where a line is among those held.
    pub(super) fn line(&self, id: usize) -> usize {
        self.ids.iter().position(|held| *held == id).expect("every line of a request is locked before it is looked at")
    }
}
