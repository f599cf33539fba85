//! `cost:` of a limit.

use crate::http::path::Rules;
use crate::policy::cost::Costs;
use crate::policy::error::At;
use crate::policy::file::{Amount, Cost};
use crate::policy::findings::Findings;
use crate::policy::matching;

/// Reads the costs of a limit.
pub(super) fn compile(written: Option<&At<Cost>>, rules: Rules, findings: &mut Findings) -> Costs {
    let mut costs = Costs { ignore_case: rules.ignore_case, ..Costs::default() };
    match written.map(|written| (&written.value, written.place)) {
        None => {}
        Some((Cost::Same(amount), place)) => costs.usual = units(&At::new(*amount, place), findings),
        Some((Cost::Matching(entries), place)) => {
            if entries.0.is_empty() {
                findings.blame(place, "this says no cost").hint("write a number, or a number for each form of `match`");
            }
            for (text, amount) in &entries.0 {
                let pattern = matching::parse(text, text.place, rules, findings);
                let units = units(amount, findings);
                costs.matching.extend(pattern.map(|pattern| (pattern, units)));
            }
        }
    }
    costs
}

fn units(amount: &At<Amount>, findings: &mut Findings) -> u32 {
    u32::try_from(amount.value.0).unwrap_or_else(|_| {
        findings.blame(amount.place, "a cost is below 2^32");
        1
    })
}
