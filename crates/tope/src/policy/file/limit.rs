//! A limit as it is written.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::rate::Rates;
use super::record::{Entries, Many, Read, record};
use super::scalar::{Amount, Micros, words};
use crate::policy::document::{Kind, Node};
use crate::policy::error::At;
use crate::policy::findings::Findings;

record! {
    /// A named quota, when it applies and to whom.
    LimitEntry is "a limit" {
        /// `[METHOD[,METHOD]] PATH`; `*` is one segment, `**` the rest, `:name` a named segment. Everything unless said.
        matches: Many<String> = "match",
        /// The hosts it applies to; `*.example.org` is every host below.
        host: Many<String> = "host",
        /// `header X = V`: all of these must hold.
        when: Many<String> = "when",
        /// What it does not apply to, in the form of `match`.
        except: Many<String> = "except",
        /// What names a bucket: `all`, `ip`, `client`, `plan`, `route`, `header X`, `cookie X`, `query X`, `path NAME`.
        by: Many<String> = "by",
        /// What becomes of a request without a part of the key.
        missing: At<MissingWord> = "missing",
        /// The key may have parts that the caller chooses, with no other limit to hold it.
        caller_chosen: At<bool> = "caller_chosen",
        /// How much. A list: all of them apply.
        #[schemars(required)]
        rate: At<Rates> = "rate",
        /// Units that a request takes: a number, or a number for each form of `match`; the largest that matches.
        cost: At<Cost> = "cost",
        /// Which answers count: `status 401, 403`, `status 4xx`, `not status 2xx`, `grpc 16`, `header X = V`; one of a
        /// list is enough. Units are held until the answer is known, and given back when it is another.
        count: Many<String> = "count",
        /// The answer says what is charged: `header X-Cost` (`, kept`: the client sees it too), `json usage.total_tokens`.
        charge: At<String> = "charge",
        /// What is held until then: a number, `json max_tokens or 1000` or `header X-Cost or 1`, of the request.
        reserve: At<Reserve> = "reserve",
        /// How long a place of `N at once` is kept for a request whose end nobody learns of; `10min` unless said.
        hold: At<Micros> = "hold",
        /// How long a request may wait in line before it is refused: up to `1min`; at once unless said.
        wait: At<Micros> = "wait",
        /// Whether it is enforced.
        mode: At<ModeWord> = "mode",
        /// How a refusal is told.
        reject: Reject = "reject",
    }
    later ["ban", "store_down"]
}

record! {
    /// How a refusal is told.
    Reject is "`reject`" {
        /// The status of a refusal, 400 to 599; 429 unless said.
        status: At<Amount> = "status",
    }
    later ["body", "headers", "message"]
}

words! {
    /// What becomes of a request without a part of the key.
    MissingWord is "word for `missing`" {
        /// The address stands in for the part.
        #[default]
        Ip = "ip",
        /// The request is refused.
        Deny = "deny",
        /// The limit does not apply.
        Skip = "skip",
    }
}

words! {
    /// Whether a limit is enforced.
    ModeWord is "mode" {
        /// It refuses.
        #[default]
        Enforce = "enforce",
        /// It counts and reports, and never refuses.
        Shadow = "shadow",
        /// It does nothing.
        Disabled = "disabled",
    }
}

/// What is held until the answer says what is charged, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserve(pub String);

impl Read for Reserve {
    fn read(node: &Node, findings: &mut Findings) -> Option<Self> {
        String::read(node, findings).map(Self)
    }
}

impl JsonSchema for Reserve {
    fn schema_name() -> Cow<'static, str> {
        "Reserve".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let amount = generator.subschema_for::<Amount>();
        json_schema!({ "anyOf": [amount, { "type": "string", "pattern": "^(json|header) |\\$\\{" }] })
    }
}

/// Units that a request takes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Cost {
    /// The same for every request.
    Same(Amount),
    /// By what the request matches; 1 where it matches none.
    Matching(Entries<At<Amount>>),
}

impl Read for Cost {
    fn read(node: &Node, findings: &mut Findings) -> Option<Self> {
        match &node.kind {
            Kind::Map(_) => Entries::read(node, findings).map(Self::Matching),
            _ => Amount::read(node, findings).map(Self::Same),
        }
    }
}

impl JsonSchema for Cost {
    fn schema_name() -> Cow<'static, str> {
        "Cost".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let amount = generator.subschema_for::<Amount>();
        json_schema!({ "anyOf": [amount, { "type": "object", "additionalProperties": amount }] })
    }
}
