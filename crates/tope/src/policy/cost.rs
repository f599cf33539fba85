//! What a request costs.

use super::matching::Pattern;
use crate::facts::Facts;

/// What a request costs a limit: the largest cost of those whose pattern matches, else the usual one.
#[derive(Debug)]
pub(super) struct Costs {
    pub(super) usual: u32,
    pub(super) matching: Vec<(Pattern, u32)>,
    pub(super) ignore_case: bool,
}

impl Default for Costs {
    fn default() -> Self {
        Self { usual: 1, matching: Vec::new(), ignore_case: false }
    }
}

impl Costs {
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
