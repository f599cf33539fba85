//! What a policy says should come of a request: its `tests:`.

use std::net::IpAddr;

use ::http::HeaderMap;

use super::error::Place;

/// A request to try, and what should come of it. The tests of a file run in their order, over one store that begins
/// empty, in one virtual time.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Test {
    /// Where it stands in the file.
    pub place: Place,
    /// The method.
    pub method: String,
    /// The path, and the query behind a `?`.
    pub target: String,
    /// The caller's address; any unless said.
    pub from: Option<IpAddr>,
    /// The host, lower case; empty unless said.
    pub host: String,
    /// Header fields. Their values are marked as sensitive.
    pub headers: HeaderMap,
    /// The caller by name, in place of a key.
    pub client: Option<String>,
    /// The caller's plan, in place of a key.
    pub plan: Option<u16>,
    /// Microseconds that pass before it.
    pub after_us: u64,
    /// How often it is sent, at one instant.
    pub times: u32,
    /// How many pass; `None`: not said.
    pub allowed: Option<u32>,
    /// The limit (or the rate of its list: `login.2`) that refuses the last one; `None`: not said.
    pub refused_by: Option<String>,
}
