//! How much each plan has: the rates of a limit, plan by plan, as budgets.

use std::collections::HashSet;
use std::sync::Arc;

use tope_core::{Period, Quota, Rate};

use super::calendar::Edges;
use super::error::At;
use super::file::{Entries, Rates, Written};
use super::findings::{Findings, nearest};
use super::limit::{Size, budget_name};
use crate::charge::Budget;

/// The plans of a file, and the budgets made so far.
pub(super) struct Plans<'f> {
    pub(super) names: Vec<String>,
    columns: Option<&'f Entries<Entries<At<Rates>>>>,
    edges: Edges,
    pub(super) budgets: Vec<Budget>,
    /// Columns that a limit has asked for.
    pub(super) used: HashSet<String>,
    /// Plans and columns that were blamed already.
    blamed: HashSet<(usize, String)>,
    too_many: bool,
}

/// A limit that asks for its budgets.
pub(super) struct Asked<'a> {
    pub(super) name: &'a str,
    pub(super) rates: &'a Rates,
    pub(super) shadow: bool,
    /// Whether budgets are made, or the rates only checked.
    pub(super) enabled: bool,
    /// How long a place of those at once is kept, in microseconds.
    pub(super) hold_us: u64,
}

impl<'f> Plans<'f> {
    pub(super) fn new(columns: Option<&'f Entries<Entries<At<Rates>>>>, edges: Edges, findings: &mut Findings) -> Self {
        let plans = columns.map_or(&[] as &[_], |columns| &columns.0);
        for (name, columns) in plans {
            check_name("a plan", name, findings);
            for (_, rates) in &columns.0 {
                for written in &rates.value.0 {
                    if let Written::Plan(_) = written.value {
                        findings.blame(written.place, "a plan can't refer to a plan").hint("write the rate here");
                    }
                }
            }
        }
        if plans.len() > usize::from(u16::MAX) {
            findings.blame(plans[0].0.place, "there are more than 65,535 plans");
        }
        let names = plans.iter().map(|(name, _)| name.value.clone()).collect();
        let (budgets, used, blamed) = (Vec::new(), HashSet::new(), HashSet::new());
        Self { names, columns, edges, budgets, used, blamed, too_many: false }
    }

    /// The budgets of a limit: one for each rate of its list, and where a rate is the plan's, one for each plan. A
    /// rate's number is that of its place in the list as if every plan had the longest column, so that a rate keeps
    /// its number whatever plan a client changes to.
    pub(super) fn sizes(&mut self, asked: &Asked<'_>, findings: &mut Findings) -> Vec<Size> {
        let depends = asked.rates.0.iter().any(|written| matches!(written.value, Written::Plan(_)));
        let count = if depends { self.names.len().max(1) } else { 1 };
        let mut sizes: Vec<Size> = (0..count).map(|_| Size::default()).collect();
        let mut slot = 0;
        for written in &asked.rates.0 {
            match &written.value {
                Written::Rate(rate) => {
                    let budget = self.budget(asked, slot, *rate, written, findings);
                    for size in &mut sizes {
                        size.rates.push((slot, *rate));
                        size.budgets.extend(budget);
                    }
                    slot += 1;
                }
                Written::Plan(column) => {
                    slot += self.column(asked, slot, &At::new(column.clone(), written.place), &mut sizes, findings);
                }
            }
        }
        sizes
    }

    /// Adds what each plan says in a column; returns how many numbers it takes.
    fn column(
        &mut self,
        asked: &Asked<'_>,
        first: u16,
        column: &At<String>,
        sizes: &mut [Size],
        findings: &mut Findings,
    ) -> u16 {
        self.used.insert(column.value.clone());
        let Some(plans) = self.columns.filter(|plans| !plans.0.is_empty()) else {
            findings
                .blame(column.place, "there are no plans")
                .hint(format!("add `plans: {{ free: {{ {}: 60/min }} }}`", column.value));
            return 1;
        };
        if !plans.0.iter().any(|(_, columns)| columns.named(column).is_some()) {
            let near = nearest(column, plans.0.iter().flat_map(|(_, columns)| columns.names()));
            let finding = findings.blame(column.place, format!("no plan has a column `{}`", column.value));
            match near {
                Some(near) => finding.hint(format!("did you mean `plan.{near}`?")),
                None => finding.hint("add it to every plan: a rate, `unlimited` or `none`"),
            };
            return 1;
        }
        let mut longest = 0;
        for (at, (plan, columns)) in plans.0.iter().enumerate() {
            let Some(rates) = columns.named(column) else {
                if self.blamed.insert((at, column.value.clone())) {
                    let message = format!(
                        "plan `{}` has no column `{}`, which limit `{}` uses",
                        plan.value, column.value, asked.name
                    );
                    let near = nearest(column, columns.names());
                    let finding = findings.blame(plan.place, message);
                    match near.filter(|near| !self.used.contains(*near)) {
                        Some(near) => finding.did_you_mean(Some(near)),
                        None => finding.hint(format!("add `{}: ` with a rate, `unlimited` or `none`", column.value)),
                    };
                }
                continue;
            };
            let mut slot = first;
            for written in &rates.value.0 {
                if let Written::Rate(rate) = written.value {
                    let budget = self.budget(asked, slot, rate, written, findings);
                    sizes[at].rates.push((slot, rate));
                    sizes[at].budgets.extend(budget);
                }
                slot += 1;
            }
            longest = longest.max(slot - first);
        }
        longest.max(1)
    }

    /// Makes the budget of a rate; `unlimited` has none.
    fn budget(
        &mut self,
        asked: &Asked<'_>,
        slot: u16,
        rate: Rate,
        written: &At<Written>,
        findings: &mut Findings,
    ) -> Option<u16> {
        let quota = match rate {
            Rate::Quota(quota) => quota,
            Rate::AtOnce(places) => match Quota::at_once(places, asked.hold_us) {
                Ok(quota) => quota,
                Err(error) => {
                    findings.blame(written.place, error.to_string());
                    return None;
                }
            },
            _ => return None,
        };
        if !asked.enabled {
            return None;
        }
        let edges = match quota.period() {
            Period::Calendar(calendar) => self.edges.of(calendar),
            Period::Rolling(_) => Arc::from([]),
        };
        let budget = Budget { shadow: asked.shadow, ..Budget::new(budget_name(asked.name, slot), quota, edges) };
        self.add(budget, written, findings)
    }

    /// Adds a budget; returns its place.
    pub(super) fn add<T>(&mut self, budget: Budget, written: &At<T>, findings: &mut Findings) -> Option<u16> {
        let Ok(place) = u16::try_from(self.budgets.len()) else {
            if !self.too_many {
                self.too_many = true;
                findings
                    .blame(written.place, "limits and plans together make more than 65,536 budgets")
                    .hint("use fewer plans, or several policies");
            }
            return None;
        };
        self.budgets.push(budget);
        Some(place)
    }
}

/// Names stand in header fields, metrics and commands.
pub(super) fn check_name(what: &str, name: &At<String>, findings: &mut Findings) {
    let named = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if name.is_empty() || name.len() > 64 || !name.bytes().all(named) {
        findings
            .blame(name.place, format!("the name of {what} is 1 to 64 letters, digits, `-` and `_`"))
            .hint("it stands in header fields and metrics");
    } else if super::traps::is_truth(name) {
        findings
            .blame(name.place, format!("`{}` is a truth value to many readers of YAML", name.value))
            .hint("choose another name");
    }
}
