//! The small sections of a file.

use crate::http::{client_addr, cors, fields, path};
use crate::policy::exempt::network;
use crate::policy::file::{CaseWord, FieldWord, File, HeaderWord, SlashWord};
use crate::policy::findings::Findings;

/// The version of the format has to be ours.
pub(super) fn version(file: &File, findings: &mut Findings) {
    if let Some(version) = file.tope.as_ref().filter(|version| version.value.0 != 1) {
        findings
            .blame(version.place, "this version of the format is not known")
            .hint("write `tope: 1`, or leave it out");
    }
}

/// How the caller's address is found.
pub(super) fn address(file: &File, findings: &mut Findings) -> client_addr::Rules {
    let mut rules = client_addr::Rules { trust: Vec::new(), ipv6_prefix: 64, field: client_addr::Field::Either };
    let Some(written) = &file.address else { return rules };
    let trust = written.trust.iter().flat_map(|trust| &trust.0);
    rules.trust = trust.filter_map(|one| network(one, findings)).collect();
    rules.field = match written.field.as_ref().map(|word| word.value) {
        None => client_addr::Field::Either,
        Some(FieldWord::XForwardedFor) => client_addr::Field::XForwardedFor,
        Some(FieldWord::Forwarded) => client_addr::Field::Forwarded,
    };
    if let Some(size) = &written.ipv6 {
        let bits = size.strip_prefix('/').unwrap_or(size).parse().ok().filter(|bits| (32..=128).contains(bits));
        match bits {
            Some(bits) => rules.ipv6_prefix = bits,
            None => {
                findings
                    .blame(size.place, "this is no size of a block of addresses")
                    .hint("write /32 to /128, as in `/64`");
            }
        }
    }
    if let Some(on) = written.proxy_protocol.as_ref().filter(|on| on.value) {
        findings.blame(on.place, "`proxy_protocol` is not in this version").hint("write `false`, or take it out");
    }
    rules
}

/// How paths are read.
pub(super) fn paths(file: &File) -> path::Rules {
    let mut rules = path::Rules::default();
    let Some(written) = &file.paths else { return rules };
    rules.ignore_case = written.case.as_ref().is_some_and(|word| word.value == CaseWord::Ignore);
    if written.encoded_slash.as_ref().is_some_and(|word| word.value == SlashWord::Both) {
        rules.encoded_slash = path::EncodedSlash::Both;
    }
    rules
}

/// Which header fields are sent.
pub(super) fn dialects(file: &File, findings: &mut Findings) -> Vec<fields::Dialect> {
    let Some(written) = &file.headers else { return vec![fields::Dialect::Triple, fields::Dialect::Draft] };
    let mut dialects = Vec::new();
    for word in &written.0 {
        let dialect = match word.value {
            HeaderWord::Triple => fields::Dialect::Triple,
            HeaderWord::Draft => fields::Dialect::Draft,
            HeaderWord::XRateLimit => fields::Dialect::XRateLimit,
            HeaderWord::None if written.0.len() == 1 => return dialects,
            HeaderWord::None => {
                findings.blame(word.place, "`none` stands alone").hint("take it or the others out");
                continue;
            }
        };
        if dialects.contains(&dialect) {
            findings.blame(word.place, "this dialect stands twice");
        }
        dialects.push(dialect);
    }
    dialects
}

/// Which pages may read a refusal.
pub(super) fn cors(file: &File, findings: &mut Findings) -> Option<cors::Rules> {
    let written = file.cors.as_ref()?;
    let mut rules = cors::Rules::default();
    for origin in written.origins.iter().flat_map(|origins| &origins.0) {
        let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
        let plain = |host: &str| {
            !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic() && !b"/?#*".contains(&byte))
        };
        if origin.value == "*" || host.is_some_and(plain) {
            rules.origins.push(origin.value.to_ascii_lowercase());
        } else {
            findings
                .blame(origin.place, "this is no origin")
                .hint("an origin is a scheme and a host, without a slash at the end: https://app.example.org");
        }
    }
    Some(rules)
}

/// The page that a refusal points to.
pub(super) fn docs(file: &File, findings: &mut Findings) -> Option<String> {
    let docs = file.refusal.as_ref()?.docs.as_ref()?;
    let url = docs.starts_with("https://") || docs.starts_with("http://");
    if !url || !docs.bytes().all(|byte| byte.is_ascii_graphic()) {
        findings.blame(docs.place, "this is no address of a page").hint("write https://…");
        return None;
    }
    Some(docs.value.clone())
}
