//! Who is calling, as it is written: where the key is, and which keys are known.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use sha2::{Digest, Sha256};

use super::record::{Read, described, field, record};
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

/// The SHA-256 of an API key. The key itself is kept nowhere.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyDigest(pub [u8; 32]);

impl KeyDigest {
    /// The digest of a key.
    pub fn of(key: &[u8]) -> Self {
        Self(Sha256::digest(key).into())
    }

    /// The digest that `sha256:HEX` writes.
    fn from_hex(hex: &str) -> Option<Self> {
        let digits: Vec<u8> =
            hex.chars().map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok())).collect::<Option<_>>()?;
        let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
        (digits.len() == 64).then(|| bytes.try_into().ok().map(Self)).flatten()
    }

    /// The first half in hexadecimal digits: the name of a client that has none.
    pub(in crate::policy) fn short(&self) -> String {
        self.0[..16].iter().fold("key-".to_owned(), |mut text, byte| {
            let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
            text.extend([digit(byte >> 4), digit(byte & 15)]);
            text
        })
    }
}

impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyDigest(***)")
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_64_hexadecimal_digits() {
        let hex = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
        assert_eq!(KeyDigest::from_hex(hex), Some(KeyDigest::of(b"hello")));
        assert_eq!(KeyDigest::of(b"hello").short(), format!("key-{}", &hex[..32]));
        for broken in ["", "2cf2", &hex[1..], &format!("{hex}0"), &hex.replace('a', "g"), &hex.replace('a', "ä")] {
            assert_eq!(KeyDigest::from_hex(broken), None, "{broken}");
        }
        assert_eq!(format!("{:?}", KeyDigest::of(b"hello")), "KeyDigest(***)");
    }
}
