//! Every byte of a request is hostile: whatever is in it, the HTTP room answers, in bounds and without a panic.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use proptest::prelude::*;
use tope::core::algorithm::step;
use tope::core::{Entry, Quota, State, Verdict};
use tope::http::fields::Dialect;
use tope::http::path::{self, EncodedSlash};
use tope::http::{client_addr, cors, fields, grpc, problem};

const NOW: u64 = 1_790_000_000_000_000;
const ALL: &[Dialect] = &[Dialect::Triple, Dialect::Draft, Dialect::XRateLimit];

/// The fields that the room reads.
const READ: [&str; 14] = [
    "forwarded",
    "x-forwarded-for",
    "host",
    "origin",
    "content-type",
    "access-control-request-method",
    "access-control-allow-origin",
    "access-control-expose-headers",
    "ratelimit",
    "ratelimit-policy",
    "ratelimit-remaining",
    "x-ratelimit-remaining",
    "retry-after",
    "cache-control",
];

fn hostile_headers() -> impl Strategy<Value = HeaderMap> {
    let byte = prop_oneof![Just(b'\t'), 0x20_u8..=0x7E, 0x80_u8..=0xFF];
    let value = prop_oneof![
        proptest::collection::vec(byte, 0..60),
        "(application/grpc[a-z+;-]{0,8}|https?://[a-z.]{0,5}|[0-9]{0,22}|(for=)?[0-9.:\\[\\]\", ]{0,40})"
            .prop_map(String::into_bytes),
    ];
    proptest::collection::vec((0..READ.len(), value), 0..12).prop_map(|fields| {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(HeaderName::from_static(READ[name]), HeaderValue::from_bytes(&value).expect("a value"));
        }
        headers
    })
}

fn uris() -> impl Strategy<Value = Uri> {
    let text = prop_oneof![
        "/[!-~]{0,30}",
        "(https?://)?[a-zA-Z0-9@:.\\[\\]-]{1,12}(/[!-~]{0,12})?",
        Just("*".to_owned()),
        proptest::collection::vec(0x21_u8..=0xFF, 0..20)
            .prop_map(|bytes| format!("/{}", String::from_utf8_lossy(&bytes))),
    ];
    text.prop_filter_map("no URI", |text| text.parse().ok())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_request_is_read_or_refused(
        headers in hostile_headers(), uri in uris(), peer: u128, both: bool, ignore_case: bool,
        method in prop_oneof![Just(Method::GET), Just(Method::OPTIONS), Just(Method::CONNECT), Just(Method::HEAD)],
    ) {
        let encoded_slash = if both { EncodedSlash::Both } else { EncodedSlash::Reject };
        if let Ok(target) = path::target(&method, &uri)
            && let Ok(path) = path::normalise(target.path, path::Rules { ignore_case, encoded_slash })
        {
            prop_assert!(path.forward.len() <= 3 * target.path.len());
            prop_assert!(path.matched.len() <= path.forward.len());
            prop_assert!(path.forward.parse::<Uri>().is_ok(), "{}", path.forward);
        }
        if let Ok(host) = path::host(&uri, &headers) {
            prop_assert!(host.is_ascii() && !host.bytes().any(|byte| byte.is_ascii_uppercase() || byte <= b' '));
        }
        let rules = client_addr::Rules {
            trust: vec!["::/0".parse().expect("a net"), "0.0.0.0/0".parse().expect("a net")],
            ipv6_prefix: 64,
            field: client_addr::Field::Either,
        };
        let client = client_addr::client_address(IpAddr::from(peer.to_be_bytes()), &headers, &rules);
        prop_assert_eq!(client, client.to_canonical());
        let _ = client_addr::block(client, &rules);
        let _ = (cors::is_preflight(&method, &headers), grpc::is_grpc(&headers));
    }

    #[test]
    fn an_answer_holds_nothing_that_was_sent(
        asked in hostile_headers(), used in 0..=6_u32, docs in proptest::option::of(any::<String>()), status: Option<u16>,
    ) {
        let quota = Quota::per_minute(5).expect("a quota");
        let (_, state) = step(&quota, &[], State::FULL, NOW, used.min(5));
        let decision = step(&quota, &[], state, NOW, if used == 6 { 6 } else { 1 }).0;
        let entries = [Entry { name: "api", quota: &quota, decision, enforced: true, policy_item: "" }];
        let verdict = Verdict::new(&entries);
        let rules = cors::Rules { origins: vec!["https://a.org".to_owned()] };

        let mut refusal = problem::refusal(&verdict, ALL, docs.as_deref(), status, NOW);
        cors::allow(refusal.headers_mut(), &asked, &rules);
        prop_assert!(serde_json::from_slice::<serde_json::Value>(refusal.body()).is_ok());
        prop_assert!(refusal.status().as_u16() >= 400);

        let mut call = grpc::refusal(&verdict, ALL, &asked, NOW);
        cors::allow(call.headers_mut(), &asked, &rules);
        prop_assert!(call.headers()["content-type"].as_bytes().to_ascii_lowercase().starts_with(b"application/grpc"));
        for answer in [refusal.headers(), call.headers()] {
            let origin = answer.get("access-control-allow-origin");
            prop_assert!(origin.is_none_or(|origin| origin == "https://a.org"));
            prop_assert_eq!(&answer["cache-control"], "no-store");
        }
    }

    #[test]
    fn an_upstreams_answer_keeps_what_is_not_ours(upstream in hostile_headers(), used in 0..=5_u32) {
        let quota = Quota::per_minute(6).expect("a quota");
        let (_, state) = step(&quota, &[], State::FULL, NOW, used);
        let decision = step(&quota, &[], state, NOW, 1).0;
        let entries = [Entry { name: "api", quota: &quota, decision, enforced: true, policy_item: "" }];
        let mut answer = upstream.clone();
        fields::write(&mut answer, &Verdict::new(&entries), ALL, NOW);
        cors::expose(&mut answer);
        for name in ["forwarded", "host", "origin", "content-type", "retry-after", "cache-control"] {
            prop_assert!(answer.get_all(name).iter().eq(upstream.get_all(name).iter()), "{name}");
        }
        prop_assert!(answer.get("ratelimit").is_some_and(|first| first.as_bytes().starts_with(b"\"api\";r=")));
    }
}
