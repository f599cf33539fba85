//! What a request costs.

use super::matching::Pattern;
use super::price::Asked;
use crate::facts::Facts;

/// What a request costs a limit: the largest cost of those whose pattern matches, else the usual one.
#[derive(Debug)]
pub(super) struct Costs {
    pub(super) usual: u32,
    pub(super) matching: Vec<(Pattern, u32)>,
    pub(super) ignore_case: bool,
    /// Where the request says it.
    pub(super) asked: Option<Asked>,
}

impl Default for Costs {
    fn default() -> Self {
        Self { usual: 1, matching: Vec::new(), ignore_case: false, asked: None }
    }
}

impl Costs {
    /// The cost of one request; a cost from a log replaces it.
    pub(super) fn of(&self, facts: &Facts<'_>) -> u32 {
        if let Some(cost) = facts.cost {
            return cost;
        }
        if let Some(units) = self.asked.as_ref().and_then(|asked| asked.of(facts)) {
            return units;
        }
        let reads = |pattern: &Pattern, path: &str| pattern.matches(facts.method, path, self.ignore_case);
        let matches =
            |pattern: &Pattern| reads(pattern, facts.path) || facts.other_path.is_some_and(|path| reads(pattern, path));
        let matching = self.matching.iter().filter(|(pattern, _)| matches(pattern)).map(|(_, units)| *units);
        matching.max().unwrap_or(self.usual)
    }

    /// The least that a request costs.
    pub(super) fn least(&self) -> u32 {
        self.matching.iter().map(|(_, units)| *units).min().unwrap_or(self.usual).min(self.usual)
    }

    /// Whether the body of a request says it.
    pub(super) fn is_in_the_body(&self) -> bool {
        matches!(self.asked, Some(Asked::Body(_)))
    }

    /// The largest cost that a request can have, as far as the policy says it.
    pub(super) fn largest(&self) -> u32 {
        self.matching.iter().map(|(_, units)| *units).max().unwrap_or(0).max(self.usual)
    }
}
