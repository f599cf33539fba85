//! Who is calling, by address.

use std::net::IpAddr;

use http::HeaderMap;
use ipnet::IpNet;

/// Whose word about addresses is believed.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Proxies whose `Forwarded` and `X-Forwarded-For` count. Nobody unless said.
    pub trust: Vec<IpNet>,
    /// IPv6 addresses that share this many leading bits are one caller.
    pub ipv6_prefix: u8,
}
