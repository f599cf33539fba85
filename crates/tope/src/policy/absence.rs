//! Why a limit does not apply to a request: the same questions as in `charges`, asked one by one.

use super::Policy;
use super::key::{Around, Bytes, Made};
use super::limit::{Limit, Mode};
use crate::facts::Facts;

/// Why a limit does not apply to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Absence {
    /// The limit is disabled.
    Disabled,
    /// No limit applies to the request.
    Exempt,
    /// The limit has no ceiling on the caller's plan.
    Unlimited,
    /// The request is a preflight, and the limit's key is of more than address and all.
    Preflight,
    /// No pattern of `match` takes it, or another host or header was asked for.
    NoMatch,
    /// It is matched, and `except` takes it out.
    Excepted,
    /// A part of the key is missing, and `missing: skip` is said.
    PartMissing,
}

impl Policy {
    /// Why `limit` asks nothing of a request; `None` where it asks for something.
    pub fn absence(&self, limit: &Limit, facts: &Facts<'_>) -> Option<Absence> {
        if limit.mode == Mode::Disabled {
            return Some(Absence::Disabled);
        }
        if self.exempt.iter().any(|exemption| exemption.frees(facts, &self.address)) {
            return Some(Absence::Exempt);
        }
        let unlimited = limit.budgets(facts.client.plan).is_empty();
        if unlimited && limit.deny.is_none() {
            return Some(Absence::Unlimited);
        }
        if facts.preflight && !limit.key.counts_preflights() {
            return Some(Absence::Preflight);
        }
        let Some(met) = limit.matching.meet(facts) else {
            let excepted = limit.matching.is_excepted(facts);
            return Some(if excepted { Absence::Excepted } else { Absence::NoMatch });
        };
        let around = Around { plans: &self.plans, address: &self.address, seed: &self.seed };
        match limit.key.write(facts, &limit.matching, met, around, &mut Bytes::new()) {
            Made::Skip => Some(Absence::PartMissing),
            Made::Key if unlimited => Some(Absence::Unlimited),
            Made::Key | Made::Deny => None,
        }
    }
}
