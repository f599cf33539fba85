//! When a limit applies: patterns of paths and methods, hosts, header conditions.

#[cfg(feature = "yaml")]
mod parse;
mod pattern;

use ::http::{HeaderName, HeaderValue};

#[cfg(feature = "yaml")]
pub(super) use parse::parse;
pub(super) use pattern::{Pattern, Segment};

use crate::facts::Facts;

/// When a limit applies.
#[derive(Debug, Default)]
pub(super) struct Matching {
    /// One of these has to match; none: everything.
    pub(super) patterns: Vec<Pattern>,
    /// None of these may.
    pub(super) except: Vec<Pattern>,
    /// One of these has to be the host; none: any.
    pub(super) hosts: Vec<Host>,
    /// All of these have to hold.
    pub(super) when: Vec<When>,
    /// Whether `/LOGIN` is `/login`.
    pub(super) ignore_case: bool,
}

/// What a request met: the place of the pattern, and the reading of the path that it was met with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Met<'p> {
    pub(super) route: u16,
    pub(super) path: &'p str,
}

impl Matching {
    /// Whether a limit applies: the first reading of the path that is matched and not excepted, and the first pattern
    /// that matches it.
    pub(super) fn meet<'p>(&self, facts: &Facts<'p>) -> Option<Met<'p>> {
        let met = self.read(facts.method, facts.path);
        let met = met.or_else(|| self.read(facts.method, facts.other_path?))?;
        let host = self.hosts.is_empty() || self.hosts.iter().any(|host| host.is(facts.host));
        (host && self.when.iter().all(|when| when.holds(facts))).then_some(met)
    }

    fn read<'p>(&self, method: &str, path: &'p str) -> Option<Met<'p>> {
        let matches = |pattern: &Pattern| pattern.matches(method, path, self.ignore_case);
        let route = if self.patterns.is_empty() { 0 } else { self.patterns.iter().position(matches)? };
        let route = u16::try_from(route).unwrap_or(u16::MAX);
        (!self.except.iter().any(matches)).then_some(Met { route, path })
    }

    /// Whether a reading of the path is matched, and `except` alone takes it out.
    pub(super) fn is_excepted(&self, facts: &Facts<'_>) -> bool {
        let matches = |path: &str| {
            let any =
                |patterns: &[Pattern]| patterns.iter().any(|one| one.matches(facts.method, path, self.ignore_case));
            (self.patterns.is_empty() || any(&self.patterns)) && any(&self.except)
        };
        let host = self.hosts.is_empty() || self.hosts.iter().any(|host| host.is(facts.host));
        let here = host && self.when.iter().all(|when| when.holds(facts));
        here && self.meet(facts).is_none() && (matches(facts.path) || facts.other_path.is_some_and(matches))
    }

    /// The segment that a pattern names, of the path that was met.
    pub(super) fn named<'p>(&self, met: Met<'p>, name: &str) -> Option<&'p str> {
        self.patterns.get(usize::from(met.route))?.named(met.path, name)
    }

    /// Whether every request matches.
    pub(super) fn is_everything(&self) -> bool {
        let all = |pattern: &Pattern| pattern.tail && pattern.segments.is_empty() && pattern.methods.is_empty();
        (self.patterns.is_empty() || self.patterns.iter().any(all))
            && self.except.is_empty()
            && self.hosts.is_empty()
            && self.when.is_empty()
    }
}

/// A host, or all hosts below one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Host {
    /// `api.example.org`
    Exactly(Box<str>),
    /// `*.example.org`, kept as `.example.org`
    Below(Box<str>),
}

impl Host {
    /// Reads a host as a limit writes it.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let (below, name) = match text.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, text),
        };
        let bracketed = name.starts_with('[') && name.ends_with(']');
        if name.contains(':') && !bracketed {
            return Err("a host is written without its port and scheme");
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        if name.is_empty() || !(bracketed || name.bytes().all(plain)) {
            return Err("this is no host; write `api.example.org` or `*.example.org`, other alphabets as `xn--…`");
        }
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        Ok(if below { Self::Below(format!(".{name}").into()) } else { Self::Exactly(name.into()) })
    }

    pub(super) fn is(&self, host: &str) -> bool {
        match self {
            Self::Exactly(name) => **name == *host,
            Self::Below(suffix) => host.len() > suffix.len() && host.ends_with(&**suffix),
        }
    }

    /// Whether every host that `other` is, this is.
    pub(super) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Exactly(name)) => self.is(name),
            (Self::Below(suffix), Self::Below(other)) => other.ends_with(&**suffix),
            (Self::Exactly(_), Self::Below(_)) => false,
        }
    }
}

/// `header X = V`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct When {
    name: HeaderName,
    value: HeaderValue,
}

impl When {
    /// Reads a condition as a limit writes it.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        const FORM: &str = "a condition is written `header X = V`";
        let (name, value) = text.strip_prefix("header ").and_then(|rest| rest.split_once('=')).ok_or(FORM)?;
        let name = name.trim().parse().map_err(|_| "this is no name of a header")?;
        let value = value.trim().parse().map_err(|_| "this can't be the value of a header")?;
        Ok(Self { name, value })
    }

    /// Whether one of the header's lines has the value.
    fn holds(&self, facts: &Facts<'_>) -> bool {
        let same = |value: &HeaderValue| value.as_bytes().trim_ascii() == self.value.as_bytes();
        facts.headers.get_all(&self.name).iter().any(same)
    }
}
