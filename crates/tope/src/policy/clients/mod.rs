//! Who is calling: where a request says it, and who is known.

#[cfg(feature = "yaml")]
mod compile;
mod digest;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use ::http::header::AUTHORIZATION;
use ::http::{HeaderMap, HeaderName};
use smallvec::SmallVec;

#[cfg(feature = "yaml")]
pub(super) use compile::{compile, plan};
pub use digest::KeyDigest;

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

    /// The header that a trusted proxy names clients in, and nobody else may.
    pub(super) fn stripped(&self) -> &[HeaderName] {
        match &self.source {
            Source::Trusted(name) => std::slice::from_ref(name),
            _ => &[],
        }
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
