//! `tests:` of a file.

use std::net::IpAddr;

use ::http::{HeaderMap, HeaderName, HeaderValue};

use crate::policy::cases::Test;
use crate::policy::clients::{Known, plan};
use crate::policy::error::At;
use crate::policy::file::{Amount, File, TestEntry};
use crate::policy::findings::{Findings, nearest};
use crate::policy::limit::{Limit, budget_name};

/// Compiles the tests of a file.
pub(super) fn compile(
    file: &File,
    limits: &[Limit],
    plans: &[String],
    known: &Known,
    findings: &mut Findings,
) -> Vec<Test> {
    let entries = file.tests.iter().flat_map(|tests| &tests.0);
    entries.filter_map(|entry| test(entry, limits, plans, known, findings)).collect()
}

fn test(
    entry: &At<TestEntry>,
    limits: &[Limit],
    plans: &[String],
    known: &Known,
    findings: &mut Findings,
) -> Option<Test> {
    let Some(request) = &entry.request else {
        findings.blame(entry.place, "this test has no request").hint("as in `request: POST /login`");
        return None;
    };
    let Some((method, target)) = request.split_once(' ').filter(|(_, target)| target.starts_with('/')) else {
        findings.blame(request.place, "a request is a method and a path").hint("as in `POST /login`");
        return None;
    };
    if !method.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-') {
        findings.blame(request.place, "methods are written in capitals");
        return None;
    }
    let from = match &entry.from {
        None => None,
        Some(from) => {
            let address = from.parse::<IpAddr>().ok();
            if address.is_none() {
                findings.blame(from.place, "this is no address");
                return None;
            }
            address
        }
    };
    let client = entry.client.as_ref();
    if let Some(client) = client.filter(|client| !known.knows(client) && !known.trusts()) {
        findings.blame(client.place, "no key is of this client").hint("name one of the keys of `clients`");
    }
    let plan = match &entry.plan {
        Some(name) => Some(plan(name, plans, findings)?),
        None => None,
    };
    let times = number(entry.times.as_ref(), findings).unwrap_or(1);
    let refused_by = entry.refused_by.as_ref().filter(|name| named(name, limits, findings));
    let allowed = number(entry.allowed.as_ref(), findings);
    if let (Some(allowed), Some(written)) = (allowed.filter(|allowed| *allowed > times), &entry.allowed) {
        findings.blame(written.place, format!("{allowed} are to pass, and {times} are sent")).hint("set `times`");
    }
    Some(Test {
        place: entry.place,
        method: method.to_owned(),
        target: target.trim().to_owned(),
        from,
        host: entry.host.as_ref().map_or_else(String::new, |host| host.to_ascii_lowercase()),
        headers: headers(entry, findings),
        client: client.map(|client| client.value.clone()),
        plan,
        after_us: entry.after.as_ref().map_or(0, |after| after.value.0),
        times,
        allowed: allowed.or_else(|| refused_by.is_none().then_some(times)),
        refused_by: refused_by.map(|name| name.value.clone()),
    })
}

fn number(written: Option<&At<Amount>>, findings: &mut Findings) -> Option<u32> {
    let written = written?;
    let number = u32::try_from(written.value.0).ok().filter(|number| *number <= 1_000_000);
    if number.is_none() {
        findings.blame(written.place, "a test sends at most 1,000,000 requests");
    }
    number
}

fn named(name: &At<String>, limits: &[Limit], findings: &mut Findings) -> bool {
    let slots = |limit: &Limit| {
        let slots = limit.sizes.iter().flat_map(|size| &size.rates).map(|(slot, _)| *slot).max().unwrap_or(0);
        let name = limit.name.clone();
        (0..=slots).map(move |slot| budget_name(&name, slot))
    };
    if limits.iter().any(|limit| slots(limit).any(|own| own == name.value)) {
        return true;
    }
    let near = nearest(name, limits.iter().map(Limit::name));
    findings.blame(name.place, format!("there is no limit `{}`", name.value)).did_you_mean(near);
    false
}

fn headers(entry: &TestEntry, findings: &mut Findings) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in entry.headers.iter().flat_map(|headers| &headers.0) {
        let read = (name.parse::<HeaderName>(), HeaderValue::from_str(value.reveal()));
        match read {
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(true);
                headers.append(name, value);
            }
            (Err(_), _) => drop(findings.blame(name.place, "this is no name of a header")),
            (_, Err(_)) => drop(findings.blame(value.place, "this can't be the value of a header")),
        }
    }
    headers
}
