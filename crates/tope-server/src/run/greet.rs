//! What is said when the gateway listens, on standard error: standard output is the access log's.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tope::Policy;
use tope::policy::Limit;

use crate::settings::Settings;
use crate::settings::upstream::Upstream;
use crate::talk;

/// Says where it listens, and with the sample upstream what to try.
pub(super) fn listening(address: SocketAddr, admin: SocketAddr, settings: &Settings, policy: &Policy, shadow: bool) {
    let mut text = format!("tope listens on http://{address}, metrics on http://{admin}/metrics\n");
    if shadow {
        text.push_str("shadow: every limit is counted, and nobody is refused\n");
    }
    if settings.upstreams == [Upstream::Demo] {
        let names: Vec<&str> = policy.limits().iter().map(Limit::name).collect();
        text.push_str(&to_try(&names, reachable(address), admin));
    }
    talk::say(&text);
}

/// Three lines for a shell: those of the quickstart where its limits are, else such as any policy answers.
fn to_try(limits: &[&str], at: SocketAddr, admin: SocketAddr) -> String {
    if ["login", "search"].iter().all(|name| limits.contains(name)) {
        return format!(
            "try:\n  \
             curl -i http://{at}/ping\n  \
             curl -i http://{at}/search -H 'X-Api-Key: demo-pro'\n  \
             for i in 1 2 3 4 5 6; do curl -i -X POST http://{at}/login; done\n"
        );
    }
    format!("try:\n  curl -i http://{at}/\n  curl -i -X POST http://{at}/\n  curl http://{admin}/metrics\n")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_try_is_there_under_the_policy() {
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let quickstart = to_try(&["login", "api", "search", "ceiling"], at(1), at(2));
        assert!(quickstart.contains("demo-pro") && quickstart.contains("127.0.0.1:1/login"), "{quickstart}");
        for limits in [&[][..], &["api"], &["login"]] {
            let other = to_try(limits, at(1), at(2));
            assert!(!other.contains("/login") && !other.contains("demo-pro"), "{other}");
            assert_eq!(other.matches("curl ").count(), 3, "{other}");
        }
    }
}
