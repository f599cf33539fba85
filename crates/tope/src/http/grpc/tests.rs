use std::collections::BTreeMap;

use tope_core::{Decision, Entry, Quota};

use super::super::fields::tests::{after, entry, quota};
use super::*;

const NOW: u64 = 1_790_000_000_000_000;
const BOTH: &[Dialect] = &[Dialect::Triple, Dialect::Draft];

fn call(content_type: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, content_type.parse().expect("a value"));
    headers
}

fn field<'a>(response: &'a Response<Bytes>, name: &str) -> Option<&'a str> {
    response.headers().get(name).map(|value| value.to_str().expect("ASCII"))
}

/// What a field of a message holds.
#[derive(Clone, Debug, PartialEq)]
enum Held {
    Number(u64),
    Bytes(Vec<u8>),
}

type Fields = BTreeMap<u64, Vec<Held>>;

/// Reads a message; written after the specification and not after the writer.
fn read(mut bytes: &[u8]) -> Fields {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (first, rest) = bytes.split_first().expect("a varint ends");
            *bytes = rest;
            value |= u64::from(first & 0x7F) << shift;
            if first & 0x80 == 0 {
                return value;
            }
        }
        panic!("a varint of more than ten bytes");
    }
    let mut fields = Fields::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let held = match tag & 7 {
            0 => Held::Number(varint(&mut bytes)),
            2 => {
                let length = usize::try_from(varint(&mut bytes)).expect("a length");
                let (held, rest) = bytes.split_at(length);
                bytes = rest;
                Held::Bytes(held.to_vec())
            }
            other => panic!("wire type {other}"),
        };
        fields.entry(tag >> 3).or_default().push(held);
    }
    fields
}

fn text(fields: &Fields, field: u64) -> String {
    match &fields[&field][..] {
        [Held::Bytes(bytes)] => String::from_utf8(bytes.clone()).expect("UTF-8"),
        other => panic!("{other:?}"),
    }
}

fn messages(fields: &Fields, field: u64) -> Vec<Fields> {
    let read_one = |held: &Held| match held {
        Held::Bytes(bytes) => read(bytes),
        Held::Number(number) => panic!("{number} is no message"),
    };
    fields.get(&field).into_iter().flatten().map(read_one).collect()
}

/// The status, and its details by their types.
fn details(response: &Response<Bytes>) -> (Fields, BTreeMap<String, Fields>) {
    let encoded = field(response, "grpc-status-details-bin").expect("details");
    let status = read(&STANDARD_NO_PAD.decode(encoded).expect("base64 without padding"));
    let by_type = messages(&status, 3).into_iter().map(|any| {
        let kind = text(&any, 1).strip_prefix("type.googleapis.com/google.rpc.").expect("a type").to_owned();
        (kind, messages(&any, 2).remove(0))
    });
    let by_type = by_type.collect();
    (status, by_type)
}

/// What python's googleapis-common-protos writes for a refusal by the limit `a`, 60/min and used up.
const MADE_ELSEWHERE: &str = concat!(
    "CAgSPlRoZSBidWRnZXQgb2YgdGhlIGxpbWl0ICdhJyBpcyB1c2VkIHVwLiBUcnkgYWdhaW4gaW4gMSBzZWNvbmQuGjAKKHR5cGUu",
    "Z29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5SZXRyeUluZm8SBAoCCAEaZgordHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBj",
    "LlF1b3RhRmFpbHVyZRI3CjUKB2xpbWl0OmESJ1RoZSBidWRnZXQgb2YgdGhlIGxpbWl0ICdhJyBpcyB1c2VkIHVwLioBYRpHCih0",
    "eXBlLmdvb2dsZWFwaXMuY29tL2dvb2dsZS5ycGMuRXJyb3JJbmZvEhsKE1JBVEVfTElNSVRfRVhDRUVERUQSBHRvcGU",
);

#[test]
fn which_requests_are_calls() {
    let rows = [
        ("application/grpc", true),
        ("application/grpc+proto", true),
        ("Application/gRPC", true),
        ("application/grpc; charset=x", true),
        ("application/grpc-web", true),
        ("application/grpc-web+proto", true),
        ("application/grpc-web-text+proto", true),
        ("application/grpcx", false),
        ("application/grpc/x", false),
        ("application/grpc+pro to", false),
        ("application/json", false),
        ("", false),
    ];
    for (content_type, expected) in rows {
        assert_eq!(is_grpc(&call(content_type)), expected, "{content_type}");
    }
    assert!(!is_grpc(&HeaderMap::new()));
    assert!(!is_grpc(&call(&format!("application/grpc+{}", "x".repeat(100)))));
}

#[test]
fn a_refusal_is_a_status_with_details() {
    let (search, api) = (quota(7, 60), quota(60, 60));
    let entries = [entry("api", &api, 60), entry("search", &search, 7), entry("wide", &api, 0)];
    let response = refusal(&Verdict::new(&entries), BOTH, &call("application/grpc+proto;x"), NOW);
    assert_eq!(response.status(), 200);
    assert!(response.body().is_empty());
    assert_eq!(field(&response, "content-type"), Some("application/grpc+proto"));
    assert_eq!(field(&response, "grpc-status"), Some("8"));
    let message = "The budget of the limit 'search' is used up. Try again in 9 seconds.";
    assert_eq!(field(&response, "grpc-message"), Some(message));
    assert_eq!(field(&response, "grpc-retry-pushback-ms"), Some("8572"));
    assert_eq!(field(&response, "retry-after"), Some("9"));
    assert_eq!(field(&response, "ratelimit"), Some("\"search\";r=0;t=9, \"api\";r=0;t=1"));
    assert_eq!(field(&response, "cache-control"), Some("no-store"));

    let (status, details) = details(&response);
    assert_eq!(status[&1], [Held::Number(8)]);
    assert_eq!(text(&status, 2), message);
    assert_eq!(details.len(), 3);
    let delay = messages(&details["RetryInfo"], 1).remove(0);
    assert_eq!((&delay[&1][..], &delay[&2][..]), (&[Held::Number(8)][..], &[Held::Number(571_429_000)][..]));
    let violations = messages(&details["QuotaFailure"], 1);
    assert_eq!(violations.iter().map(|one| text(one, 5)).collect::<Vec<_>>(), ["search", "api"]);
    assert_eq!(text(&violations[0], 1), "limit:search");
    assert_eq!(text(&violations[0], 2), "The budget of the limit 'search' is used up.");
    assert_eq!(violations[1][&7], [Held::Number(60)]);
    assert_eq!(text(&details["ErrorInfo"], 1), "RATE_LIMIT_EXCEEDED");
    assert_eq!(text(&details["ErrorInfo"], 2), "tope");
}

#[test]
fn the_bytes_are_those_of_a_protobuf_library() {
    let api = quota(60, 60);
    let response = refusal(&Verdict::new(&[entry("a", &api, 60)]), &[], &call("application/grpc"), NOW);
    assert_eq!(field(&response, "grpc-status-details-bin"), Some(MADE_ELSEWHERE));
}

#[test]
fn a_wait_is_pushed_back_up_to_thirty_seconds() {
    let rows: [(u64, u64, &str); 4] = [(1, 30, "30000"), (1, 31, "-1"), (1, 86_400, "-1"), (2_000_000, 1, "1")];
    for (amount, period_s, expected) in rows {
        let quota = quota(amount, period_s);
        let decision = after(&quota, u32::try_from(amount).expect("a cost"));
        let entries = [Entry { name: "api", quota: &quota, decision, enforced: true, policy_item: "" }];
        let response = refusal(&Verdict::new(&entries), BOTH, &call("application/grpc"), NOW);
        assert_eq!(field(&response, "grpc-retry-pushback-ms"), Some(expected), "{amount} per {period_s} s");
    }
}

#[test]
fn what_can_never_pass_names_no_wait() {
    let decision: Decision = after(&Quota::NONE, 0);
    let entries = [Entry { name: "closed", quota: &Quota::NONE, decision, enforced: true, policy_item: "" }];
    let response = refusal(&Verdict::new(&entries), BOTH, &call("application/grpc-web"), NOW);
    assert_eq!(field(&response, "content-type"), Some("application/grpc-web"));
    assert_eq!(field(&response, "grpc-status"), Some("8"));
    assert_eq!(field(&response, "grpc-retry-pushback-ms"), Some("-1"));
    assert_eq!(field(&response, "retry-after"), None);
    assert!(!details(&response).1.contains_key("RetryInfo"));
}

#[test]
fn the_other_answers() {
    for (status, expected) in [(400, "13"), (403, "7"), (404, "12"), (429, "14"), (502, "14"), (504, "14"), (418, "2")]
    {
        let status = StatusCode::from_u16(status).expect("a status");
        let response = problem(status, "100% \u{e9}\n", &call("application/grpc"));
        assert_eq!(field(&response, "grpc-status"), Some(expected), "{status}");
        assert_eq!(field(&response, "grpc-message"), Some("100%25 %C3%A9%0A"));
        assert_eq!(response.status(), 200);
    }
    assert_eq!(
        field(&problem(StatusCode::BAD_GATEWAY, "", &HeaderMap::new()), "content-type"),
        Some("application/grpc")
    );
}

#[test]
fn a_call_is_a_post() {
    let headers = call("application/grpc");
    assert!(is_grpc_call(&Method::POST, &headers));
    for method in [Method::GET, Method::HEAD, Method::OPTIONS, Method::PUT] {
        assert!(!is_grpc_call(&method, &headers), "{method}");
    }
    assert!(!is_grpc_call(&Method::POST, &call("application/json")));
}
