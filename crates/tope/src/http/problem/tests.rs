use http::HeaderMap;
use serde_json::{Value, json};
use tope_core::{Entry, Quota};

use super::super::fields::tests::{entry, quota};
use super::*;

const NOW: u64 = 1_790_000_000_000_000;
const BOTH: &[Dialect] = &[Dialect::Triple, Dialect::Draft];

fn body(response: &Response<Bytes>) -> Value {
    serde_json::from_slice(response.body()).expect("JSON")
}

fn field<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().expect("ASCII"))
}

#[test]
fn a_refusal_says_which_limits_and_how_long() {
    let (search, api) = (quota(5, 60), quota(60, 60));
    let entries = [entry("api", &api, 60), entry("search", &search, 5), entry("wide", &api, 0)];
    let response = refusal(&Verdict::new(&entries), BOTH, Some("https://example.org/limits?a&b"), None, NOW);
    assert_eq!(response.status(), 429);
    assert_eq!(
        body(&response),
        json!({
            "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
            "title": "Quota Exceeded",
            "status": 429,
            "detail": "The budget of the limit 'search' is used up. Try again in 12 seconds.",
            "violated-policies": ["api", "search"],
            "retry_after": 12,
            "docs": "https://example.org/limits?a&b",
        })
    );
    let headers = response.headers();
    assert_eq!(field(headers, "content-type"), Some("application/problem+json"));
    assert_eq!(field(headers, "cache-control"), Some("no-store"));
    assert_eq!(field(headers, "retry-after"), Some("12"));
    assert_eq!(field(headers, "ratelimit-reset"), Some("12"));
    assert_eq!(field(headers, "link"), Some("<https://example.org/limits?a&b>; rel=\"help\""));
}

#[test]
fn what_can_never_pass_is_forbidden_and_names_no_wait() {
    let api = quota(60, 60);
    let entries = [entry("api", &api, 60), entry("closed", &Quota::NONE, 0)];
    let response = refusal(&Verdict::new(&entries), BOTH, None, Some(503), NOW);
    assert_eq!(response.status(), 403);
    let said = body(&response);
    assert_eq!(said["detail"], "The limit 'closed' can never let this request pass. Waiting does not help.");
    assert_eq!(said["violated-policies"], json!(["api", "closed"]));
    assert_eq!(said["status"], 403);
    assert!(said.get("retry_after").is_none() && said.get("docs").is_none());
    assert_eq!(field(response.headers(), "retry-after"), None);
    assert_eq!(field(response.headers(), "cache-control"), Some("no-store"));
}

#[test]
fn a_policy_may_say_another_status() {
    let api = quota(60, 60);
    let entries = [entry("api", &api, 60)];
    let ask = |status| refusal(&Verdict::new(&entries), &[], None, status, NOW);
    let reduced = ask(Some(503));
    assert_eq!((reduced.status().as_u16(), &body(&reduced)["type"]), (503, &json!(TEMPORARY_REDUCED_CAPACITY)));
    assert_eq!(field(reduced.headers(), "retry-after"), Some("1"));
    assert_eq!(field(reduced.headers(), "ratelimit"), None);
    assert_eq!(ask(Some(420)).status(), 420);
    for none in [0, 99, 200, 302, 600, 1000] {
        assert_eq!(ask(Some(none)).status(), 429, "{none}");
    }
}

#[test]
fn shadow_limits_are_never_told() {
    let api = quota(60, 60);
    let shadow = Entry { enforced: false, ..entry("hidden", &Quota::NONE, 0) };
    let response = refusal(&Verdict::new(&[shadow, entry("api", &api, 60)]), BOTH, None, None, NOW);
    assert_eq!(response.status(), 429);
    assert!(!String::from_utf8_lossy(response.body()).contains("hidden"));
    assert!(!format!("{:?}", response.headers()).contains("hidden"));
}

#[test]
fn any_text_makes_json() {
    for text in ["\"\\/\u{8}\n\r\t\0\u{1f}\u{7f}", "</script>&", "\u{2028}\u{2029}\u{e9}\u{1F600}", ""] {
        let api = quota(60, 60);
        let response = refusal(&Verdict::new(&[entry(text, &api, 60)]), BOTH, Some(text), None, NOW);
        let said = body(&response);
        assert_eq!((&said["violated-policies"], &said["docs"]), (&json!([text]), &json!(text)));
        assert!(!String::from_utf8_lossy(response.body()).contains('<'));
        assert_eq!(field(response.headers(), "link"), None, "{text:?}");
    }
}

#[test]
fn head_has_the_same_fields_and_no_body() {
    let api = quota(60, 60);
    let ask = || refusal(&Verdict::new(&[entry("api", &api, 60)]), BOTH, None, None, NOW);
    let (get, mut head) = (for_method(ask(), &Method::GET), for_method(ask(), &Method::HEAD));
    // A server adds the length of a body that is there; of one that was taken away only we know it.
    let length = head.headers_mut().remove("content-length").expect("the length of the body of GET");
    assert_eq!(length, get.body().len().to_string());
    assert_eq!((get.status(), get.headers()), (head.status(), head.headers()));
    assert!(head.body().is_empty() && !get.body().is_empty());
}

#[test]
fn the_other_answers() {
    let rows =
        [(bad_request(BadPath::Escape), 400), (bad_gateway(), 502), (gateway_timeout(), 504), (store_down(), 503)];
    for (response, status) in rows {
        let said = body(&response);
        assert_eq!((response.status().as_u16(), &said["status"]), (status, &json!(status)));
        assert_eq!(field(response.headers(), "content-type"), Some("application/problem+json"));
        assert_eq!(field(response.headers(), "cache-control"), Some("no-store"));
        assert!(said["detail"].as_str().is_some_and(|detail| detail.ends_with('.')), "{said}");
    }
}
