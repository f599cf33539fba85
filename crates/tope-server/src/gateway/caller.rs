//! What the layer in front knows of a request and the upstream is told.

use std::net::IpAddr;

use http::HeaderValue;

/// Who is calling, for the upstream's ears: one request extension, inserted by the layer in front of the proxy.
///
/// Without it the upstream is told nothing about the caller, and what the client says about itself is dropped.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Sent as `X-Tope-Client`; whatever came from outside under that name is dropped in any case.
    pub client: Option<HeaderValue>,
    /// Sent as `X-Tope-Plan`, likewise.
    pub plan: Option<HeaderValue>,
    /// The peer's address as text, made once a connection with [`Caller::peer_text`].
    pub peer: HeaderValue,
    /// Whether the peer's own `X-Forwarded-*` are believed and added to, or replaced.
    pub trusted_peer: bool,
    /// The path to forward instead of the one that came, when normalising changed it; the query is kept.
    pub forward_path: Option<Box<str>>,
}

impl Caller {
    /// An address as it is written in `X-Forwarded-For`; IPv4-mapped IPv6 is IPv4.
    pub fn peer_text(address: IpAddr) -> HeaderValue {
        HeaderValue::try_from(address.to_canonical().to_string()).unwrap_or(HeaderValue::from_static("unknown"))
    }
}
