//! What one request must pay.

use std::ops::Range;

use arrayvec::ArrayVec;
use smallvec::SmallVec;

use super::Policy;
use super::key::{self, Around, KeyForm, Made, Part};
use super::limit::Limit;
use crate::charge::{Charge, MAX_CHARGES};
use crate::facts::Facts;

/// What one request must pay: for each rate that applies, the budget, the bytes that name the bucket, the cost. The
/// keys lie in one buffer, on the stack while they are of usual length.
#[derive(Clone, Debug, Default)]
pub struct Charges {
    rows: ArrayVec<Row, MAX_CHARGES>,
    bytes: SmallVec<[u8; 256]>,
    group: Range<usize>,
    /// More rates apply than there is room for.
    over_full: bool,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    budget: u16,
    /// Within 2^16: sixteen keys of at most eight short parts.
    from: u16,
    to: u16,
    cost: u32,
}

impl Charges {
    /// No rate applies.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The places of the budgets in [`Policy::budgets`], in the order of the file.
    pub fn budgets(&self) -> impl ExactSizeIterator<Item = u16> {
        self.rows.iter().map(|row| row.budget)
    }

    /// The charges as a store reads them.
    pub fn resolve<'a>(&'a self, policy: &'a Policy) -> ArrayVec<Charge<'a>, MAX_CHARGES> {
        let charge = |row: &'a Row| {
            let key = &self.bytes[usize::from(row.from)..usize::from(row.to)];
            let group = if self.group.is_empty() { key } else { &self.bytes[self.group.clone()] };
            // What can't be charged for must not pass: no limit that is enforced holds so much.
            let cost = if self.over_full { u32::MAX } else { row.cost };
            Charge { budget: &policy.budgets[usize::from(row.budget)], key, group, cost }
        };
        self.rows.iter().map(charge).collect()
    }

    /// What a request must pay under a policy.
    pub(super) fn new(policy: &Policy, facts: &Facts<'_>) -> Self {
        let mut charges = Self::default();
        if policy.exempt.iter().any(|exemption| exemption.frees(facts, &policy.address)) {
            return charges;
        }
        let mut same = Same::default();
        if facts.other_path.is_some() {
            policy.limits.iter().for_each(|limit| charges.add(policy, limit, facts, &mut same));
        } else {
            for place in policy.first.of(facts.path) {
                charges.add(policy, &policy.limits[usize::from(*place)], facts, &mut same);
            }
        }
        if !charges.is_empty() && facts.address.is_some() {
            let from = charges.bytes.len();
            key::write_address(facts.address, &policy.address, &mut charges.bytes);
            charges.group = from..charges.bytes.len();
        }
        charges
    }

    /// Adds what one limit asks for.
    fn add(&mut self, policy: &Policy, limit: &Limit, facts: &Facts<'_>, same: &mut Same) {
        if self.over_full {
            return; // the keys of sixteen rows are bounded, those of all limits are not
        }
        let budgets = limit.budgets(facts.client.plan);
        if (budgets.is_empty() && limit.deny.is_none()) || (facts.preflight && !limit.key.counts_preflights()) {
            return;
        }
        let Some(met) = limit.matching.meet(facts) else { return };
        let from = self.bytes.len();
        let around = Around { plans: &policy.plans, address: &policy.address, seed: &policy.seed };
        let shared = same.of(&limit.key);
        let (made, key) = match shared {
            Some(Some(key)) => (Made::Key, key.clone()),
            other => {
                let made = limit.key.write(facts, &limit.matching, met, around, &mut self.bytes);
                let key = from..self.bytes.len();
                if let Some(shared) = other {
                    *shared = Some(key.clone());
                }
                (made, key)
            }
        };
        let cost = limit.costs.of(facts);
        match made {
            Made::Key => budgets.iter().for_each(|budget| self.push(*budget, key.clone(), cost)),
            Made::Skip => self.bytes.truncate(from),
            Made::Deny => {
                // A cost of nothing would be let through by a budget of nothing.
                limit.deny.iter().for_each(|budget| self.push(*budget, key.clone(), cost.max(1)));
            }
        }
    }

    /// Adds a charge. The compiler has refused policies in which more than sixteen can meet, so this is never full; if
    /// it were wrong in that, one request may not end the process, and is refused instead.
    fn push(&mut self, budget: u16, key: Range<usize>, cost: u32) {
        let place =
            |place: usize| u16::try_from(place).expect("sixteen keys of eight short parts are below 2^16 bytes");
        let row = Row { budget, from: place(key.start), to: place(key.end), cost };
        self.over_full |= self.rows.try_push(row).is_err();
    }
}

/// Where the keys that many limits share were written.
#[derive(Debug, Default)]
struct Same {
    ip: Option<Range<usize>>,
    client: Option<Range<usize>>,
}

impl Same {
    fn of(&mut self, key: &KeyForm) -> Option<&mut Option<Range<usize>>> {
        match key.parts.as_slice() {
            _ if key.by_plan => None,
            [Part::Ip] => Some(&mut self.ip),
            [Part::Client] => Some(&mut self.client),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use ::http::HeaderMap;

    use super::*;
    use crate::facts::Client;

    #[test]
    #[cfg(feature = "yaml")]
    fn keys_of_usual_length_stay_on_the_stack() {
        let text = "limits:
  a: { by: [client, ip, header X-A], rate: [1/s, 2/min] }
  b: { by: client, rate: 1/s }
  c: { by: ip, rate: 1/s }
  d: { rate: 1/s }";
        let policy = crate::policy::read(text, "p", &()).expect("it is a policy");
        let name = "n".repeat(48);
        let mut headers = HeaderMap::new();
        headers.insert("x-a", "v".repeat(48).parse().expect("it is a value"));
        let facts = Facts {
            method: "GET",
            path: "/",
            other_path: None,
            host: "",
            query: None,
            headers: &headers,
            address: Some([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into()),
            client: Client { name: Some(&name), plan: 0 },
            preflight: false,
            body: None,
            cost: None,
        };
        let charges = policy.charges(&facts);
        assert_eq!(charges.budgets().len(), 5);
        assert!(!charges.bytes.spilled(), "{} bytes", charges.bytes.len());
    }
    #[test]
    #[cfg(feature = "yaml")]
    fn more_charges_than_there_is_room_for_are_refused() {
        let policy = crate::policy::read("limits: { a: { rate: 1k/s } }", "p", &()).expect("it is a policy");
        let mut charges = Charges::default();
        for _ in 0..MAX_CHARGES {
            charges.push(0, 0..0, 1);
        }
        assert!(charges.resolve(&policy).iter().all(|charge| charge.cost == 1));
        charges.push(0, 0..0, 1);
        assert_eq!(charges.budgets().len(), MAX_CHARGES);
        assert!(charges.resolve(&policy).iter().all(|charge| charge.cost == u32::MAX));
    }
}
