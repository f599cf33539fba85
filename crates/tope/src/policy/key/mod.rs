//! What names a bucket: `by:`, and the bytes it makes of a request.
//!
//! A key is a row of parts, each a tag and a text that says its own length, so that no two different rows give the same bytes. A part longer
//! than [`LONGEST`] is told by its length and a keyed hash of 128 bits, which keeps keys short whatever a caller sends.

mod lookup;
#[cfg(feature = "yaml")]
mod parse;

use std::hash::Hasher;
use std::net::IpAddr;

use ::http::HeaderName;
use siphasher::sip128::{Hasher128, SipHasher13};
use smallvec::SmallVec;

pub(super) use lookup::{cookie, header, parameter};
#[cfg(feature = "yaml")]
pub(super) use parse::parse;

use super::matching::{Matching, Met};
use crate::facts::Facts;
use crate::http::client_addr::{Rules, block};

/// A part of more bytes is hashed.
const LONGEST: usize = 64;

/// Where keys are written.
pub(super) type Bytes = SmallVec<[u8; 256]>;

/// What names a bucket of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyForm {
    /// At least one.
    pub(super) parts: Vec<Part>,
    pub(super) missing: Missing,
    /// Each plan has a bucket of its own. A bucket is of one size: were it shared by plans of different rates, whoever
    /// calls on two of them in turn would make it anew with each call.
    pub(super) by_plan: bool,
}

/// One fact of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// One bucket for everybody.
    All,
    /// The caller's address.
    Ip,
    /// The client's name, else its address.
    Client,
    /// The client's plan.
    Plan,
    /// Which pattern was met.
    Route,
    /// The value of a header.
    Header(HeaderName),
    /// The value of a cookie.
    Cookie(Box<str>),
    /// The value of a query parameter.
    Query(Box<str>),
    /// The value of a named segment.
    Path(Box<str>),
}

impl Part {
    /// Whether the caller chooses it freely.
    pub(super) const fn is_chosen(&self) -> bool {
        matches!(self, Self::Header(_) | Self::Cookie(_) | Self::Query(_) | Self::Path(_))
    }
}

/// What becomes of a request without a part of the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Missing {
    /// The address stands in for it.
    #[default]
    Ip,
    /// The request is refused.
    Deny,
    /// The limit does not apply.
    Skip,
}

/// What became of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// It was written.
    Key,
    /// A part is missing, and the request is to be refused.
    Deny,
    /// A part is missing, and the limit does not apply.
    Skip,
}

/// The tags of parts, each a byte of a key. A value never changes its meaning: keys outlive a restart.
mod tag {
    pub(super) const ALL: u8 = 1;
    pub(super) const ADDRESS: u8 = 2;
    pub(super) const NO_ADDRESS: u8 = 3;
    pub(super) const CLIENT: u8 = 5;
    pub(super) const PLAN: u8 = 6;
    pub(super) const ROUTE: u8 = 7;
    pub(super) const HEADER: u8 = 8;
    pub(super) const COOKIE: u8 = 9;
    pub(super) const QUERY: u8 = 10;
    pub(super) const PATH: u8 = 11;
    /// Set in the tag of a part that is hashed.
    pub(super) const HASHED: u8 = 0x80;
}

/// What a key needs besides the facts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around<'a> {
    pub(super) plans: &'a [String],
    pub(super) address: &'a Rules,
    pub(super) seed: &'a Seed,
}

/// The key of the hash of long parts.
#[derive(Clone, Copy)]
pub(super) struct Seed(pub(super) [u8; 16]);

impl std::fmt::Debug for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seed(***)")
    }
}

impl KeyForm {
    /// One bucket for everybody.
    pub(super) fn all() -> Self {
        Self { parts: vec![Part::All], missing: Missing::Ip, by_plan: false }
    }

    /// Whether it is of `ip` and `all` alone: a browser's preflight carries nothing else that could name its caller.
    pub(super) fn counts_preflights(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::All | Part::Ip))
    }

    /// Writes the key of one request.
    pub(super) fn write(
        &self,
        facts: &Facts<'_>,
        matching: &Matching,
        met: Met<'_>,
        around: Around<'_>,
        bytes: &mut Bytes,
    ) -> Made {
        for part in &self.parts {
            if !write_part(part, facts, matching, met, around, bytes) {
                match self.missing {
                    Missing::Ip => write_address(facts.address, around.address, bytes),
                    Missing::Deny => return Made::Deny,
                    Missing::Skip => return Made::Skip,
                }
            }
        }
        if self.by_plan {
            write_part(&Part::Plan, facts, matching, met, around, bytes);
        }
        Made::Key
    }

    /// The key of a limit whose rates are not the same on every plan.
    #[cfg(feature = "yaml")]
    pub(super) fn of_many_sizes(mut self) -> Self {
        // A client is on one plan.
        self.by_plan = !self.parts.iter().any(|part| matches!(part, Part::Client | Part::Plan));
        self
    }
}

/// Writes one part; false where the request has no such thing.
fn write_part(
    part: &Part,
    facts: &Facts<'_>,
    matching: &Matching,
    met: Met<'_>,
    around: Around<'_>,
    bytes: &mut Bytes,
) -> bool {
    match part {
        Part::All => bytes.extend_from_slice(&[tag::ALL, 0]),
        Part::Ip => write_address(facts.address, around.address, bytes),
        Part::Client => match facts.client.name {
            Some(name) => write_text(tag::CLIENT, name.as_bytes(), around.seed, bytes),
            None => write_address(facts.address, around.address, bytes),
        },
        Part::Plan => {
            let name = around.plans.get(usize::from(facts.client.plan)).map_or("", String::as_str);
            write_text(tag::PLAN, name.as_bytes(), around.seed, bytes);
        }
        Part::Route => {
            bytes.extend_from_slice(&[tag::ROUTE, 2]);
            bytes.extend_from_slice(&met.route.to_be_bytes());
        }
        Part::Header(name) => {
            return write_found(tag::HEADER, around.seed, bytes, |out| header(facts.headers, name, out));
        }
        Part::Cookie(name) => {
            return write_found(tag::COOKIE, around.seed, bytes, |out| cookie(facts.headers, name, out));
        }
        Part::Query(name) => {
            return write_found(tag::QUERY, around.seed, bytes, |out| parameter(facts.query, name, out));
        }
        Part::Path(name) => match matching.named(met, name) {
            Some(value) => write_text(tag::PATH, value.as_bytes(), around.seed, bytes),
            None => return false,
        },
    }
    true
}

fn write_text(tag: u8, text: &[u8], seed: &Seed, bytes: &mut Bytes) {
    let from = begin(tag, bytes);
    bytes.extend_from_slice(text);
    end(from, seed, bytes);
}

/// Writes what `find` finds; nothing where it finds nothing, or an empty text.
fn write_found(tag: u8, seed: &Seed, bytes: &mut Bytes, find: impl FnOnce(&mut Bytes)) -> bool {
    let from = begin(tag, bytes);
    find(bytes);
    if bytes.len() == from {
        bytes.truncate(from - 2);
        return false;
    }
    end(from, seed, bytes);
    true
}

fn begin(tag: u8, bytes: &mut Bytes) -> usize {
    bytes.extend_from_slice(&[tag, 0]);
    bytes.len()
}

/// Closes the part whose text begins at `from`.
fn end(from: usize, seed: &Seed, bytes: &mut Bytes) {
    let length = bytes.len() - from;
    if length <= LONGEST {
        bytes[from - 1] = u8::try_from(length).expect("64 fits a byte");
        return;
    }
    let mut hasher = SipHasher13::new_with_key(&seed.0);
    hasher.write(&bytes[from..]);
    let hash = hasher.finish128().as_bytes();
    bytes.truncate(from - 1);
    bytes[from - 2] |= tag::HASHED;
    bytes.extend_from_slice(&(length as u64).to_be_bytes());
    bytes.extend_from_slice(&hash);
}

/// Writes the block of addresses that is one caller. Its first two bytes say how many follow.
pub(super) fn write_address(address: Option<IpAddr>, rules: &Rules, bytes: &mut Bytes) {
    match address {
        None => bytes.push(tag::NO_ADDRESS),
        Some(address) => {
            bytes.push(tag::ADDRESS);
            bytes.extend_from_slice(block(address, rules).as_bytes());
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that unwraps nothing fails")]
mod tests;
