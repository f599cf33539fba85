//! `[METHOD[,METHOD]] PATH`, where `*` is one segment, `:name` a named one, and `**` the rest.

use super::super::error::Place;
use super::super::findings::{Findings, nearest};
use crate::http::path::{EncodedSlash, Rules};

/// Which requests, by method and path.
#[derive(Clone, Debug)]
pub(in crate::policy) struct Pattern {
    /// As written.
    pub(in crate::policy) text: Box<str>,
    pub(in crate::policy) place: Place,
    /// None: any. HEAD follows GET.
    pub(in crate::policy) methods: Vec<Box<str>>,
    pub(in crate::policy) segments: Vec<Segment>,
    /// Whether it ends in `**`.
    pub(in crate::policy) tail: bool,
    /// The leading literal segments as one text, `/api/v1`, and how many they are.
    prefix: Box<str>,
    literal: usize,
}

/// One segment of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::policy) enum Segment {
    /// This text.
    Literal(Box<str>),
    /// Any text: `*`.
    Any,
    /// Any text, which a key can name: `:name`.
    Named(Box<str>),
}

impl Pattern {
    /// Whether a request matches. The path is in its normal form.
    pub(in crate::policy) fn matches(&self, method: &str, path: &str, ignore_case: bool) -> bool {
        self.takes(method) && self.walk(path, ignore_case)
    }

    /// Whether it is for this method.
    pub(in crate::policy) fn takes(&self, method: &str) -> bool {
        let takes = |own: &str| own == method || (own == "GET" && method == "HEAD");
        self.methods.is_empty() || self.methods.iter().any(|own| takes(own))
    }

    fn walk(&self, path: &str, ignore_case: bool) -> bool {
        let same = |own: &str, other: &str| if ignore_case { own.eq_ignore_ascii_case(other) } else { own == other };
        let path = if path == "/" { "" } else { path };
        let Some((head, mut rest)) = path.split_at_checked(self.prefix.len()) else { return false };
        if !same(&self.prefix, head) || !(self.prefix.is_empty() || rest.is_empty() || rest.starts_with('/')) {
            return false;
        }
        for segment in &self.segments[self.literal..] {
            let Some((one, tail)) = next(rest) else { return false };
            match segment {
                Segment::Literal(text) if !same(text, one) => return false,
                _ => rest = tail,
            }
        }
        self.tail || rest.is_empty()
    }

    /// The segment of this name in a path that matched.
    pub(super) fn named<'p>(&self, path: &'p str, name: &str) -> Option<&'p str> {
        let is = |segment: &Segment| matches!(segment, Segment::Named(own) if **own == *name);
        let at = self.segments.iter().position(is)?;
        let mut rest = path;
        for _ in 0..at {
            (_, rest) = next(rest)?;
        }
        next(rest).map(|(one, _)| one)
    }

    /// The same for one of its methods.
    pub(in crate::policy) fn only(&self, method: &str) -> Self {
        Self { methods: vec![method.into()], ..self.clone() }
    }

    /// Whether every path and method that matches `other` matches this.
    pub(in crate::policy) fn covers(&self, other: &Self) -> bool {
        let covers = |own: &Segment, other: &Segment| !matches!(own, Segment::Literal(_)) || own == other;
        let long = other.segments.len() >= self.segments.len();
        let ends = if self.tail { long } else { other.segments.len() == self.segments.len() && !other.tail };
        let methods = self.methods.is_empty()
            || (!other.methods.is_empty() && other.methods.iter().all(|method| self.takes(method)));
        ends && methods && self.segments.iter().zip(&other.segments).all(|(own, other)| covers(own, other))
    }

    /// Whether some path and method may match both.
    pub(in crate::policy) fn meets(&self, other: &Self) -> bool {
        let fits = |own: &Segment, other: &Segment| match (own, other) {
            (Segment::Literal(own), Segment::Literal(other)) => own == other,
            _ => true,
        };
        let (own, others) = (self.segments.len(), other.segments.len());
        let lengths = own == others || (self.tail && own < others) || (other.tail && others < own);
        let methods = self.methods.is_empty()
            || other.methods.is_empty()
            || self.methods.iter().any(|method| other.takes(method))
            || other.methods.iter().any(|method| self.takes(method));
        lengths && methods && self.segments.iter().zip(&other.segments).all(|(own, other)| fits(own, other))
    }
}

/// The first segment of a path, and what is after it.
fn next(path: &str) -> Option<(&str, &str)> {
    let path = path.strip_prefix('/').unwrap_or(path);
    if path.is_empty() {
        return None;
    }
    Some(path.split_at(path.find('/').unwrap_or(path.len())))
}

/// The methods of RFC 9110 and PATCH: what a misspelt one was probably meant to be.
const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];

/// Reads a pattern; what is wrong with it is blamed at its place in the text.
pub(in crate::policy) fn parse(text: &str, place: Place, rules: Rules, findings: &mut Findings) -> Option<Pattern> {
    let filled = findings.is_filled(place);
    let at = |part: &str| {
        let byte = part.as_ptr() as usize - text.as_ptr() as usize;
        if filled { place } else { place.plus(text[..byte].chars().count()) }
    };
    let (methods, path) = match text.trim().split_once(char::is_whitespace) {
        Some((methods, path)) => (methods, path.trim_start()),
        None => ("", text.trim()),
    };
    let methods = if methods.is_empty() { Vec::new() } else { read_methods(methods, &at, findings)? };
    if path == "**" || path == "*" {
        findings.blame(at(path), "a path begins with `/`").hint("every path is `/**`");
        return None;
    }
    let Some(inside) = path.strip_prefix('/') else {
        let finding = findings.blame(at(path), "a path begins with `/`");
        if path.bytes().all(|byte| byte.is_ascii_uppercase()) && !path.is_empty() {
            finding.hint(format!("after the method comes a path: `{path} /**` is every path"));
        } else if path.contains("://") {
            finding.hint("a host is given in `host:`; a pattern is a path alone");
        } else {
            finding.hint("write `/path` or `METHOD /path`");
        }
        return None;
    };
    let inside = inside.strip_suffix('/').unwrap_or(inside);
    let mut parts: Vec<&str> = if inside.is_empty() { Vec::new() } else { inside.split('/').collect() };
    let tail = parts.last() == Some(&"**");
    if tail {
        parts.pop();
    }
    let mut segments = Vec::with_capacity(parts.len());
    for part in parts {
        match read_segment(part, rules) {
            Ok(Segment::Named(name)) if segments.contains(&Segment::Named(name.clone())) => {
                findings.blame(at(part), format!("`:{name}` stands twice in this path")).hint("give one another name");
                return None;
            }
            Ok(segment) => segments.push(segment),
            Err((message, hint)) => {
                findings.blame(at(part), message).hint(hint);
                return None;
            }
        }
    }
    let leading = segments.iter().map_while(|segment| match segment {
        Segment::Literal(text) => Some(&**text),
        _ => None,
    });
    let literal = leading.clone().count();
    let prefix: String = leading.flat_map(|text| ["/", text]).collect();
    Some(Pattern { text: text.trim().into(), place, methods, segments, tail, prefix: prefix.into(), literal })
}

fn read_methods(text: &str, at: &dyn Fn(&str) -> Place, findings: &mut Findings) -> Option<Vec<Box<str>>> {
    let mut methods: Vec<Box<str>> = Vec::new();
    for method in text.split(',') {
        if method.is_empty() {
            findings.blame(at(text), "a method is missing beside this comma").hint("write GET,POST without spaces");
            return None;
        }
        if !method.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-' || byte == b'_') {
            let upper = method.to_ascii_uppercase();
            let finding = findings.blame(at(method), format!("`{method}` is no method"));
            if METHODS.contains(&upper.as_str()) {
                finding.hint(format!("methods are written in capitals: `{upper}`"));
            } else {
                finding.hint("a pattern is `[METHOD[,METHOD]] PATH`; leave the method out for all methods");
            }
            return None;
        }
        if let Some(near) = nearest(method, METHODS).filter(|near| !METHODS.contains(&method) && near.len() > 3) {
            findings.blame(at(method), format!("`{method}` is no method that is known")).did_you_mean(Some(near));
            return None;
        }
        methods.push(method.into());
    }
    Some(methods)
}

type Blame = (String, &'static str);

fn read_segment(part: &str, rules: Rules) -> Result<Segment, Blame> {
    let blame = |message: &str, hint| Err((message.to_owned(), hint));
    match part {
        "" => return blame("this path has a doubled slash", "paths are matched with doubled slashes made one"),
        "." | ".." => return blame("this path has a dot segment", "paths are matched with dot segments taken out"),
        "*" => return Ok(Segment::Any),
        "**" => return blame("`**` is the rest of a path and stands at its end", "one segment is `*`"),
        _ => {}
    }
    if let Some(name) = part.strip_prefix(':') {
        let named = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(named) {
            return blame("after `:` comes a name of letters, digits, `_` and `-`", "as in `/users/:id`");
        }
        return Ok(Segment::Named(name.into()));
    }
    if part.contains('*') {
        return blame("`*` stands for one whole segment", "match the whole segment by `*`, and the rest by `**`");
    }
    if part.contains(['{', '}', '<', '>']) {
        return blame("a pattern has no braces", "a named segment is written `:id`");
    }
    if part.contains(';') {
        return blame("a pattern has no `;`", "paths are matched without their `;parameters`");
    }
    if part.contains(['?', '#']) {
        return blame("a pattern is a path alone", "a query or fragment is not matched; `by: query X` divides by one");
    }
    literal(part, rules).map(|text| Segment::Literal(text.into()))
}

/// A literal segment in the normal form of paths: escapes of what needs none are undone, the others are in capitals,
/// and what is not ASCII is escaped.
fn literal(part: &str, rules: Rules) -> Result<String, Blame> {
    let mut out = String::with_capacity(part.len());
    let mut bytes = part.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let mut digit = || bytes.next().and_then(|byte| char::from(byte).to_digit(16));
            let (Some(high), Some(low)) = (digit(), digit()) else {
                return Err(("`%` begins an escape of two hexadecimal digits".to_owned(), "a percent sign is `%25`"));
            };
            let code = u8::try_from(high << 4 | low).expect("two digits are below 256");
            match code {
                b'/' | b'\\' if rules.encoded_slash == EncodedSlash::Reject => {
                    let message = "a request with an encoded slash is refused, so this matches nothing";
                    return Err((message.to_owned(), "set `paths: { encoded_slash: both }` to have it matched"));
                }
                _ if code.is_ascii_alphanumeric() || b"-._~".contains(&code) => out.push(char::from(code)),
                _ => escape(code, &mut out),
            }
        } else if byte == b'\\' {
            return Err(("a pattern has no backslash".to_owned(), "segments are parted by `/`"));
        } else if byte.is_ascii_graphic() {
            out.push(char::from(byte));
        } else {
            escape(byte, &mut out);
        }
    }
    if out == "." || out == ".." {
        return Err(("this is a dot segment in escapes".to_owned(), "paths are matched with dot segments taken out"));
    }
    Ok(if rules.ignore_case { out.to_ascii_lowercase() } else { out })
}

fn escape(byte: u8, out: &mut String) {
    let digit = |nibble: u8| char::from(b"0123456789ABCDEF"[usize::from(nibble)]);
    out.extend(['%', digit(byte >> 4), digit(byte & 15)]);
}
