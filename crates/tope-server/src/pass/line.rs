//! A request as it is written down: in a log, on a command line, in a policy's tests.

use std::borrow::Cow;
use std::net::IpAddr;

use http::Uri;

/// One request of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line<'a> {
    /// When it arrived, in Unix microseconds.
    pub time_us: u64,
    /// The peer that sent it; in our own log the caller's address.
    pub address: Option<IpAddr>,
    /// The method; `GET` where the log has none.
    pub method: Cow<'a, str>,
    /// Path and query, as sent; `None` where the log has none.
    pub target: Option<Cow<'a, str>>,
    /// The host, as sent; empty where the log has none beside the headers.
    pub host: Cow<'a, str>,
    /// What was answered.
    pub status: Option<u16>,
    /// Microseconds from its arrival to its answer, where they are known: how long it was in flight.
    pub took_us: Option<u64>,
    /// What limits charged that charge what the answer says, by their names.
    pub charged: Vec<(Cow<'a, str>, u32)>,
    /// A cost that replaces every cost of the policy.
    pub cost: Option<u32>,
    /// What only our own log knows.
    pub ours: Option<Ours<'a>>,
}

impl Line<'_> {
    /// The target as a server reads it; `None` where none does.
    pub(crate) fn uri(&self) -> Option<Uri> {
        self.target.as_deref().unwrap_or("/").parse().ok()
    }
}

/// What our own access log knows beyond other logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ours<'a> {
    /// The place of the request among all that the store judged; 0 when no limit applied.
    pub seq: u64,
    /// The client's name, where it was known.
    pub client: Option<Cow<'a, str>>,
    /// The client's plan.
    pub plan: Option<Cow<'a, str>>,
    /// A CORS preflight.
    pub preflight: bool,
    /// The verdict, in the log's word.
    pub verdict: Option<Cow<'a, str>>,
    /// The limit that refused.
    pub refused_by: Option<Cow<'a, str>>,
}
