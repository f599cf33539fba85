//! Policies through the real pass: what a caller gets who looks for a way around them.

#![allow(clippy::unwrap_used, reason = "a test that unwraps nothing fails")]

use std::net::IpAddr;

use http::HeaderMap;
use tope::facts::Client;
use tope::policy::read;
use tope::store::Answer;
use tope::store::memory::Memory;
use tope::{Facts, Limiter};

const NOW_US: u64 = 1_704_067_200_000_000;

fn limiter(text: &str) -> Limiter<Memory> {
    let policy = read(text, "policy.yaml", &()).unwrap_or_else(|errors| panic!("{errors}"));
    Limiter::new(Memory::new(10_000).unwrap(), policy).unwrap()
}

fn facts<'a>(method: &'a str, path: &'a str, headers: &'a HeaderMap, client: Client<'a>) -> Facts<'a> {
    let address: IpAddr = [192, 0, 2, 1].into();
    let (host, address) = ("", Some(address));
    Facts {
        method,
        path,
        other_path: None,
        host,
        query: None,
        headers,
        address,
        client,
        preflight: false,
        body: None,
        cost: None,
    }
}

fn passes(limiter: &Limiter<Memory>, facts: &Facts<'_>) -> bool {
    match limiter.judge(limiter.policy(), facts, NOW_US) {
        Answer::Ready(judgement) => judgement.unwrap().allowed(),
        Answer::Pending(_) => panic!("the memory store answers at once"),
    }
}

#[test]
fn alternating_plans_does_not_empty_the_bucket_of_an_address() {
    let rates = ["5/h", "5/h sliding-log", "6/h", "5/h fixed-window"];
    for (rate, by) in rates.iter().flat_map(|rate| ["ip", "all", "[ip, route]"].map(|by| (rate, by))) {
        let limiter = limiter(&format!(
            "plans: {{ anon: {{ login: 5/h }}, pro: {{ login: {rate} }} }}\n\
             limits: {{ login: {{ match: POST /login, by: {by}, rate: plan.login }} }}"
        ));
        let headers = HeaderMap::new();
        let clients = [Client { name: None, plan: 0 }, Client { name: Some("acme"), plan: 1 }];
        let calls = clients.iter().cycle().take(100);
        let passed = calls.filter(|client| passes(&limiter, &facts("POST", "/login", &headers, **client))).count();
        assert!((10..=11).contains(&passed), "{rate} by {by}: {passed} of 100 pass");
    }
}

#[test]
fn a_limit_on_one_bucket_of_a_client_is_not_divided_by_plans() {
    let policy = read(
        "plans: { a: { r: 5/h }, b: { r: 6/h } }\n\
         limits:\n  c: { by: client, rate: plan.r }\n  p: { by: [ip, plan], rate: plan.r }\n  i: { by: ip, rate: 5/h }\n  \
         d: { by: ip, rate: plan.r }",
        "policy.yaml",
        &(),
    )
    .unwrap();
    let divided: Vec<bool> = policy.limits().iter().map(tope::policy::Limit::divides_by_plan).collect();
    assert_eq!(divided, [false, false, false, true]);
}

#[test]
fn a_method_in_any_case_is_counted() {
    let limiter = limiter("limits: { login: { match: POST /login, by: ip, rate: 1/h } }");
    let headers = HeaderMap::new();
    let nobody = Client { name: None, plan: 0 };
    let ask = |method| passes(&limiter, &facts(method, "/login", &headers, nobody));
    assert_eq!(["POST", "post", "Post", "pOST"].map(ask), [true, false, false, false]);
    assert!(ask("GET"));
}

#[test]
fn head_in_any_case_follows_get() {
    let limiter = limiter("limits: { a: { match: GET /a, by: ip, rate: 1/h } }");
    let headers = HeaderMap::new();
    let ask = |method| passes(&limiter, &facts(method, "/a", &headers, Client { name: None, plan: 0 }));
    assert_eq!(["get", "head", "HEAD", "GET"].map(ask), [true, false, false, false]);
}

#[test]
fn a_forged_field_does_not_borrow_the_exemption_of_a_proxy() {
    let limiter =
        limiter("address: { trust: 10.0.0.0/8 }\nexempt: ip 10.0.0.0/8\nlimits: { a: { by: ip, rate: 1/h } }");
    let policy = limiter.policy();
    let proxy: IpAddr = [10, 0, 0, 1].into();
    let pays = |fields: &[(&'static str, &'static str)]| {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, value.parse().unwrap());
        }
        let address = Some(tope::http::client_addr::client_address(proxy, &headers, &policy.address));
        let nobody = Client { name: None, plan: 0 };
        !policy.charges(&Facts { address, ..facts("GET", "/", &headers, nobody) }).is_empty()
    };
    assert!(pays(&[("x-forwarded-for", "203.0.113.7"), ("forwarded", "for=1.2.3.4")]));
    assert!(pays(&[("x-forwarded-for", "203.0.113.7"), ("forwarded", "x")]));
    assert!(pays(&[("x-forwarded-for", "unknown")]));
    assert!(pays(&[("x-forwarded-for", "203.0.113.7")]));
    assert!(!pays(&[]), "the proxy itself");
    assert!(!pays(&[("x-forwarded-for", "10.1.2.3")]), "a service behind it");
}

#[test]
fn a_policy_says_which_fields_only_a_trusted_peer_may_send() {
    let names = |clients: &str| {
        let text = format!(
            "address: {{ trust: 10.0.0.0/8 }}\nclients: {{ {clients} }}\nplans: {{ a: {{}} }}\nlimits: {{ a: {{ by: ip, rate: 1/s }} }}"
        );
        read(&text, "p", &()).unwrap_or_else(|errors| panic!("{errors}")).stripped().to_vec()
    };
    assert_eq!(names("trusted_header: X-User"), ["x-user"]);
    assert!(names("header: X-Api-Key, keys: { demo-a: { name: a, plan: a } }").is_empty());
}

fn warnings(text: &str) -> Vec<String> {
    let policy = read(text, "p", &()).unwrap_or_else(|errors| panic!("{errors}"));
    policy.warnings().iter().map(|warning| warning.message().to_owned()).collect()
}

#[test]
fn preflights_that_no_limit_counts_are_told() {
    let told = |limits: &str| {
        warnings(&format!("plans: {{ a: {{ r: 5/s }} }}\nlimits: {{ {limits} }}"))
            .iter()
            .any(|warning| warning.starts_with("preflights "))
    };
    assert!(told("a: { by: client, rate: plan.r }"));
    assert!(told("a: { match: /a/**, by: client, rate: 5/s }, b: { match: POST /b, by: ip, rate: 5/s }"));
    assert!(told("a: { by: client, rate: 5/s }, b: { by: ip, rate: 5/s, mode: shadow }"));
    assert!(!told("a: { by: client, rate: 5/s }, b: { by: ip, rate: 50/s }"));
    assert!(!told("a: { by: client, rate: 5/s }, b: { match: OPTIONS /**, by: all, rate: 50/s }"));
    assert!(!told("a: { match: POST /a, by: client, rate: 5/s }"));
}

#[test]
fn a_cost_of_nothing_is_told() {
    let told = warnings("limits: { a: { by: ip, rate: 5/s, cost: 0 } }");
    assert!(told.iter().any(|warning| warning.contains("never refuses")), "{told:?}");
    let some = warnings("limits: { a: { by: ip, rate: 5/s, cost: { /a: 0 } } }");
    assert!(!some.iter().any(|warning| warning.contains("never refuses")), "{some:?}");
}
