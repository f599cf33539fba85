//! Patterns as they are written.

use super::pattern::{Pattern, Segment};
use crate::http::path::{BadPath, Rules, normalise};
use crate::policy::error::Place;
use crate::policy::findings::{Findings, nearest};

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
    Some(Pattern::new(text.trim(), place, methods, segments, tail))
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

/// A literal segment in the normal form of the paths it is matched against; what is not ASCII is escaped first.
fn literal(part: &str, rules: Rules) -> Result<String, Blame> {
    let mut path = String::with_capacity(part.len() + 1);
    path.push('/');
    for byte in part.bytes() {
        if byte.is_ascii_graphic() { path.push(char::from(byte)) } else { escape(byte, &mut path) }
    }
    match normalise(&path, rules) {
        Ok(path) if path.matched.len() > 1 => Ok(path.matched[1..].to_owned()),
        Ok(_) | Err(BadPath::AboveRoot) => {
            Err(("this is a dot segment in escapes".to_owned(), "paths are matched with dot segments taken out"))
        }
        Err(BadPath::EncodedSlash) if part.contains('\\') => {
            Err(("a pattern has no backslash".to_owned(), "segments are parted by `/`"))
        }
        Err(BadPath::EncodedSlash) => Err((
            "a request with an encoded slash is refused, so this matches nothing".to_owned(),
            "set `paths: { encoded_slash: both }` to have it matched",
        )),
        Err(BadPath::Escape) => {
            Err(("`%` begins an escape of two hexadecimal digits".to_owned(), "a percent sign is `%25`"))
        }
        Err(_) => Err(("a request with such a path is refused".to_owned(), "write the path as requests may have it")),
    }
}

fn escape(byte: u8, out: &mut String) {
    let digit = |nibble: u8| char::from(b"0123456789ABCDEF"[usize::from(nibble)]);
    out.extend(['%', digit(byte >> 4), digit(byte & 15)]);
}
