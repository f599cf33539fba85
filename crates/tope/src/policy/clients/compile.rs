//! `clients:` and the file of keys, compiled.

use std::collections::HashMap;
use std::sync::Arc;

use ::http::HeaderName;

use super::{KeyDigest, Known, Owner, Source};
use crate::policy::error::{At, Place};
use crate::policy::file::{Clients, KeyEntry, Keys};
use crate::policy::findings::{Findings, nearest};

/// Compiles who is known.
pub(in crate::policy) fn compile(
    written: &Clients,
    from_file: Option<&Keys>,
    plans: &[String],
    findings: &mut Findings,
) -> Known {
    let mut known = Known { source: source(written, findings), ..Known::default() };
    if let Some(name) = &written.otherwise {
        known.otherwise = plan(name, plans, findings).unwrap_or_default();
    }
    let mut places = HashMap::new();
    for (digest, entry) in written.keys.iter().chain(from_file).flat_map(|keys| &keys.0) {
        add(digest, entry, plans, &mut places, &mut known, findings);
    }
    let keyed = written.keys.as_ref().and_then(|keys| keys.0.first()).map(|(key, _)| key.place);
    let keyed = keyed.or(written.file.as_ref().map(|file| file.place));
    if let (Source::Nowhere, Some(place)) = (&known.source, keyed) {
        let finding = findings.blame(place, "there are keys, and nothing says where a request carries one");
        finding.hint("add `header: X-Api-Key`, `bearer: true`, `cookie: NAME` or `query: NAME` to `clients`");
    }
    known
}

fn source(written: &Clients, findings: &mut Findings) -> Source {
    let mut sources: Vec<(Place, Option<Source>)> = Vec::new();
    let mut header = |name: &At<String>, make: fn(HeaderName) -> Source| {
        let name_read = name.parse::<HeaderName>().ok();
        if name_read.is_none() {
            findings.blame(name.place, "this is no name of a header");
        }
        (name.place, name_read.map(make))
    };
    sources.extend(written.header.as_ref().map(|name| header(name, Source::Header)));
    sources.extend(written.trusted_header.as_ref().map(|name| header(name, Source::Trusted)));
    let bearer = written.bearer.as_ref().filter(|bearer| bearer.value);
    sources.extend(bearer.map(|bearer| (bearer.place, Some(Source::Bearer))));
    let named = |name: &At<String>, make: fn(Box<str>) -> Source| (name.place, Some(make(name.as_str().into())));
    sources.extend(written.cookie.as_ref().map(|name| named(name, Source::Cookie)));
    sources.extend(written.query.as_ref().map(|name| named(name, Source::Query)));
    sources.sort_by_key(|(place, _)| *place);
    if let Some((place, _)) = sources.get(1) {
        findings
            .blame(*place, "a key is in one place, and this is a second")
            .hint("keep one of header, bearer, cookie, query, trusted_header");
    }
    sources.into_iter().next().and_then(|(_, source)| source).unwrap_or_default()
}

fn add(
    digest: &At<KeyDigest>,
    entry: &KeyEntry,
    plans: &[String],
    places: &mut HashMap<KeyDigest, Place>,
    known: &mut Known,
    findings: &mut Findings,
) {
    if let Some(first) = places.insert(digest.value, digest.place) {
        let message = format!("this key stands twice; first in line {}", first.line());
        findings.blame(digest.place, message).hint("keep one of them");
        return;
    }
    let plan = match (&entry.plan, plans) {
        (None, []) => 0,
        (None, _) => {
            findings
                .blame(digest.place, "this key has no plan")
                .hint(format!("add `plan:` with one of: {}", plans.join(", ")));
            return;
        }
        (Some(name), _) => {
            let Some(plan) = plan(name, plans, findings) else { return };
            plan
        }
    };
    let name: Arc<str> = match &entry.name {
        Some(name) => {
            if !name.bytes().all(|byte| (b' '..=b'~').contains(&byte)) || name.len() > 200 {
                findings
                    .blame(name.place, "a client's name is sent in header fields: at most 200 visible ASCII characters")
                    .hint("write it without accents");
                return;
            }
            name.as_str().into()
        }
        None => digest.short().into(),
    };
    match known.plans.insert(Arc::clone(&name), plan) {
        Some(other) if other != plan => {
            let place = entry.plan.as_ref().map_or(digest.place, |plan| plan.place);
            let message = format!("`{name}` is on plan `{}` by another key", plans[usize::from(other)]);
            findings.blame(place, message).hint("two keys of one name share one budget, and have to be on one plan");
        }
        _ => {}
    }
    known.keys.insert(digest.value, Owner { name, plan });
}

/// The place of a plan, by its name.
pub(in crate::policy) fn plan(name: &At<String>, plans: &[String], findings: &mut Findings) -> Option<u16> {
    let at = plans.iter().position(|plan| **plan == name.value);
    if at.is_none() {
        let near = nearest(name, plans.iter().map(String::as_str));
        let finding = findings.blame(name.place, format!("there is no plan `{}`", name.value));
        match near {
            Some(near) => finding.did_you_mean(Some(near)),
            None if plans.is_empty() => finding.hint("add it under `plans:`"),
            None => finding.hint(format!("the plans are: {}", plans.join(", "))),
        };
    }
    at.and_then(|at| u16::try_from(at).ok())
}
