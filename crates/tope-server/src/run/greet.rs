//! What is said when the gateway listens, on standard error: standard output is the access log's.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::settings::Settings;
use crate::settings::upstream::Upstream;
use crate::talk;

/// Says where it listens, and with the sample upstream what to try.
pub(super) fn listening(address: SocketAddr, admin: SocketAddr, settings: &Settings, shadow: bool) {
    let mut text = format!("tope listens on http://{address}, metrics on http://{admin}/metrics\n");
    if shadow {
        text.push_str("shadow: every limit is counted, and nobody is refused\n");
    }
    if settings.upstreams == [Upstream::Demo] {
        let at = reachable(address);
        let _ = write!(
            text,
            "try:\n  \
             curl -i http://{at}/ping\n  \
             curl -i http://{at}/search -H 'X-Api-Key: demo-pro'\n  \
             for i in 1 2 3 4 5 6; do curl -i -X POST http://{at}/login; done\n"
        );
    }
    talk::say(&text);
}

/// An address to connect to, for one to listen on.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
