//! Single values: words, amounts, lengths of time, secrets.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use tope_core::rate::{parse_amount, parse_duration_us};

use super::record::{Entries, Many, REST, Read, scalar};
use crate::policy::document::{Kind, Node};
use crate::policy::error::At;
use crate::policy::findings::Findings;
use crate::policy::traps;

impl Read for String {
    fn read(node: &Node, findings: &mut Findings) -> Option<Self> {
        let text = scalar(node, "a text", findings)?;
        if text.is_empty() {
            findings.blame(node.place, "this text is empty").hint("give it a value, or take the field out");
            return None;
        }
        Some(text.to_owned())
    }
}

impl Read for bool {
    fn read(node: &Node, findings: &mut Findings) -> Option<Self> {
        match scalar(node, "`true` or `false`", findings)? {
            "true" => Some(true),
            "false" => Some(false),
            _ => {
                findings.blame(node.place, "this is neither `true` nor `false`");
                None
            }
        }
    }
}

/// A whole amount: `60`, `1k`, `5M`, `50_000`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount(pub u64);

impl Read for Amount {
    fn read(node: &Node, findings: &mut Findings) -> Option<Self> {
        let text = scalar(node, "an amount", findings)?;
        let amount = parse_amount(text);
        if amount.is_none() {
            findings.blame(node.place, "this is no amount").hint("amounts are whole: 60, 1k, 5M, 50_000");
        }
        amount.map(Self)
    }
}

/// A length of time in microseconds: `10s`, `15min`, `100ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Micros(pub u64);

impl Read for Micros {
    fn read(node: &Node, findings: &mut Findings) -> Option<Self> {
        let text = scalar(node, "a length of time", findings)?;
        let length = parse_duration_us(text);
        if length.is_none() {
            let hint = if traps::is_sexagesimal(text) {
                "write it in one unit: `90s` for a minute and a half"
            } else if text.ends_with('m') {
                "`m` may be minutes or months; write `min`"
            } else {
                "write a number and a unit: us, ms, s, sec, min, h, d, w"
            };
            findings.blame(node.place, "this is no length of time").hint(hint);
        }
        length.map(Self)
    }
}

/// A text that is never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The text itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

impl Read for Secret {
    fn read(node: &Node, findings: &mut Findings) -> Option<Self> {
        let short = match &node.kind {
            Kind::Scalar(scalar) if !findings.is_filled(node.place) => scalar.text.chars().count(),
            _ => REST,
        };
        findings.hide(node.place, short);
        let text = scalar(node, "a text", findings)?.to_owned();
        if text.is_empty() {
            findings.blame(node.place, "this text is empty").hint("give it a value, or take the field out");
            return None;
        }
        Some(Self(text))
    }
}

/// One of a few words.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident is $what:literal { $( $(#[$vmeta:meta])* $variant:ident = $word:tt, )* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, schemars::JsonSchema)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[$vmeta])* #[schemars(rename = $word)] $variant, )*
        }

        impl $name {
            /// The word in a policy.
            pub const fn word(self) -> &'static str {
                match self { $( Self::$variant => $word, )* }
            }
        }

        impl $crate::policy::file::record::Read for $name {
            fn read(
                node: &$crate::policy::document::Node,
                findings: &mut $crate::policy::findings::Findings,
            ) -> Option<Self> {
                use $crate::policy::{file::record::scalar, findings::nearest};
                const WORDS: &[&str] = &[$($word),*];
                match scalar(node, $what, findings)? {
                    $( $word => Some(Self::$variant), )*
                    other => {
                        let near = nearest(other, WORDS.iter().copied());
                        let finding = findings.blame(node.place, format!("`{other}` is no {}", $what));
                        match near {
                            Some(near) => finding.did_you_mean(Some(near)),
                            None => finding.hint(format!("write one of: {}", WORDS.join(", "))),
                        };
                        None
                    }
                }
            }
        }
    };
}
pub(super) use words;

macro_rules! schema {
    ($type:ty, $name:literal, $schema:tt) => {
        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}
pub(super) use schema;

schema!(Amount, "amount", { "type": ["integer", "string"], "minimum": 0, "pattern": r"^[0-9][0-9_]*[kM]?$|\$\{" });
schema!(Micros, "duration", { "type": "string", "pattern": r"^[0-9_]*(us|ms|s|sec|min|h|d|w)$|\$\{" });
schema!(Secret, "secret", { "type": "string", "minLength": 1 });

impl<T: JsonSchema> JsonSchema for At<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

impl<T: JsonSchema> JsonSchema for Many<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("many_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] })
    }
}

impl<T: JsonSchema> JsonSchema for Entries<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("entries_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({ "type": "object", "additionalProperties": one })
    }
}
