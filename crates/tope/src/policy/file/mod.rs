//! What was written: every field of the policy file as plain data, each value with its place. The one room that knows
//! the fields; the program compiles its own part (listeners, upstreams, time-outs) from the same data.
//!
//! | room | what is in it |
//! |---|---|
//! | `mod` | the file and its small sections |
//! | `limit` | a limit |
//! | `clients` | where a key is, and which are known |
//! | `rate` | a rate as text or object |
//! | `scalar` | words, amounts, lengths of time, secrets |
//! | `record` | how a record is read and what it refuses |
//! | `schema` | the JSON Schema of all that |

mod clients;
mod limit;
mod rate;
pub(super) mod record;
mod scalar;
mod schema;

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

pub use clients::{Clients, KeyEntry, Keys};
pub use limit::{Cost, LimitEntry, MissingWord, ModeWord, Reject, Reserve};
pub use rate::{AlgorithmWord, RateObject, Rates, Written};
pub use record::{Entries, Many};
pub use scalar::{Amount, Micros, Secret};
pub use schema::schema;

use self::record::{Read, record};
use self::scalar::words;
pub use super::clients::KeyDigest;
use super::document::{Kind, Node};
use super::error::At;
use super::findings::Findings;

record! {
    /// A policy file.
    File is "a policy" {
        /// The version of this format: 1.
        tope: At<Amount> = "tope",
        /// Where the gateway listens.
        listen: At<String> = "listen",
        /// Where requests go: a URL, a list of them, or `demo`.
        upstream: Many<String> = "upstream",
        /// The time zone of calendar periods; UTC unless said.
        timezone: At<String> = "timezone",
        /// For keyed hashes.
        secret: At<Secret> = "secret",
        /// Which header fields to send; `triple` and `draft` unless said.
        headers: Many<HeaderWord> = "headers",
        /// How the caller's address is found.
        address: Address = "address",
        /// Who is calling.
        clients: Clients = "clients",
        /// What clients have paid for: for each plan, rates by the names of columns.
        plans: Entries<Entries<At<Rates>>> = "plans",
        /// What no limit applies to: `path PATH` or `ip NETWORK`.
        exempt: Many<Exempt> = "exempt",
        /// The limits, by name. All that match a request apply.
        limits: Entries<LimitEntry> = "limits",
        /// Buckets in memory.
        memory: Memory = "memory",
        /// How paths are read.
        paths: Paths = "paths",
        /// Which pages may read a refusal.
        cors: Cors = "cors",
        /// How long the gateway waits.
        timeouts: Timeouts = "timeouts",
        /// The listener for operators.
        admin: Admin = "admin",
        /// What is logged.
        log: Log = "log",
        /// What is told to whoever is refused.
        refusal: Refusal = "refusal",
        /// What `tope check` tries.
        tests: Many<TestEntry> = "tests",
    }
    later ["store", "store_down", "redis", "tls"]
}

record! {
    /// How the caller's address is found.
    Address is "`address`" {
        /// Proxies whose `Forwarded` and `X-Forwarded-For` count.
        trust: Many<String> = "trust",
        /// The field that these proxies write, which is then read alone; either unless said, and where a request has
        /// both they have to agree.
        field: At<FieldWord> = "field",
        /// IPv6 addresses of one block of this size are one caller; `/64` unless said.
        ipv6: At<String> = "ipv6",
        /// Whether connections begin with a PROXY header; not in this version.
        proxy_protocol: At<bool> = "proxy_protocol",
    }
    later []
}

record! {
    /// Buckets in memory.
    Memory is "`memory`" {
        /// Buckets in all.
        max_keys: At<Amount> = "max_keys",
        /// Where they outlive a restart.
        file: At<String> = "file",
    }
    later []
}

record! {
    /// How paths are read.
    Paths is "`paths`" {
        /// Whether `/LOGIN` is `/login`.
        case: At<CaseWord> = "case",
        /// What becomes of `%2F` in a path.
        encoded_slash: At<SlashWord> = "encoded_slash",
    }
    later []
}

record! {
    /// Which pages may read a refusal.
    Cors is "`cors`" {
        /// Origins as browsers send them; `*` is any.
        #[schemars(required)]
        origins: Many<String> = "origins",
    }
    later []
}

record! {
    /// How long the gateway waits.
    Timeouts is "`timeouts`" {
        /// For the head of a request.
        header: At<Micros> = "header",
        /// Between requests of one connection.
        idle: At<Micros> = "idle",
        /// For the upstream's answer.
        upstream: At<Micros> = "upstream",
    }
    later []
}

record! {
    /// The listener for operators.
    Admin is "`admin`" {
        /// Where it listens; `127.0.0.1:9080` unless said.
        listen: At<String> = "listen",
        /// What a caller from elsewhere must present.
        token: At<Secret> = "token",
    }
    later []
}

record! {
    /// What is logged.
    Log is "`log`" {
        /// The form of the access log; none unless said.
        access: At<AccessWord> = "access",
    }
    later []
}

record! {
    /// What is told to whoever is refused.
    Refusal is "`refusal`" {
        /// A page that explains the limits.
        docs: At<String> = "docs",
    }
    later []
}

record! {
    /// A request to try, and what should come of it. The tests of one file run in their order, in one virtual time.
    TestEntry is "a test" {
        /// `METHOD TARGET`.
        #[schemars(required)]
        request: At<String> = "request",
        /// The caller's address.
        from: At<String> = "from",
        /// The request's host.
        host: At<String> = "host",
        /// Header fields.
        headers: Entries<At<Secret>> = "headers",
        /// The caller by the name of the key file, in place of a key.
        client: At<String> = "client",
        /// The caller's plan, where no key says it.
        plan: At<String> = "plan",
        /// Time that passes before it.
        after: At<Micros> = "after",
        /// How often it is sent, at one instant; once unless said.
        times: At<Amount> = "times",
        /// How many of them pass; all unless `refused_by` is said.
        allowed: At<Amount> = "allowed",
        /// The limit that refuses the last one.
        refused_by: At<String> = "refused_by",
    }
    later []
}

words! {
    /// A dialect of header fields.
    HeaderWord is "dialect of header fields" {
        /// `RateLimit-Limit`, `RateLimit-Remaining`, `RateLimit-Reset`.
        #[default]
        Triple = "triple",
        /// `RateLimit`, `RateLimit-Policy`.
        Draft = "draft",
        /// `X-RateLimit-*`.
        XRateLimit = "x-ratelimit",
        /// None at all; stands alone.
        None = "none",
    }
}

words! {
    /// A field that says who a proxy called for.
    FieldWord is "field that names callers" {
        /// `X-Forwarded-For`.
        #[default]
        XForwardedFor = "x-forwarded-for",
        /// `Forwarded`.
        Forwarded = "forwarded",
    }
}

words! {
    /// Whether case counts in paths.
    CaseWord is "word for `case`" {
        /// `/LOGIN` is not `/login`.
        #[default]
        Sensitive = "sensitive",
        /// It is.
        Ignore = "ignore",
    }
}

words! {
    /// What becomes of `%2F` in a path.
    SlashWord is "word for `encoded_slash`" {
        /// 400.
        #[default]
        Reject = "reject",
        /// Limits that match either reading apply.
        Both = "both",
    }
}

words! {
    /// A form of the access log.
    AccessWord is "form of the access log" {
        /// One JSON object a line.
        #[default]
        Json = "json",
    }
}

/// What no limit applies to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Exempt {
    /// `path /healthz` or `ip 192.0.2.0/24`.
    Text(String),
    /// The same as an object.
    Object(ExemptObject),
}

record! {
    /// What no limit applies to: requests that are of every kind that is named.
    ExemptObject is "an exemption" {
        /// In the form of `match`.
        path: Many<String> = "path",
        /// Addresses and networks.
        ip: Many<String> = "ip",
    }
    later []
}

impl Read for Exempt {
    fn read(node: &Node, findings: &mut Findings) -> Option<Self> {
        match node.kind {
            Kind::Map(_) => ExemptObject::read(node, findings).map(Self::Object),
            _ => String::read(node, findings).map(Self::Text),
        }
    }
}

impl JsonSchema for Exempt {
    fn schema_name() -> Cow<'static, str> {
        "Exempt".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let object = generator.subschema_for::<ExemptObject>();
        json_schema!({ "anyOf": [{ "type": "string", "pattern": "^(path|ip) " }, object] })
    }
}

/// What was written in `node`.
pub(super) fn read(node: &Node, findings: &mut Findings) -> Option<File> {
    if matches!(node.kind, Kind::Null) {
        findings.blame(node.place, "this file is empty").hint("begin with `upstream: demo` and a limit");
        return None;
    }
    File::read(node, findings)
}

/// The keys of a key file: `KEY: { name, plan }`. A file without keys is one: nobody is known yet.
pub(super) fn keys(node: &Node, findings: &mut Findings) -> Option<Keys> {
    if matches!(node.kind, Kind::Null) { Some(Keys::default()) } else { Keys::read(node, findings) }
}
