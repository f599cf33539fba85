//! YAML text as a tree in which every value knows its place, with variables filled in and bounded in every direction.

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy};

use super::error::Place;
use super::findings::Findings;
use super::surroundings::Surroundings;
use super::traps;
use super::variables;

/// The largest file that is read, in bytes.
pub(super) const MAX_BYTES: usize = 4 << 20;

/// A value, and where it stands.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) kind: Kind,
}

/// What a value is.
#[derive(Debug)]
pub(super) enum Kind {
    /// Nothing after the colon.
    Null,
    Scalar(Scalar),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// A word, number or text, as it was written: `60` is the text `60`.
#[derive(Debug)]
pub(super) struct Scalar {
    pub(super) text: String,
}

/// The name before a colon.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) text: String,
    pub(super) place: Place,
    pub(super) plain: bool,
}

/// Reads `text`, which is sheet number `sheet` of `findings`. `secret`: no line of it may be shown.
pub(super) fn parse(
    text: &str,
    sheet: u8,
    secret: bool,
    findings: &mut Findings,
    surroundings: &dyn Surroundings,
) -> Option<Node> {
    let top = Place { sheet, line: 1, column: 1 };
    if text.len() > MAX_BYTES {
        findings.blame(top, "this file is larger than 4 MiB").without_line();
        return None;
    }
    let text = &variables::veil(text);
    match serde_saphyr::from_str_with_options::<Spanned<Raw>>(text, options()) {
        Ok(raw) => {
            let node = Tree { text, sheet, secret, findings, surroundings }.node(raw);
            findings.is_empty().then_some(node)
        }
        Err(error) => {
            let place = error.location().map_or(top, |location| at(sheet, location));
            let message = traps::without_place(&error.to_string());
            let place = traps::tab(text, place, &message).unwrap_or(place);
            let shown = !secret && !traps::may_show_a_key(text, place.line());
            let hint = traps::hint(text, place, &message);
            let finding = findings.blame(place, message);
            if let Some(hint) = hint {
                finding.hint(hint);
            }
            if !shown {
                finding.without_line();
            }
            None
        }
    }
}

/// Bounds on what a file may ask of us: a small file must not become a large one by aliases.
fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        with_snippet: false,
        null_as_string: true,
        strict_booleans: true,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        merge_keys: MergeKeyPolicy::Merge,
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 100_000,
            max_replay_stack_depth: 8,
        },
        budget: serde_saphyr::budget! {
            max_depth: 32,
            max_documents: 8,
        },
    }
}

fn at(sheet: u8, location: serde_saphyr::Location) -> Place {
    let number = |n: u64| u32::try_from(n).unwrap_or(u32::MAX).max(1);
    Place { sheet, line: number(location.line()), column: number(location.column()) }
}

/// What the parser gives: texts where it sees text, and elsewhere only the place of what was written.
enum Raw {
    Null,
    Text(String),
    Typed,
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<String>, Spanned<Raw>)>),
}

struct RawVisitor;

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_str<E>(self, text: &str) -> Result<Raw, E> {
        Ok(Raw::Text(text.to_owned()))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Raw, E> {
        Ok(Raw::Typed)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Raw, E> {
        Ok(Raw::Typed)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Raw, E> {
        Ok(Raw::Typed)
    }

    fn visit_i128<E>(self, _: i128) -> Result<Raw, E> {
        Ok(Raw::Typed)
    }

    fn visit_u128<E>(self, _: u128) -> Result<Raw, E> {
        Ok(Raw::Typed)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Raw, E> {
        Ok(Raw::Typed)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key()? {
            entries.push((key, map.next_value()?));
            if entries.len() > 1_000_000 {
                return Err(A::Error::custom("more than a million entries in one mapping"));
            }
        }
        Ok(Raw::Map(entries))
    }
}

struct Tree<'a> {
    text: &'a str,
    sheet: u8,
    secret: bool,
    findings: &'a mut Findings,
    surroundings: &'a dyn Surroundings,
}

impl<'a> Tree<'a> {
    fn node(&mut self, raw: Spanned<Raw>) -> Node {
        let (place, defined) = (at(self.sheet, raw.referenced), raw.defined);
        let kind = match raw.value {
            Raw::Null => Kind::Null,
            Raw::Text(text) => return self.scalar(Some(text), place, defined),
            Raw::Typed => return self.scalar(None, place, defined),
            Raw::List(items) => Kind::List(items.into_iter().map(|item| self.node(item)).collect()),
            Raw::Map(entries) => Kind::Map(self.entries(entries)),
        };
        Node { place, kind }
    }

    fn entries(&mut self, raw: Vec<(Spanned<String>, Spanned<Raw>)>) -> Vec<(Key, Node)> {
        let mut entries: Vec<(Key, Node)> = Vec::with_capacity(raw.len());
        let mut first: std::collections::HashMap<String, Place> = std::collections::HashMap::with_capacity(raw.len());
        for (key, value) in raw {
            let plain = !quoted(self.written(key.defined));
            let key = Key { text: variables::unveil(&key.value), place: at(self.sheet, key.referenced), plain };
            let node = self.node(value);
            if let Some(first) = first.get(&key.text) {
                let message = format!("the same name stands twice here; first in line {}", first.line());
                self.blame(key.place, message, "keep one of them, or give the other a name of its own");
                continue;
            }
            first.insert(key.text.clone(), key.place);
            entries.push((key, node));
        }
        entries
    }

    /// A scalar: what the parser made of it where that is text, else what was written.
    fn scalar(&mut self, text: Option<String>, place: Place, defined: serde_saphyr::Location) -> Node {
        let written = self.written(defined);
        let plain = !quoted(written);
        let text = variables::unveil(&text.unwrap_or_else(|| written.to_owned()));
        // The place of a quoted text is its first character.
        let place = if plain { place } else { place.plus(1) };
        let (text, filled) = match variables::fill(&text, self.surroundings) {
            Ok(filled) => filled,
            Err(trouble) => {
                let at = if plain { place.plus(trouble.at) } else { place };
                self.blame(at, trouble.message, &trouble.hint);
                (String::new(), Vec::new())
            }
        };
        if !filled.is_empty() {
            self.findings.filled(place, written.chars().count(), filled);
        }
        Node { place, kind: Kind::Scalar(Scalar { text }) }
    }

    /// Here it is not known yet which names are keys.
    fn blame(&mut self, place: Place, message: String, hint: &str) {
        let shown = !self.secret && !traps::may_show_a_key(self.text, place.line());
        let finding = self.findings.blame(place, message).hint(hint);
        if !shown {
            finding.without_line();
        }
    }

    fn written(&self, location: serde_saphyr::Location) -> &'a str {
        let span = location.span();
        let range = || {
            let from = usize::try_from(span.byte_offset()?).ok()?;
            let length = usize::try_from(span.byte_len()?).ok()?;
            self.text.get(from..from.checked_add(length)?)
        };
        range().unwrap_or_default()
    }
}

fn quoted(written: &str) -> bool {
    written.starts_with(['\'', '"', '|', '>'])
}
