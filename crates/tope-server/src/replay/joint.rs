//! STUB, to be connected when `tope::http` and `tope::policy` are there: what a replay and `explain` ask of them, in
//! one place. Each function's body becomes the call that its comment names.

use std::net::IpAddr;

use bytes::Bytes;
use http::HeaderMap;
use tope::facts::Client;
use tope::http::{client_addr, path};
use tope::{Judgement, Policy};

/// A path, read.
#[derive(Debug)]
pub(crate) struct Path {
    /// What is forwarded.
    pub(crate) forward: String,
    /// What limits are matched against.
    pub(crate) matched: String,
    /// Its other reading.
    pub(crate) other: Option<String>,
}

/// `path::normalise(path, rules).ok()`
pub(crate) fn normalise(path: &str, rules: path::Rules) -> Option<Path> {
    let _ = rules;
    let matched = if path.len() > 1 { path.strip_suffix('/').unwrap_or(path) } else { path };
    path.starts_with('/').then(|| Path { forward: path.to_owned(), matched: matched.to_owned(), other: None })
}

/// `client_addr::client_address(peer, headers, rules)`
pub(crate) fn client_address(peer: IpAddr, headers: &HeaderMap, rules: &client_addr::Rules) -> IpAddr {
    let _ = (headers, rules);
    peer.to_canonical()
}

/// `client_addr::trusted(peer, rules)`
pub(crate) fn trusted(peer: IpAddr, rules: &client_addr::Rules) -> bool {
    rules.trust.iter().any(|net| net.contains(&peer.to_canonical()))
}

/// `cors::is_preflight(method, headers)`
pub(crate) fn is_preflight(method: &str, headers: &HeaderMap) -> bool {
    method == "OPTIONS" && headers.contains_key("origin") && headers.contains_key("access-control-request-method")
}

/// `policy.client_named(name, plan)`
pub(crate) fn client_named<'a>(policy: &'a Policy, name: Option<&'a str>, plan: Option<&str>) -> Client<'a> {
    let _ = (policy, plan);
    Client { name, plan: 0 }
}

/// The fields of an answer: `fields::write(&mut headers, &verdict, &policy.dialects, now_us)`
pub(crate) fn answer_fields(judgement: &Judgement) -> HeaderMap {
    let _ = judgement;
    HeaderMap::new()
}

/// A refusal, its fields and its body:
/// `problem::refusal(&verdict, &policy.dialects, policy.docs.as_deref(), policy.reject_status(budget), now_us)`
pub(crate) fn refusal(judgement: &Judgement) -> http::Response<Bytes> {
    let mut response = http::Response::new(Bytes::new());
    *response.status_mut() = http::StatusCode::TOO_MANY_REQUESTS;
    let _ = judgement;
    response
}
