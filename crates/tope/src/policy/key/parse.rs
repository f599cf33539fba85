//! `by:` as a limit writes it.

use super::{KeyForm, Missing, Part};
use crate::policy::error::{At, Place};
use crate::policy::findings::{Findings, nearest};
use crate::policy::matching::{Matching, Segment};

const WORDS: [&str; 9] = ["all", "ip", "client", "plan", "route", "header", "cookie", "query", "path"];

/// Reads the parts of a key.
pub(in crate::policy) fn parse(
    by: &[At<String>],
    missing: Missing,
    matching: &Matching,
    findings: &mut Findings,
) -> Option<KeyForm> {
    let mut parts: Vec<Part> = Vec::with_capacity(by.len());
    for written in by {
        let part = part(written, matching, findings)?;
        if parts.contains(&part) {
            findings.blame(written.place, "this part of the key stands twice").hint("take one of them out");
            return None;
        }
        parts.push(part);
    }
    if parts.len() > 1 && parts.contains(&Part::All) {
        let place = by.first().map_or_else(Place::default, |written| written.place);
        findings.blame(place, "`all` is one bucket for everybody and stands alone").hint("take `all` out");
        return None;
    }
    if parts.len() > MOST {
        findings.blame(by[MOST].place, format!("a key has at most {MOST} parts"));
        return None;
    }
    Some(KeyForm { parts, missing, by_plan: false })
}

/// More parts would make keys longer than a store likes, and mean nothing.
const MOST: usize = 8;

fn part(written: &At<String>, matching: &Matching, findings: &mut Findings) -> Option<Part> {
    let mut words = written.split_whitespace();
    let (word, name) = (words.next().unwrap_or_default(), words.next());
    if let Some(extra) = words.next() {
        findings
            .blame(written.place, format!("`{extra}` does not belong to a part of a key"))
            .hint("several parts are a list: [ip, header X]");
        return None;
    }
    match (word, name) {
        ("all", None) => Some(Part::All),
        ("ip", None) => Some(Part::Ip),
        ("client", None) => Some(Part::Client),
        ("plan", None) => Some(Part::Plan),
        ("route", None) => route(written, matching, findings),
        ("header", Some(name)) => {
            let read = name.parse().ok();
            if read.is_none() {
                findings.blame(written.place, format!("`{name}` is no name of a header"));
            }
            read.map(Part::Header)
        }
        ("cookie", Some(name)) => Some(Part::Cookie(name.into())),
        ("query", Some(name)) => Some(Part::Query(name.into())),
        ("path", Some(name)) => path(name, written, matching, findings),
        ("jwt", _) => {
            findings.blame(written.place, "`jwt` is not in this version").hint("count by `client` or `ip` for now");
            None
        }
        ("header" | "cookie" | "query" | "path", None) => {
            findings.blame(written.place, format!("`{word}` needs a name")).hint(format!("as in `{word} NAME`"));
            None
        }
        ("all" | "ip" | "client" | "plan" | "route", Some(name)) => {
            findings.blame(written.place, format!("`{word}` has no name, and `{name}` stands behind it"));
            None
        }
        _ => {
            let near = nearest(word, WORDS);
            let finding = findings.blame(written.place, format!("`{word}` is no part of a key"));
            match near {
                Some(near) => finding.did_you_mean(Some(near)),
                None => finding.hint(
                    "write all, ip, client, plan, route, header X, cookie X, query X, path NAME, or a list of them",
                ),
            };
            None
        }
    }
}

fn route(written: &At<String>, matching: &Matching, findings: &mut Findings) -> Option<Part> {
    if matching.patterns.is_empty() {
        findings
            .blame(written.place, "`route` is which pattern of `match` was met, and this limit has none")
            .hint("list the patterns in `match`");
        return None;
    }
    Some(Part::Route)
}

fn path(name: &str, written: &At<String>, matching: &Matching, findings: &mut Findings) -> Option<Part> {
    let name = name.strip_prefix(':').unwrap_or(name);
    let segments = || matching.patterns.iter().flat_map(|pattern| &pattern.segments);
    let names = || {
        segments().filter_map(|segment| match segment {
            Segment::Named(own) => Some(&**own),
            _ => None,
        })
    };
    if !names().any(|own| own == name) {
        let near = nearest(name, names());
        let finding = findings.blame(written.place, format!("`match` names no segment `:{name}`"));
        match near {
            Some(near) => finding.did_you_mean(Some(near)),
            None => finding.hint(format!("as in `match: /users/:{name}`")),
        };
        return None;
    }
    Some(Part::Path(name.into()))
}
