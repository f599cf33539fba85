//! What no limit applies to.

use std::net::IpAddr;

use ipnet::IpNet;

use super::error::At;
use super::file::{Exempt, Many};
use super::findings::Findings;
use super::key;
use super::matching::{self, Pattern};
use crate::facts::Facts;
use crate::http::path::Rules;

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
    /// Whether no limit applies to the request: every reading of its path has to be exempt.
    pub(super) fn frees(&self, facts: &Facts<'_>) -> bool {
        let reads = |path: &str| {
            self.patterns.is_empty()
                || self.patterns.iter().any(|pattern| pattern.matches(facts.method, path, self.ignore_case))
        };
        let from = || {
            let address = facts.address.map(key::canonical);
            address.is_some_and(|address| self.networks.iter().any(|network| network.contains(&address)))
        };
        reads(facts.path) && facts.other_path.is_none_or(reads) && (self.networks.is_empty() || from())
    }
}

/// Reads what is exempt.
pub(super) fn compile(written: &Many<Exempt>, rules: Rules, findings: &mut Findings) -> Vec<Exemption> {
    let mut exempt = Vec::with_capacity(written.0.len());
    for one in &written.0 {
        let mut exemption = Exemption { ignore_case: rules.ignore_case, ..Exemption::default() };
        match &one.value {
            Exempt::Text(text) => match text.split_once(' ') {
                Some(("path", pattern)) => {
                    let place = if findings.is_filled(one.place) { one.place } else { one.place.plus(5) };
                    exemption.patterns.extend(matching::parse(pattern, place, rules, findings));
                }
                Some(("ip", address)) => {
                    exemption.networks.extend(network(&At::new(address.trim().to_owned(), one.place), findings));
                }
                _ => {
                    findings
                        .blame(one.place, "this is no exemption")
                        .hint("write `path /healthz` or `ip 192.0.2.0/24`");
                }
            },
            Exempt::Object(object) => {
                for pattern in object.path.iter().flat_map(|paths| &paths.0) {
                    exemption.patterns.extend(matching::parse(pattern, pattern.place, rules, findings));
                }
                let networks = object.ip.iter().flat_map(|networks| &networks.0);
                exemption.networks.extend(networks.filter_map(|one| network(one, findings)));
                if object.path.is_none() && object.ip.is_none() {
                    findings.blame(one.place, "this exempts everything").hint("name a `path` or an `ip`");
                }
            }
        }
        exempt.push(exemption);
    }
    exempt
}

/// Reads a network or one address.
pub(super) fn network(written: &At<String>, findings: &mut Findings) -> Option<IpNet> {
    let read = written.parse::<IpNet>().ok().or_else(|| written.parse::<IpAddr>().ok().map(IpNet::from));
    let Some(network) = read else {
        findings
            .blame(written.place, "this is no address and no network")
            .hint("write 192.0.2.1, 10.0.0.0/8 or 2001:db8::/32");
        return None;
    };
    if network.addr() != network.trunc().addr() {
        findings
            .blame(written.place, "this address is within its network, and not the network itself")
            .hint(format!("write `{}` for all of it, or the address alone", network.trunc()));
        return None;
    }
    Some(network)
}
