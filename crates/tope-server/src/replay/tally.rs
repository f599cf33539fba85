//! What a replay counts.

use std::collections::HashMap;
use std::net::IpAddr;

use tope::Budget;
use tope::core::Decision;

use super::formats::{Broken, Format, Line};
use crate::pass::{Caller, Outcome};

/// Callers that one rate refused, at most so many told apart; later ones are counted together.
const MOST_CALLERS: usize = 1_000_000;

const MINUTE_US: u64 = 60_000_000;

/// Where a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which log, by its place in the order given.
    pub file: usize,
    /// The line there, from 1, every line counted.
    pub line: u64,
}

/// All that a replay counts.
#[derive(Debug, Default)]
pub struct Tally {
    /// Lines that are requests.
    pub requests: u64,
    /// Of them, those that pass.
    pub admitted: u64,
    /// Those that a limit refuses.
    pub refused: u64,
    /// Those whose path may not pass: 400, before any limit.
    pub bad_paths: u64,
    /// When the earliest and the latest arrived.
    pub span_us: Option<(u64, u64)>,
    /// Lines older than one before them, judged at its time.
    pub late: u64,
    /// Lines that are no request, and the first of them.
    pub broken: u64,
    /// The first of them.
    pub first_broken: Option<(Place, Broken)>,
    /// Requests without a path in a log that need not have one.
    pub without_path: u64,
    /// Requests without an address.
    pub without_address: u64,
    /// How often the log's numbers began anew.
    pub restarts: u64,
    /// Requests whose verdict the log has, and how many of them are judged otherwise now.
    pub compared: u64,
    /// How many of them are judged otherwise now.
    pub differing: u64,
    /// The first of them.
    pub first_differing: Option<Place>,
    /// How each log was written, by its place.
    pub formats: Vec<Option<Format>>,
    /// What each rate said, by its place in the policy.
    pub budgets: Vec<PerBudget>,
    minutes: HashMap<u64, Minute>,
}

/// What one rate said.
#[derive(Clone, Debug, Default)]
pub struct PerBudget {
    /// Requests it applied to.
    pub applied: u64,
    /// Requests it took units for.
    pub charged: u64,
    /// Requests it refused, or would have as a shadow.
    pub refused: u64,
    /// When and where it first did.
    pub first_refusal: Option<(u64, Place)>,
    callers: HashMap<Who, u64>,
}

/// A minute of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Minute {
    /// When it began, in Unix microseconds.
    pub from_us: u64,
    /// Requests in it.
    pub requests: u64,
    /// Of them, those refused.
    pub refused: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Who {
    Client(Box<str>),
    Address(IpAddr),
    Unknown,
    Others,
}

impl Tally {
    /// Nothing counted yet.
    pub fn new(budgets: &[Budget], files: usize) -> Self {
        Self { budgets: vec![PerBudget::default(); budgets.len()], formats: vec![None; files], ..Self::default() }
    }

    /// Counts a line that is no request.
    pub fn broken(&mut self, place: Place, broken: Broken) {
        self.broken += 1;
        self.first_broken.get_or_insert((place, broken));
    }

    /// Counts a request, judged at `now_us`.
    pub fn request(
        &mut self,
        place: Place,
        line: &Line<'_>,
        now_us: u64,
        outcome: Outcome<'_>,
        rows: &[(u16, Decision)],
    ) {
        self.requests += 1;
        self.without_path += u64::from(line.target.is_none());
        self.without_address += u64::from(line.address.is_none());
        let (first, last) = self.span_us.unwrap_or((now_us, now_us));
        self.span_us = Some((first.min(now_us), last.max(now_us)));
        let minute = now_us - now_us % MINUTE_US;
        let minute = self.minutes.entry(minute).or_insert(Minute { from_us: minute, ..Minute::default() });
        minute.requests += 1;

        let Outcome::Judged { allowed, caller, .. } = outcome else {
            self.bad_paths += 1;
            return;
        };
        self.admitted += u64::from(allowed);
        self.refused += u64::from(!allowed);
        minute.refused += u64::from(!allowed);
        for (budget, decision) in rows {
            self.budgets[usize::from(*budget)].count(place, now_us, allowed, decision, caller);
        }
        self.compare(place, line, outcome);
    }

    /// The minute with the most requests; of equals the earliest.
    pub fn busiest(&self) -> Option<Minute> {
        self.minutes.values().copied().max_by_key(|minute| (minute.requests, u64::MAX - minute.from_us))
    }

    fn compare(&mut self, place: Place, line: &Line<'_>, outcome: Outcome<'_>) {
        let Some(then) = line.ours.as_ref().and_then(|ours| said_allowed(ours.verdict.as_deref()?)) else { return };
        let Outcome::Judged { allowed, .. } = outcome else { return };
        self.compared += 1;
        if then != allowed {
            self.differing += 1;
            self.first_differing.get_or_insert(place);
        }
    }
}

/// What the word of an access log means.
fn said_allowed(verdict: &str) -> Option<bool> {
    match verdict {
        "allow" => Some(true),
        "deny" | "never" => Some(false),
        _ => None,
    }
}

impl PerBudget {
    fn count(&mut self, place: Place, now_us: u64, allowed: bool, decision: &Decision, caller: Caller<'_>) {
        self.applied += 1;
        if decision.allowed() {
            self.charged += u64::from(allowed);
            return;
        }
        self.refused += 1;
        self.first_refusal.get_or_insert((now_us, place));
        let who = match caller {
            Caller::Client(name) => Who::Client(name.into()),
            Caller::Address(address) => Who::Address(address),
            Caller::Unknown => Who::Unknown,
        };
        let known = self.callers.len() < MOST_CALLERS || self.callers.contains_key(&who);
        *self.callers.entry(if known { who } else { Who::Others }).or_default() += 1;
    }

    /// Adds what another rate said of the same name.
    pub fn add(&mut self, other: &Self) {
        self.applied += other.applied;
        self.charged += other.charged;
        self.refused += other.refused;
        self.first_refusal = match (self.first_refusal, other.first_refusal) {
            (Some(ours), Some(theirs)) => Some(if theirs.0 < ours.0 { theirs } else { ours }),
            (ours, theirs) => ours.or(theirs),
        };
        for (who, times) in &other.callers {
            *self.callers.entry(who.clone()).or_default() += times;
        }
    }

    /// The callers refused most, and how often: client names and addresses, never keys.
    pub fn most_refused(&self, most: usize) -> Vec<(String, u64)> {
        let mut callers: Vec<_> = self.callers.iter().collect();
        callers.sort_unstable_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
        let word = |who: &Who| match who {
            Who::Client(name) => name.to_string(),
            Who::Address(address) => address.to_string(),
            Who::Unknown => "unknown".to_owned(),
            Who::Others => "others".to_owned(),
        };
        callers.into_iter().take(most).map(|(who, times)| (word(who), *times)).collect()
    }
}
