//! What no limit applies to.

#[cfg(feature = "yaml")]
mod parse;

use std::net::IpAddr;

use ipnet::IpNet;

#[cfg(feature = "yaml")]
pub(super) use parse::{compile, network};

use super::matching::Pattern;
use crate::facts::Facts;
use crate::http::client_addr::{Rules, is_callers};

/// Requests that are of every kind that is named here.
#[derive(Debug, Default)]
pub(super) struct Exemption {
    /// One of these; none: any.
    pub(super) patterns: Vec<Pattern>,
    /// One of these; none: any.
    pub(super) networks: Vec<IpNet>,
    ignore_case: bool,
}

impl Exemption {
    /// Whether no limit applies to the request: every reading of its path has to be exempt, and an address has to be the
    /// caller's own.
    pub(super) fn frees(&self, facts: &Facts<'_>, rules: &Rules) -> bool {
        let reads = |path: &str| {
            self.patterns.is_empty()
                || self.patterns.iter().any(|pattern| pattern.matches(facts.method, path, self.ignore_case))
        };
        let from = || {
            let address = facts.address.map(canonical);
            address.is_some_and(|address| self.networks.iter().any(|network| network.contains(&address)))
                && facts.address.is_some_and(|address| is_callers(address, facts.headers, rules))
        };
        reads(facts.path) && facts.other_path.is_none_or(reads) && (self.networks.is_empty() || from())
    }
}

/// An address without the clothes of IPv6: a block is the same of an IPv4 address in any form.
fn canonical(address: IpAddr) -> IpAddr {
    const NAT64: u128 = 0x0064_ff9b << 96;
    match address.to_canonical() {
        IpAddr::V6(v6) if v6.to_bits() >> 32 == NAT64 >> 32 => {
            let low = u32::try_from(v6.to_bits() & u128::from(u32::MAX)).expect("32 bits are left");
            IpAddr::V4(low.into())
        }
        other => other,
    }
}
