//! `exempt:` as it is written.

use std::net::IpAddr;

use ipnet::IpNet;

use super::Exemption;
use crate::http::path::Rules;
use crate::policy::error::At;
use crate::policy::file::{Exempt, Many};
use crate::policy::findings::Findings;
use crate::policy::matching;

/// Reads what is exempt.
pub(in crate::policy) fn compile(written: &Many<Exempt>, rules: Rules, findings: &mut Findings) -> Vec<Exemption> {
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
pub(in crate::policy) fn network(written: &At<String>, findings: &mut Findings) -> Option<IpNet> {
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
