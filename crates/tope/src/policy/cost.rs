//! What a request costs.

use super::error::At;
use super::file::{Amount, Cost};
use super::findings::Findings;
use super::matching::{self, Pattern};
use crate::facts::Facts;
use crate::http::path::Rules;

/// What a request costs a limit: the largest cost of those whose pattern matches, else the usual one.
#[derive(Debug)]
pub(super) struct Costs {
    pub(super) usual: u32,
    pub(super) matching: Vec<(Pattern, u32)>,
    ignore_case: bool,
}

impl Default for Costs {
    fn default() -> Self {
        Self { usual: 1, matching: Vec::new(), ignore_case: false }
    }
}

impl Costs {
    /// Reads the costs of a limit.
    pub(super) fn parse(written: Option<&At<Cost>>, rules: Rules, findings: &mut Findings) -> Self {
        let mut costs = Self { ignore_case: rules.ignore_case, ..Self::default() };
        match written.map(|written| (&written.value, written.place)) {
            None => {}
            Some((Cost::Same(amount), place)) => costs.usual = units(&At::new(*amount, place), findings),
            Some((Cost::Matching(entries), _)) => {
                for (text, amount) in &entries.0 {
                    let pattern = matching::parse(text, text.place, rules, findings);
                    let units = units(amount, findings);
                    costs.matching.extend(pattern.map(|pattern| (pattern, units)));
                }
            }
        }
        costs
    }

    /// The cost of one request; a cost from a log replaces it.
    pub(super) fn of(&self, facts: &Facts<'_>) -> u32 {
        if let Some(cost) = facts.cost {
            return cost;
        }
        let reads = |pattern: &Pattern, path: &str| pattern.matches(facts.method, path, self.ignore_case);
        let matches =
            |pattern: &Pattern| reads(pattern, facts.path) || facts.other_path.is_some_and(|path| reads(pattern, path));
        let matching = self.matching.iter().filter(|(pattern, _)| matches(pattern)).map(|(_, units)| *units);
        matching.max().unwrap_or(self.usual)
    }

    /// The largest cost that a request can have.
    pub(super) fn largest(&self) -> u32 {
        self.matching.iter().map(|(_, units)| *units).max().unwrap_or(0).max(self.usual)
    }
}

fn units(amount: &At<Amount>, findings: &mut Findings) -> u32 {
    u32::try_from(amount.value.0).unwrap_or_else(|_| {
        findings.blame(amount.place, "a cost is below 2^32");
        1
    })
}
