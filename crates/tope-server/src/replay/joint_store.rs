//! STUB, to be removed when `tope::store::memory::Memory` is there: a plain map over the steps of `tope-core`, without
//! sliding logs' slab, without bounds. It exists so that this crate runs before the store does.

use std::collections::HashMap;
use std::future::{Ready, ready};
use std::sync::Mutex;

use tope::core::algorithm::{self, sliding_log};
use tope::core::{Algorithm, Decision, State};
use tope::store::{Answer, Answered, Charged, Store, StoreError};
use tope::{Budget, Charge};

/// A map of buckets.
#[derive(Debug, Default)]
pub(crate) struct Memory(Mutex<HashMap<(u16, Box<[u8]>), Bucket>>);

#[derive(Clone, Debug)]
struct Bucket {
    state: State,
    log: Log,
    last_us: u64,
}

impl Memory {
    pub(crate) fn new(_max_keys: usize) -> Result<Self, StoreError> {
        Ok(Self::default())
    }
}

impl Bucket {
    fn check(&mut self, charge: &Charge<'_>, now_us: u64, cost: u32) -> Decision {
        self.last_us = self.last_us.max(now_us);
        let quota = &charge.budget.quota;
        if quota.algorithm() == Algorithm::SlidingLog {
            let decision = sliding_log::step(quota, &self.log, self.last_us, cost);
            if decision.allowed() {
                sliding_log::commit(quota, &mut self.log, self.last_us, cost);
            }
            return decision;
        }
        let (decision, state) = algorithm::step(quota, &charge.budget.edges, self.state, self.last_us, cost);
        self.state = state;
        decision
    }
}

impl Store for Memory {
    type Charging = Ready<Result<Charged, StoreError>>;
    type Settling = Ready<Result<(), StoreError>>;

    fn adopt(&self, budgets: &mut [Budget]) -> Result<(), StoreError> {
        for (number, budget) in (0..).zip(budgets) {
            budget.number = number;
        }
        Ok(())
    }

    fn charge(&self, charges: &[Charge<'_>], now_us: u64) -> Answer<Result<Charged, StoreError>, Self::Charging> {
        let mut map = self.0.lock().expect("nobody panics while holding it");
        let fresh = || Bucket { state: State::FULL, log: Log::default(), last_us: 0 };
        let key = |charge: &Charge<'_>| (charge.budget.number, Box::from(charge.key));
        let mut trial: Vec<Bucket> =
            charges.iter().map(|charge| map.get(&key(charge)).cloned().unwrap_or_else(fresh)).collect();
        let before = trial.clone();
        let mut decisions: Vec<Decision> =
            trial.iter_mut().zip(charges).map(|(bucket, charge)| bucket.check(charge, now_us, charge.cost)).collect();
        let allowed =
            charges.iter().zip(&decisions).all(|(charge, decision)| charge.budget.shadow || decision.allowed());
        if !allowed {
            trial = before;
            for ((bucket, charge), decision) in trial.iter_mut().zip(charges).zip(&mut decisions) {
                let peek = bucket.check(charge, now_us, 0);
                *decision = if decision.allowed() { peek } else { *decision };
            }
        }
        let mut charged = Charged { allowed, ..Charged::default() };
        for ((bucket, charge), decision) in trial.into_iter().zip(charges).zip(decisions) {
            charged.answers.push(Answered { decision, at_us: bucket.last_us });
            map.insert(key(charge), bucket);
        }
        Answer::Ready(Ok(charged))
    }

    fn settle(&self, _: &Charge<'_>, _: u64, _: u64, _: i64) -> Answer<Result<(), StoreError>, Self::Settling> {
        Answer::Pending(ready(Ok(())))
    }
}

#[derive(Clone, Debug, Default)]
struct Log(Vec<sliding_log::Admission>);

impl sliding_log::Log for Log {
    fn total(&self) -> u64 {
        self.0.iter().map(|admission| admission.units).sum()
    }
    fn newest(&self) -> Option<sliding_log::Admission> {
        self.0.last().copied()
    }
    fn admissions(&self) -> impl Iterator<Item = sliding_log::Admission> {
        self.0.iter().copied()
    }
    fn push(&mut self, admission: sliding_log::Admission) {
        match self.0.last_mut() {
            Some(last) if last.at_us == admission.at_us => last.units += admission.units,
            _ => self.0.push(admission),
        }
    }
    fn trim(&mut self, mut units: u64) {
        self.0.retain_mut(|admission| {
            let gone = units.min(admission.units);
            units -= gone;
            admission.units -= gone;
            admission.units > 0
        });
    }
    fn correct(&mut self, _: u64, _: i64) {}
}
