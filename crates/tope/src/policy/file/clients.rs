//! Who is calling, as it is written: where the key is, and which keys are known.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::record::{Read, described, field, record};
use crate::policy::clients::KeyDigest;
use crate::policy::document::{Kind, Node};
use crate::policy::error::At;
use crate::policy::findings::Findings;

record! {
    /// Who is calling: where a request says it, and who is known.
    Clients is "`clients`" {
        /// The header that holds the key.
        header: At<String> = "header",
        /// The key is a bearer token.
        bearer: At<bool> = "bearer",
        /// The cookie that holds the key.
        cookie: At<String> = "cookie",
        /// The query parameter that holds the key.
        query: At<String> = "query",
        /// A header whose word names the client, where a trusted proxy sends it.
        trusted_header: At<String> = "trusted_header",
        /// A file of keys, named relative to this one.
        file: At<String> = "file",
        /// Keys written here.
        keys: Keys = "keys",
        /// The plan of a call without a known key, counted by its address; the first plan unless said.
        otherwise: At<String> = "otherwise",
    }
    later ["jwt"]
}

record! {
    /// Whose key it is.
    KeyEntry is "a key" {
        /// The client's name; two keys of one name share one budget.
        name: At<String> = "name",
        /// The client's plan.
        plan: At<String> = "plan",
    }
    later []
}

/// Known keys, by their digests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Keys(pub Vec<(At<KeyDigest>, KeyEntry)>);

impl Read for Keys {
    fn read(node: &Node, findings: &mut Findings) -> Option<Self> {
        let Kind::Map(entries) = &node.kind else {
            findings
                .blame(
                    node.place,
                    format!("keys are a mapping, KEY: {{ name, plan }}, and this is {}", described(node)),
                )
                .without_line();
            return None;
        };
        for (key, _) in entries {
            // The quotes too: where the text begins is not known of a name in quotes.
            findings.hide(key.place, key.text.chars().count() + if key.plain { 0 } else { 2 });
        }
        let mut keys = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let digest = match key.text.strip_prefix("sha256:") {
                Some(hex) => KeyDigest::from_hex(hex),
                None => Some(KeyDigest::of(key.text.as_bytes())),
            };
            let Some(digest) = digest else {
                findings
                    .blame(key.place, "after `sha256:` come 64 hexadecimal digits")
                    .hint("`tope key NAME PLAN` prints such a line");
                continue;
            };
            if matches!(value.kind, Kind::Null) {
                findings.blame(key.place, "this key is nobody's").hint("write KEY: { name: acme, plan: pro }");
            } else if let Some(entry) = field(key, value, findings) {
                keys.push((At::new(digest, key.place), entry));
            }
        }
        Some(Self(keys))
    }
}

impl JsonSchema for Keys {
    fn schema_name() -> Cow<'static, str> {
        "Keys".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<KeyEntry>();
        json_schema!({ "type": "object", "additionalProperties": one })
    }
}
