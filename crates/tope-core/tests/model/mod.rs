//! A bucket as a store would hold it, over the pure steps: what the tests of this crate drive.

#![allow(dead_code, reason = "each test file drives its part of it")]

pub(crate) mod shapes;

use tope_core::algorithm::sliding_log::{self, Admission, Log};
use tope_core::{Decision, Quota, State, algorithm};

/// A sliding log in a plain vector.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct VecLog(Vec<Admission>);

impl Log for VecLog {
    fn total(&self) -> u64 {
        self.0.iter().map(|a| a.units).sum()
    }
    fn newest(&self) -> Option<Admission> {
        self.0.last().copied()
    }
    fn admissions(&self) -> impl Iterator<Item = Admission> {
        self.0.iter().copied()
    }
    fn push(&mut self, admission: Admission) {
        match self.0.last_mut() {
            Some(last) if last.at_us == admission.at_us => last.units += admission.units,
            _ => self.0.push(admission),
        }
    }
    fn trim(&mut self, mut units: u64) {
        self.0.retain_mut(|a| {
            let gone = units.min(a.units);
            units -= gone;
            a.units -= gone;
            a.units > 0
        });
    }
    fn correct(&mut self, at_us: u64, delta: i64) {
        self.0.retain_mut(|a| {
            if a.at_us == at_us {
                a.units = a.units.saturating_add_signed(delta);
            }
            a.units > 0
        });
    }
}

/// One bucket of one limit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bucket {
    pub(crate) quota: Quota,
    pub(crate) edges: Vec<u64>,
    state: State,
    log: VecLog,
}

impl Bucket {
    pub(crate) fn new(quota: Quota, edges: Vec<u64>) -> Self {
        Self { quota, edges, state: State::FULL, log: VecLog::default() }
    }

    /// Judges, and takes what was allowed.
    pub(crate) fn check(&mut self, now_us: u64, cost: u32) -> Decision {
        if self.quota.algorithm().is_log() {
            let decision = algorithm::step_log(&self.quota, &self.log, now_us, cost);
            if decision.allowed() && cost > 0 {
                sliding_log::commit(&self.quota, &mut self.log, now_us, cost);
            }
            return decision;
        }
        let (decision, state) = algorithm::step(&self.quota, &self.edges, self.state, now_us, cost);
        self.state = state;
        decision
    }

    pub(crate) fn settle(&mut self, at_us: u64, now_us: u64, delta: i64) {
        if self.quota.algorithm().is_log() {
            sliding_log::settle(&self.quota, &mut self.log, at_us, now_us, delta);
        } else {
            self.state = algorithm::settle(&self.quota, &self.edges, self.state, at_us, now_us, delta);
        }
    }

    pub(crate) fn requota(&mut self, new: Quota, now_us: u64) {
        if self.quota.algorithm().is_log() {
            sliding_log::requota(&self.quota, &new, &mut self.log, now_us);
        } else {
            self.state = algorithm::requota(&self.quota, &new, &self.edges, self.state, now_us);
        }
        self.quota = new;
    }

    /// The moment of the last change.
    pub(crate) fn time_us(&self) -> u64 {
        if self.quota.algorithm().is_log() {
            self.log.newest().map_or(0, |newest| newest.at_us)
        } else {
            self.state.time_us
        }
    }

    pub(crate) fn full_at(&self) -> u64 {
        if self.quota.algorithm().is_log() {
            sliding_log::full_at(&self.quota, &self.log)
        } else {
            algorithm::full_at(&self.quota, &self.edges, self.state)
        }
    }
}

/// One request under several limits: all or nothing.
pub(crate) fn request(buckets: &mut [Bucket], now_us: u64, cost: u32) -> (bool, Vec<Decision>) {
    let mut trial = buckets.to_vec();
    let decisions: Vec<Decision> = trial.iter_mut().map(|bucket| bucket.check(now_us, cost)).collect();
    if decisions.iter().all(Decision::allowed) {
        buckets.clone_from_slice(&trial);
        return (true, decisions);
    }
    let own = |(bucket, decision): (&mut Bucket, Decision)| {
        if decision.allowed() { bucket.check(now_us, 0) } else { decision }
    };
    (false, buckets.iter_mut().zip(decisions).map(own).collect())
}
