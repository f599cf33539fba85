//! Who is calling: where a request says it, and who is known.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use ::http::header::AUTHORIZATION;
use ::http::{HeaderMap, HeaderName};
use smallvec::SmallVec;

use super::error::{At, Place};
use super::file::{Clients, KeyDigest, KeyEntry, Keys};
use super::findings::{Findings, nearest};
use super::key;
use crate::facts::Client;

/// Who is known, and where a request says who it is.
#[derive(Default)]
pub(super) struct Known {
    source: Source,
    keys: HashMap<KeyDigest, Owner>,
    plans: HashMap<Arc<str>, u16>,
    /// The plan of whoever is nobody that we know.
    otherwise: u16,
}

#[derive(Clone, Debug)]
struct Owner {
    name: Arc<str>,
    plan: u16,
}

/// Where a request says who it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Source {
    /// Nowhere.
    #[default]
    Nowhere,
    Header(HeaderName),
    Bearer,
    Cookie(Box<str>),
    Query(Box<str>),
    /// The word of a trusted proxy.
    Trusted(HeaderName),
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").field("source", &self.source).field("keys", &self.keys.len()).finish_non_exhaustive()
    }
}

impl Known {
    /// Who is calling. A key that is not known is nobody, and so is a request with two keys.
    pub(super) fn identify<'a>(
        &'a self,
        headers: &'a HeaderMap,
        query: Option<&str>,
        trusted_peer: bool,
    ) -> Client<'a> {
        let mut found: SmallVec<[u8; 256]> = SmallVec::new();
        let owner = match &self.source {
            Source::Nowhere => None,
            Source::Header(name) => only(headers, name).and_then(|key| self.owner(key)),
            Source::Bearer => only(headers, &AUTHORIZATION).and_then(bearer).and_then(|key| self.owner(key)),
            Source::Cookie(name) => {
                key::cookie(headers, name, &mut found);
                self.owner(&found)
            }
            Source::Query(name) => {
                key::parameter(query, name, &mut found);
                self.owner(&found)
            }
            Source::Trusted(name) => {
                let word = if trusted_peer { only(headers, name) } else { None };
                return word.map_or(self.nobody(), |word| self.trusted(word));
            }
        };
        owner.map_or(self.nobody(), |owner| Client { name: Some(&owner.name), plan: owner.plan })
    }

    fn nobody(&self) -> Client<'static> {
        Client { name: None, plan: self.otherwise }
    }

    fn owner(&self, key: &[u8]) -> Option<&Owner> {
        if key.is_empty() || self.keys.is_empty() {
            return None;
        }
        self.keys.get(&KeyDigest::of(key))
    }

    /// A trusted proxy's word is a key that we know, or the name of a client.
    fn trusted<'a>(&'a self, word: &'a [u8]) -> Client<'a> {
        if let Some(owner) = self.owner(word) {
            return Client { name: Some(&owner.name), plan: owner.plan };
        }
        match std::str::from_utf8(word) {
            Ok(name) if !name.is_empty() => Client { name: Some(name), plan: self.plan_of(name) },
            _ => self.nobody(),
        }
    }

    /// The plan of a client, by its name.
    pub(super) fn plan_of(&self, name: &str) -> u16 {
        self.plans.get(name).copied().unwrap_or(self.otherwise)
    }

    /// Whether a client of this name is known.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.plans.contains_key(name)
    }

    /// The plan of whoever is nobody that we know.
    pub(super) fn otherwise(&self) -> u16 {
        self.otherwise
    }

    /// Whether names come from a trusted proxy.
    pub(super) fn trusts(&self) -> bool {
        matches!(self.source, Source::Trusted(_))
    }
}

/// The value of a header with one line.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    let mut lines = headers.get_all(name).iter();
    let line = lines.next()?;
    lines.next().is_none().then(|| line.as_bytes().trim_ascii())
}

/// The token of `Bearer TOKEN` (RFC 6750); the scheme's case does not matter.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// Compiles who is known.
pub(super) fn compile(written: &Clients, from_file: Option<&Keys>, plans: &[String], findings: &mut Findings) -> Known {
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
pub(super) fn plan(name: &At<String>, plans: &[String], findings: &mut Findings) -> Option<u16> {
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
