//! A policy's tests: requests through the one pass, in one virtual time, on a fresh store.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr};

use http::HeaderMap;

use super::request::{self, Request};
use super::view::Test;
use crate::replay::formats::{Line, Ours};
use crate::replay::pass::{Outcome, Pass};

/// Virtual time begins at 2024-01-01 00:00 UTC: the first of a month and a Monday, so that every window is fresh.
const START_US: u64 = 1_704_067_200_000_000;

/// Who sends a test that does not say `from`: an address for documentation, RFC 5737.
const SOMEBODY: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// More than this is a mistake, and would take minutes.
const MOST_TIMES: u64 = 10_000_000;

/// A test that did not come out as it should.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// `policy.yaml:31`
    pub(crate) place: String,
    /// What happened, and what should have.
    pub(crate) what: String,
}

/// Runs the tests in their order. What comes back failed.
pub(crate) fn run(pass: &mut impl Pass, tests: &[Test]) -> anyhow::Result<Vec<Failure>> {
    let mut failures = Vec::new();
    let mut now_us = START_US;
    for test in tests {
        now_us = now_us.saturating_add(test.after_us);
        let failed = match Sent::of(test) {
            Ok(sent) => sent.send(pass, test, now_us)?,
            Err(error) => Some(error.to_string()),
        };
        failures.extend(failed.map(|what| Failure { place: test.place.clone(), what }));
    }
    Ok(failures)
}

/// A test's request, ready to be sent.
struct Sent<'a> {
    line: Line<'a>,
    headers: HeaderMap,
}

impl<'a> Sent<'a> {
    fn of(test: &'a Test) -> Result<Self, super::talk::BadInput> {
        let request = Request::parse(&test.request)?;
        if test.times > MOST_TIMES {
            return Err(super::talk::BadInput::new(format!("`times` is above {MOST_TIMES}")));
        }
        let fields: Vec<String> = test.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let word = |word: &'a Option<String>| word.as_deref().map(Cow::Borrowed);
        let named = test.client.is_some() || test.plan.is_some();
        let ours = named.then(|| Ours { client: word(&test.client), plan: word(&test.plan), ..Ours::default() });
        let line = Line {
            address: Some(test.from.unwrap_or(SOMEBODY)),
            method: Cow::Owned(request.method),
            target: Some(Cow::Owned(request.target)),
            host: Cow::Borrowed(&test.host),
            ours,
            ..Line::default()
        };
        Ok(Self { line, headers: request::headers(&fields)? })
    }

    /// Sends it as often as the test says; what comes back is what is wrong.
    fn send(&self, pass: &mut impl Pass, test: &Test, now_us: u64) -> anyhow::Result<Option<String>> {
        let names: Vec<String> = pass.budgets().iter().map(|budget| budget.name.clone()).collect();
        let (mut passed, mut last, mut rows) = (0, None, Vec::new());
        for _ in 0..test.times {
            last = match pass.judge(&self.line, &self.headers, now_us, &mut rows)? {
                Outcome::Judged { allowed: true, .. } => {
                    passed += 1;
                    None
                }
                Outcome::Judged { refused_by, .. } => refused_by.map(|budget| names[usize::from(budget)].as_str()),
                Outcome::BadPath => return Ok(Some(format!("{}: the path may not pass: 400", test.request))),
            };
        }
        let expected = test.allowed.or(test.refused_by.is_none().then_some(test.times));
        if let Some(expected) = expected.filter(|expected| *expected != passed) {
            let by = last.map_or(String::new(), |name| format!("; the last is refused by {name}"));
            return Ok(Some(format!("{}: {passed} of {} pass, not {expected}{by}", test.request, test.times)));
        }
        let Some(name) = &test.refused_by else { return Ok(None) };
        // A limit's name stands for all its rates: `login` also for `login.2`.
        let is =
            |said: &str| said == name || said.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('.'));
        Ok(match last {
            Some(said) if is(said) => None,
            Some(said) => Some(format!("{}: the last is refused by {said}, not by {name}", test.request)),
            None => Some(format!("{}: the last passes, and is not refused by {name}", test.request)),
        })
    }
}
