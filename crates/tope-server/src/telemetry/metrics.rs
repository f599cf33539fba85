//! Counters: each worker has its own, so that no two cores write one cache line, and a scrape adds them up.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;
use tope::core::Outcome;
use tope::facts::Price;
use tope::observe::{CLIENT_LEFT, Observe, Record};
use tope::{Judgement, Policy};

/// Upper bounds of the duration's buckets, in nanoseconds.
pub(super) const DURATIONS_NS: [u64; 11] =
    [1_000, 5_000, 25_000, 100_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 100_000_000];

/// What a limit decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decided {
    Allow,
    Deny,
    Never,
    ShadowDeny,
}

impl Decided {
    pub(super) const ALL: [Self; 4] = [Self::Allow, Self::Deny, Self::Never, Self::ShadowDeny];

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Never => "never",
            Self::ShadowDeny => "shadow_deny",
        }
    }
}

/// The decisions of one limit.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    /// By what was decided.
    pub(super) decided: [AtomicU64; 4],
    /// Its price is said by answers.
    pub(super) priced: AtomicBool,
    /// Answers that did not say it, and those that said no number.
    pub(super) unpriced: [AtomicU64; 2],
}

/// The counters of one worker.
#[derive(Debug, Default)]
pub struct Worker {
    /// By the names of limits, those of earlier policies too: a counter never goes away.
    limits: Mutex<HashMap<String, Arc<Decisions>>>,
    /// The same for the budgets of the policy that was seen last.
    budgets: ArcSwapOption<Budgets>,
    /// Requests that passed, that were refused, and that were none.
    pub(super) requests: [AtomicU64; 3],
    /// Answers of upstreams by the first digit of their status; what is no status is at 0.
    pub(super) answers: [AtomicU64; 6],
    pub(super) durations: [AtomicU64; DURATIONS_NS.len() + 1],
    pub(super) duration_sum_ns: AtomicU64,
}

#[derive(Debug)]
struct Budgets {
    policy: Arc<Policy>,
    decisions: Vec<Arc<Decisions>>,
}

impl Worker {
    /// Every limit that decided here, and what.
    pub(super) fn decisions(&self) -> Vec<(String, Arc<Decisions>)> {
        let limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        limits.iter().map(|(name, decisions)| (name.clone(), Arc::clone(decisions))).collect()
    }

    /// The counters of this policy's budgets.
    fn of(&self, policy: &Arc<Policy>) -> arc_swap::Guard<Option<Arc<Budgets>>> {
        let budgets = self.budgets.load();
        if budgets.as_ref().is_some_and(|budgets| Arc::ptr_eq(&budgets.policy, policy)) {
            return budgets;
        }
        self.budgets.store(Some(Arc::new(self.learn(policy))));
        self.budgets.load()
    }

    fn count(&self, judgement: &Judgement) {
        let budgets = self.of(judgement.policy());
        let (policy, Some(budgets)) = (judgement.policy(), budgets.as_ref()) else { return };
        for (budget, decision) in judgement.rows() {
            let at = usize::from(*budget);
            let result = match decision.outcome() {
                // Of a refused request nothing was taken: who would have allowed it alone says nothing.
                Outcome::Allow if !judgement.allowed() => continue,
                Outcome::Allow => Decided::Allow,
                _ if policy.budgets[at].shadow => Decided::ShadowDeny,
                Outcome::Deny { .. } => Decided::Deny,
                Outcome::Never => Decided::Never,
            };
            budgets.decisions[at].decided[result as usize].fetch_add(1, Relaxed);
        }
    }

    fn learn(&self, policy: &Arc<Policy>) -> Budgets {
        let mut limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        let mut of = |budget: usize| {
            let limit = u16::try_from(budget).ok().map(|budget| policy.limit_of(budget));
            let name = limit.map_or("", tope::policy::Limit::name);
            let decisions = limits.entry(name.to_owned()).or_default();
            decisions.priced.fetch_or(limit.is_some_and(|limit| !limit.charge_text().is_empty()), Relaxed);
            Arc::clone(decisions)
        };
        Budgets { policy: Arc::clone(policy), decisions: (0..policy.budgets.len()).map(&mut of).collect() }
    }
}

impl Observe for Worker {
    fn unpriced(&self, policy: &Arc<Policy>, budget: u16, price: Price) {
        // An answer may end under a policy that is not in force any more; its limit is counted by its name.
        let mut limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = limits.entry(policy.limit_of(budget).name().to_owned()).or_default();
        limit.unpriced[usize::from(price == Price::Unreadable)].fetch_add(1, Relaxed);
    }

    fn observe(&self, record: &Record<'_>) {
        let passed = record.judgement.is_some_and(Judgement::allowed);
        let kind = match record.judgement {
            Some(judgement) => {
                self.count(judgement);
                usize::from(!passed)
            }
            None => 2,
        };
        self.requests[kind].fetch_add(1, Relaxed);
        if passed {
            let class = if record.status == CLIENT_LEFT { 0 } else { usize::from(record.status / 100) };
            self.answers[if class < self.answers.len() { class } else { 0 }].fetch_add(1, Relaxed);
        }
        let bucket = DURATIONS_NS.iter().position(|bound| record.judged_ns <= *bound).unwrap_or(DURATIONS_NS.len());
        self.durations[bucket].fetch_add(1, Relaxed);
        self.duration_sum_ns.fetch_add(record.judged_ns, Relaxed);
    }
}

/// What happened to the policy since the start.
#[derive(Debug, Default)]
pub struct Reloads {
    /// Policies that came into force.
    pub done: AtomicU64,
    /// Policies that were refused; the one before stayed.
    pub refused: AtomicU64,
    /// When the policy in force came, in Unix seconds.
    pub since_s: AtomicU64,
}
