//! The limits of a file.

use ::http::HeaderName;

use super::costs;
use crate::charge::Budget;
use crate::http::body::Field;
use crate::http::path::Rules;
use crate::policy::after::Count;
use crate::policy::cost::Costs;
use crate::policy::error::At;
use crate::policy::file::{File, LimitEntry, Many, MissingWord, ModeWord, Rates};
use crate::policy::findings::Findings;
use crate::policy::key::{self, KeyForm, Missing};
use crate::policy::limit::{Limit, Mode, Size, Text};
use crate::policy::matching::{self, Host, Matching, When};
use crate::policy::plan::{self, Plans, check_name};
use crate::policy::price::{Asked, Pricing};
use tope_core::{Quota, Rate};

/// How long a place of those at once is kept for a request whose end nobody learns of: 10 minutes.
const HOLD_US: u64 = 600_000_000;
/// The longest that a request may wait in line: a minute.
const LONGEST_WAIT_US: u64 = 60_000_000;
/// More limits are a mistake of a program that wrote them.
const MOST: usize = 10_000;

/// Compiles all limits; nothing where one was blamed. `fields` become those of answers' bodies that are asked for.
pub(super) fn compile(
    file: &File,
    rules: Rules,
    plans: &mut Plans<'_>,
    fields: &mut Vec<Field>,
    findings: &mut Findings,
) -> Option<Vec<Limit>> {
    let entries = file.limits.as_ref().map_or(&[] as &[_], |limits| &limits.0);
    if let Some((name, _)) = entries.get(MOST) {
        findings.blame(name.place, format!("there are more than {MOST} limits"));
        return None;
    }
    let compiled: Vec<_> =
        entries.iter().map(|(name, entry)| limit(name, entry, rules, plans, fields, findings)).collect();
    compiled.into_iter().collect()
}

fn limit(
    name: &At<String>,
    entry: &LimitEntry,
    rules: Rules,
    plans: &mut Plans<'_>,
    fields: &mut Vec<Field>,
    findings: &mut Findings,
) -> Option<Limit> {
    check_name("a limit", name, findings);
    let matching = matching(entry, rules, findings);
    let missing = match entry.missing.as_ref().map(|word| word.value).unwrap_or_default() {
        MissingWord::Ip => Missing::Ip,
        MissingWord::Deny => Missing::Deny,
        MissingWord::Skip => Missing::Skip,
    };
    let key = match &entry.by {
        None => Some(KeyForm::all()),
        Some(by) => key::parse(&by.0, missing, &matching, findings),
    };
    if let (Some(word), Some(key)) = (&entry.missing, &key)
        && !key.parts.iter().any(key::Part::is_chosen)
    {
        findings
            .blame(word.place, "no part of this key can be missing")
            .hint("`missing` is for header, cookie, query and path");
    }
    let mode = match entry.mode.as_ref().map(|word| word.value).unwrap_or_default() {
        ModeWord::Enforce => Mode::Enforce,
        ModeWord::Shadow => Mode::Shadow,
        ModeWord::Disabled => Mode::Disabled,
    };
    let mut costs = costs::compile(entry.cost.as_ref(), rules, findings);
    let count = count(entry, findings);
    let pricing = pricing(entry, &mut costs, fields, findings);
    let reject = status(entry, findings);
    let Some(rates) = &entry.rate else {
        findings
            .blame(name.place, format!("limit `{}` has no rate", name.value))
            .hint("add `rate: 60/min`, `rate: plan.COLUMN`, or `rate: unlimited` if that is meant");
        return None;
    };
    let hold_us = entry.hold.as_ref().map_or(HOLD_US, |hold| hold.value.0);
    let (shadow, enabled) = (mode == Mode::Shadow, mode != Mode::Disabled);
    let asked = plan::Asked { name, rates: &rates.value, shadow, enabled, hold_us };
    let sizes = plans.sizes(&asked, findings);
    in_flight(entry, &sizes, findings);
    let key = if sizes.len() > 1 { key.map(KeyForm::of_many_sizes) } else { key };
    let deny = deny(&asked, missing, rates, plans, findings);
    let text = Text {
        matches: match_text(entry),
        by: by_text(entry.by.as_ref()),
        count: entry.count.as_ref().map(listed).unwrap_or_default(),
        charge: entry.charge.as_ref().map(|charge| charge.value.clone()).unwrap_or_default(),
        reserve: entry.reserve.as_ref().map(|reserve| reserve.value.0.clone()).unwrap_or_default(),
    };
    let caller_chosen = entry.caller_chosen.as_ref().is_some_and(|yes| yes.value);
    Some(Limit {
        name: name.value.clone(),
        place: name.place,
        matching,
        key: key?,
        by_place: entry.by.as_ref().and_then(|by| by.0.first()).map_or(name.place, |by| by.place),
        keyed: entry.by.is_some(),
        costs,
        count,
        pricing,
        wait_us: wait(entry, findings),
        mode,
        reject,
        caller_chosen,
        sizes,
        deny,
        text,
    })
}

/// What is charged when the answer says it, and what is held until then.
fn pricing(entry: &LimitEntry, costs: &mut Costs, fields: &mut Vec<Field>, findings: &mut Findings) -> Option<Pricing> {
    if let Some(reserve) = &entry.reserve {
        if entry.charge.is_none() {
            findings.blame(reserve.place, "nothing says what becomes of it").hint("add `charge`, or write `cost`");
        }
        if let Some(cost) = &entry.cost {
            findings.blame(cost.place, "what is held stands in `reserve` already").hint("take one of them out");
        }
        match Asked::parse(&reserve.value.0) {
            Ok((asked, units)) => (costs.asked, costs.usual) = (asked, units),
            Err((message, hint)) => drop(findings.blame(reserve.place, message).hint(hint)),
        }
    }
    let charge = entry.charge.as_ref()?;
    if let (Some(cost), 0) = (&entry.cost, costs.least()) {
        findings.blame(cost.place, "a request whose price is not known yet holds 1 or more");
    }
    match Pricing::parse(charge, fields) {
        Ok(pricing) => Some(pricing),
        Err((message, hint)) => {
            findings.blame(charge.place, message).hint(hint);
            None
        }
    }
}

/// How long a request may wait. Proxies and clients give up, and who waits has a connection.
fn wait(entry: &LimitEntry, findings: &mut Findings) -> Option<u64> {
    let wait = entry.wait.as_ref()?;
    if !(1..=LONGEST_WAIT_US).contains(&wait.value.0) {
        findings.blame(wait.place, "a request waits for 1us to 1min").hint("whoever would wait for longer comes again");
    }
    Some(wait.value.0)
}

/// What belongs to requests in flight, and what does not.
fn in_flight(entry: &LimitEntry, sizes: &[Size], findings: &mut Findings) {
    let at_once = sizes.iter().flat_map(|size| &size.rates).any(|(_, rate)| matches!(rate, Rate::AtOnce(_)));
    if let (Some(hold), false) = (&entry.hold, at_once) {
        findings.blame(hold.place, "nothing is held here").hint("`hold` is for `rate: N at once`");
    }
    let counts = entry.count.as_ref().and_then(|count| count.0.first()).map(|count| count.place);
    if let (Some(place), true) = (counts.or(entry.charge.as_ref().map(|charge| charge.place)), at_once) {
        findings
            .blame(place, "every request in flight has its place, whatever its answer will be")
            .hint("write it in a limit of its own");
    }
}

/// A budget of nothing for whoever lacks a part of the key.
fn deny(
    asked: &plan::Asked<'_>,
    missing: Missing,
    rates: &At<Rates>,
    plans: &mut Plans<'_>,
    findings: &mut Findings,
) -> Option<u16> {
    if missing != Missing::Deny || !asked.enabled {
        return None;
    }
    let (name, edges) = (asked.name.to_owned(), [].into());
    let budget = Budget { shadow: asked.shadow, ..Budget::new(name, Quota::NONE, edges) };
    plans.add(budget, rates, findings)
}

fn matching(entry: &LimitEntry, rules: Rules, findings: &mut Findings) -> Matching {
    let mut patterns = |written: &Option<Many<String>>| {
        let texts = written.iter().flat_map(|many| &many.0);
        texts.filter_map(|text| matching::parse(text, text.place, rules, findings)).collect()
    };
    let (own, except) = (patterns(&entry.matches), patterns(&entry.except));
    let mut hosts = Vec::new();
    for host in entry.host.iter().flat_map(|hosts| &hosts.0) {
        match Host::parse(host) {
            Ok(read) => hosts.push(read),
            Err(message) => drop(findings.blame(host.place, message)),
        }
    }
    let mut when = Vec::new();
    for condition in entry.when.iter().flat_map(|all| &all.0) {
        match When::parse(condition) {
            Ok(read) => when.push(read),
            Err(message) => drop(findings.blame(condition.place, message).hint("as in `header X-Env = staging`")),
        }
    }
    Matching { patterns: own, except, hosts, when, ignore_case: rules.ignore_case }
}

fn count(entry: &LimitEntry, findings: &mut Findings) -> Option<Count> {
    let mut count = Count::default();
    for condition in &entry.count.as_ref()?.0 {
        if let Err((message, hint)) = count.add(condition) {
            findings.blame(condition.place, message).hint(hint);
        }
    }
    Some(count)
}

fn status(entry: &LimitEntry, findings: &mut Findings) -> Option<u16> {
    let status = entry.reject.as_ref()?.status.as_ref()?;
    let code = u16::try_from(status.value.0).ok().filter(|code| (400..600).contains(code));
    if code.is_none() {
        findings
            .blame(status.place, "the status of a refusal is 400 to 599")
            .hint("429 is the usual one, 503 for a ceiling");
    }
    code
}

fn listed(many: &Many<String>) -> String {
    let texts: Vec<&str> = many.0.iter().map(|text| text.as_str()).collect();
    texts.join(", ")
}

fn match_text(entry: &LimitEntry) -> String {
    let mut text = entry.matches.as_ref().map_or_else(|| "/**".to_owned(), listed);
    let more = [("except", &entry.except), ("host", &entry.host), ("when", &entry.when)];
    for (word, many) in more {
        if let Some(many) = many {
            text.extend(["; ", word, " ", &listed(many)]);
        }
    }
    text
}

fn by_text(by: Option<&Many<String>>) -> String {
    by.map_or_else(|| "all".to_owned(), listed)
}

/// The fields of answers that say prices to us alone: no limit lets clients see them.
pub(super) fn hidden(limits: &[Limit]) -> Vec<HeaderName> {
    let said = |kept: bool| {
        limits.iter().filter_map(move |limit| match &limit.pricing {
            Some(Pricing::Header { name, kept: own }) if *own == kept => Some(name),
            _ => None,
        })
    };
    said(false).filter(|name| said(true).all(|kept| kept != *name)).cloned().collect()
}

/// For each budget, the place of its limit.
pub(super) fn of_budget(limits: &[Limit], budgets: usize) -> Vec<u16> {
    let mut of = vec![0; budgets];
    for (place, limit) in limits.iter().enumerate() {
        let place = u16::try_from(place).expect("there are at most 10,000 limits");
        let own = limit.sizes.iter().flat_map(|size| &size.budgets).chain(&limit.deny);
        own.for_each(|budget| of[usize::from(*budget)] = place);
    }
    of
}
