//! How a record of the file is read: each field by its written name, everything else refused.

use crate::policy::document::{Key, Kind, Node};
use crate::policy::error::{At, Place};
use crate::policy::findings::{Findings, nearest};
use crate::policy::traps;

/// What can be read from a value of the file.
pub(in crate::policy) trait Read: Sized {
    /// The value, or nothing where it was blamed.
    fn read(node: &Node, findings: &mut Findings) -> Option<Self>;
}

/// What each record and field of the file is: one declaration gives the plain data, its reader and its schema.
macro_rules! record {
    (
        $(#[$meta:meta])*
        $name:ident is $what:literal {
            $( $(#[$fmeta:meta])* $field:ident: $type:ty = $written:tt, )*
        }
        later [$($later:literal),* $(,)?]
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, schemars::JsonSchema)]
        #[schemars(deny_unknown_fields)]
        #[non_exhaustive]
        pub struct $name {
            $( $(#[$fmeta])* #[schemars(rename = $written)] pub $field: Option<$type>, )*
        }

        impl $crate::policy::file::record::Read for $name {
            fn read(
                node: &$crate::policy::document::Node,
                findings: &mut $crate::policy::findings::Findings,
            ) -> Option<Self> {
                use $crate::policy::file::record::{field, map, unknown};
                let mut record = Self::default();
                for (key, value) in map(node, $what, findings)? {
                    match key.text.as_str() {
                        $( $written => record.$field = field(key, value, findings), )*
                        _ => unknown((key, value), $what, &[$($written),*], &[$($later),*], findings),
                    }
                }
                Some(record)
            }
        }
    };
}
pub(super) use record;

/// The rest of a line, whatever its length.
pub(super) const REST: usize = usize::MAX;

/// The entries of a mapping.
pub(super) fn map<'n>(node: &'n Node, what: &str, findings: &mut Findings) -> Option<&'n [(Key, Node)]> {
    if let Kind::Map(entries) = &node.kind {
        return Some(entries);
    }
    let finding =
        findings.blame(node.place, format!("{what} is a mapping, `name: value`, and here stands {}", described(node)));
    if what == "a limit" {
        finding.hint("write { match: /path, by: ip, rate: 5/min }");
    }
    None
}

/// The value of a field; a field with nothing after its colon is refused.
pub(super) fn field<T: Read>(key: &Key, value: &Node, findings: &mut Findings) -> Option<T> {
    if matches!(value.kind, Kind::Null) {
        findings.blame(key.place, format!("`{}` is empty", key.text)).hint("give it a value, or take the line out");
        return None;
    }
    T::read(value, findings)
}

/// Refuses a field that is none, or none yet.
pub(super) fn unknown(
    (key, value): (&Key, &Node),
    what: &str,
    fields: &[&str],
    later: &[&str],
    findings: &mut Findings,
) {
    if later.contains(&key.text.as_str()) {
        findings.blame(key.place, format!("`{}` is not in this version", key.text)).hint("take it out for now");
        return;
    }
    let near = nearest(&key.text, fields.iter().copied());
    if what == "`clients`" || near.is_some_and(|near| ["secret", "token", "keys"].contains(&near)) {
        findings.hide(value.place, REST);
    }
    let finding = findings.blame(key.place, format!("{what} has no field `{}`", key.text));
    match near {
        _ if what == "a limit" && ["burst", "algorithm", "amount", "per", "period"].contains(&key.text.as_str()) => {
            finding.hint("it is part of the rate: `rate: 60/min burst 10 token-bucket`")
        }
        None if key.text.bytes().all(|byte| byte.is_ascii_digit()) && what == "a limit" => {
            finding.hint("inside `{ }` a comma ends a value; quote one that has commas: `count: 'status 401, 403'`")
        }
        Some(near) => finding.did_you_mean(Some(near)),
        None if key.plain && traps::is_truth(&key.text) => {
            finding.hint(format!("`{}` without quotes is a truth value to many readers of YAML", key.text))
        }
        None => finding.hint(format!("its fields are {}", fields.join(", "))),
    };
}

/// What a value is, in words.
pub(super) fn described(node: &Node) -> &'static str {
    match node.kind {
        Kind::Null => "empty",
        Kind::Scalar(_) => "a single value",
        Kind::List(_) => "a list",
        Kind::Map(_) => "a mapping",
    }
}

impl<T: Read> Read for At<T> {
    fn read(node: &Node, findings: &mut Findings) -> Option<Self> {
        Some(Self::new(T::read(node, findings)?, node.place))
    }
}

/// One value, or a list of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Many<T>(pub Vec<At<T>>);

impl<T> Default for Many<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Read> Read for Many<T> {
    fn read(node: &Node, findings: &mut Findings) -> Option<Self> {
        match &node.kind {
            Kind::List(items) if items.is_empty() => {
                findings.blame(node.place, "this list is empty").hint("give it a value, or take the field out");
                None
            }
            Kind::List(items) => {
                let read: Vec<_> = items.iter().map(|item| At::read(item, findings)).collect();
                read.into_iter().collect::<Option<Vec<_>>>().map(Self)
            }
            _ => Some(Self(vec![At::read(node, findings)?])),
        }
    }
}

/// Named values, in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Entries<T>(pub Vec<(At<String>, T)>);

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Entries<T> {
    /// The value of this name.
    pub fn named(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|(entry, _)| entry.value == name).map(|(_, value)| value)
    }

    /// The names, in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.value.as_str())
    }
}

impl<T: Read> Read for Entries<T> {
    fn read(node: &Node, findings: &mut Findings) -> Option<Self> {
        let mut entries = Vec::new();
        for (key, value) in map(node, "this section", findings)? {
            if let Some(value) = field(key, value, findings) {
                entries.push((At::new(key.text.clone(), key.place), value));
            }
        }
        Some(Self(entries))
    }
}

/// The text of a single value.
pub(super) fn scalar<'n>(node: &'n Node, what: &str, findings: &mut Findings) -> Option<&'n str> {
    if let Kind::Scalar(scalar) = &node.kind {
        return Some(&scalar.text);
    }
    findings.blame(node.place, format!("{what} is expected here, and this is {}", described(node)));
    None
}

/// The place of a byte of a scalar's text, where it stands as written.
pub(super) fn place_in(node: &Node, text: &str, byte: usize, findings: &Findings) -> Place {
    let as_written = matches!(&node.kind, Kind::Scalar(_)) && !findings.is_filled(node.place);
    let characters = text.get(..byte).map_or(0, |before| before.chars().count());
    if as_written { node.place.plus(characters) } else { node.place }
}
