//! What a limit may ask of a request, and of its answer. Facts borrow: a request is read once and nothing is copied.

use std::borrow::Cow;
use std::net::IpAddr;

use ::http::{HeaderMap, StatusCode};

/// What is known of one request.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The method, as sent.
    pub method: &'a str,
    /// The path that limits are matched against: normalised, without a trailing slash, without path parameters, lower
    /// case where the policy ignores case. See [`http::path`](crate::http::path).
    pub path: &'a str,
    /// Its other reading, where an encoded slash makes two: limits that match either apply.
    pub other_path: Option<&'a str>,
    /// The host, lower case, without port and final dot; empty when there is none.
    pub host: &'a str,
    /// The query string without its `?`.
    pub query: Option<&'a str>,
    /// All header fields.
    pub headers: &'a HeaderMap,
    /// The caller's address in canonical form; `None` only where a log has none.
    pub address: Option<IpAddr>,
    /// Who is calling.
    pub client: Client<'a>,
    /// A CORS preflight: charged to limits by `ip` and `all` alone.
    pub preflight: bool,
    /// The beginning of its body, where somebody has read it: what limits reserve may stand in it.
    pub body: Option<&'a [u8]>,
    /// A cost that replaces every cost of the policy: from a log.
    pub cost: Option<u32>,
}

/// What is known of the answer to a request.
#[derive(Clone, Copy, Debug)]
pub enum Reply<'a> {
    /// Its head is there.
    Head {
        /// The status.
        status: StatusCode,
        /// All header fields.
        headers: &'a HeaderMap,
    },
    /// It has ended after its head: with trailers, without, or cut.
    End {
        /// The trailer fields, where there were any.
        trailers: Option<&'a HeaderMap>,
        /// What its body said of prices, by the places of the fields in
        /// [`Policy::body_fields`](crate::Policy::body_fields). What is missing was not said.
        prices: &'a [(u16, Price)],
    },
    /// There is none: it could not be had.
    Nothing,
    /// Nobody waited for it: the client left before its head.
    Left,
    /// All that a log says of it.
    Logged {
        /// The status, where the log has it.
        status: Option<StatusCode>,
        /// What limits that charge what the answer says have charged, by their names.
        charged: &'a [(Cow<'a, str>, u32)],
    },
}

/// What an answer says of the price of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Price {
    /// Nothing.
    Unsaid,
    /// Something that is no whole number below 2^32.
    Unreadable,
    /// So many units.
    Units(u32),
}

/// Who is calling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client<'a> {
    /// The name in the key file (or what a trusted proxy says); `None`: nobody that we know, counted by address.
    pub name: Option<&'a str>,
    /// The plan, by its place in the policy; 0 when the policy has no plans.
    pub plan: u16,
}
