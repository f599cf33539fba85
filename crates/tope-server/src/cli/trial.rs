//! A policy's tests: requests through the one pass, in one virtual time, on a fresh store.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr};

use tope::policy::Test;

use crate::pass::{Line, Ours};
use crate::pass::{Outcome, Pass};

/// Virtual time begins at 2024-01-01 00:00 UTC: the first of a month and a Monday, so that every window is fresh.
const START_US: u64 = 1_704_067_200_000_000;

/// Who sends a test that does not say `from`: an address for documentation, RFC 5737.
const SOMEBODY: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// A test that did not come out as it should.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// `policy.yaml:31`
    pub(crate) place: String,
    /// What happened, and what should have.
    pub(crate) what: String,
}

/// Runs the tests in their order. What comes back failed; `file` is the policy's name.
pub(crate) fn run(pass: &mut impl Pass, tests: &[Test], plans: &[String], file: &str) -> anyhow::Result<Vec<Failure>> {
    let mut failures = Vec::new();
    let mut now_us = START_US;
    for test in tests {
        now_us = now_us.saturating_add(test.after_us);
        let what = send(pass, test, plans, now_us)?.map(|what| format!("{} {}: {what}", test.method, test.target));
        failures.extend(what.map(|what| Failure { place: format!("{file}:{}", test.place.line()), what }));
    }
    Ok(failures)
}

/// Sends a test's request as often as it says; what comes back is what is wrong.
fn send(pass: &mut impl Pass, test: &Test, plans: &[String], now_us: u64) -> anyhow::Result<Option<String>> {
    let names: Vec<String> = pass.budgets().iter().map(|budget| budget.name.clone()).collect();
    let line = line(test, plans);
    let (mut passed, mut last, mut rows) = (0, None, Vec::new());
    for _ in 0..test.times {
        last = match pass.judge(&line, &test.headers, now_us, &mut rows)? {
            Outcome::Judged { allowed: true, .. } => {
                passed += 1;
                None
            }
            Outcome::Judged { refused_by, .. } => refused_by.map(|budget| names[usize::from(budget)].as_str()),
            Outcome::BadPath => return Ok(Some("the path may not pass: 400".to_owned())),
        };
    }
    let expected = test.allowed.or(test.refused_by.is_none().then_some(test.times));
    if let Some(expected) = expected.filter(|expected| *expected != passed) {
        let by = last.map_or(String::new(), |name| format!("; the last is refused by {name}"));
        return Ok(Some(format!("{passed} of {} pass, not {expected}{by}", test.times)));
    }
    let Some(name) = &test.refused_by else { return Ok(None) };
    // A limit's name stands for all its rates: `login` also for `login.2`.
    let is = |said: &str| said == name || said.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('.'));
    Ok(match last {
        Some(said) if is(said) => None,
        Some(said) => Some(format!("the last is refused by {said}, not by {name}")),
        None => Some(format!("the last passes, and is not refused by {name}")),
    })
}

/// The request as a line of a log.
fn line<'a>(test: &'a Test, plans: &'a [String]) -> Line<'a> {
    let named = test.client.is_some() || test.plan.is_some();
    let plan = test.plan.and_then(|plan| plans.get(usize::from(plan)));
    let ours = named.then(|| Ours {
        client: test.client.as_deref().map(Cow::Borrowed),
        plan: plan.map(|plan| Cow::Borrowed(plan.as_str())),
        ..Ours::default()
    });
    Line {
        address: Some(test.from.unwrap_or(SOMEBODY)),
        method: Cow::Borrowed(&test.method),
        target: Some(Cow::Borrowed(&test.target)),
        host: Cow::Borrowed(&test.host),
        ours,
        // Requests of one instant are in flight together, and those before them have ended.
        took_us: Some(1),
        ..Line::default()
    }
}
