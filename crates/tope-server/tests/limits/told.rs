//! What a client is told while it is within its budget, when it is not, and that waiting as told is right.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client::get;
use crate::support::Gateway;

#[test]
fn within_the_budget_all_five_fields_are_there() {
    let gateway = Gateway::start("limits: { api: { by: ip, rate: 2/min burst 3 } }\n");
    let mut caller = gateway.caller();
    let answer = caller.ask(&get("/a"));
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.limit_fields(),
        ["ratelimit", "ratelimit-limit", "ratelimit-policy", "ratelimit-remaining", "ratelimit-reset"]
    );
    assert_eq!(answer.number("RateLimit-Limit"), Some(3));
    assert_eq!(answer.number("RateLimit-Remaining"), Some(2));
    assert_eq!(answer.number("RateLimit-Reset"), Some(30), "until the budget is full again");
    assert_eq!(answer.field("RateLimit-Policy"), Some("\"api\";q=3;w=90"));
    assert!(answer.field("RateLimit").unwrap().starts_with("\"api\";r=2;t="), "{answer:?}");
    let left = (0..2).map(|_| caller.ask(&get("/a")).number("RateLimit-Remaining").unwrap());
    assert_eq!(left.collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn above_the_budget_it_is_429_with_all_that_a_client_needs() {
    let gateway = Gateway::start("limits: { api: { by: ip, rate: 1/h } }\nrefusal: { docs: \"https://e.org/l\" }\n");
    let mut caller = gateway.caller();
    assert_eq!(caller.ask(&get("/a")).status, 200);
    let refused = caller.ask(&get("/secret-path?key=secret"));
    assert_eq!(refused.status, 429);
    let wait = refused.number("Retry-After").unwrap();
    assert!((3595..=3600).contains(&wait), "{wait}");
    assert_eq!(refused.number("RateLimit-Reset"), Some(wait));
    assert_eq!(refused.number("RateLimit-Remaining"), Some(0));
    assert_eq!(refused.number("RateLimit-Limit"), Some(1));
    assert_eq!(refused.field("Content-Type"), Some("application/problem+json"));
    assert_eq!(refused.field("Cache-Control"), Some("no-store"));
    assert_eq!(refused.field("Link"), Some("<https://e.org/l>; rel=\"help\""));
    let body = refused.json();
    assert_eq!(body["type"], "https://iana.org/assignments/http-problem-types#quota-exceeded");
    assert_eq!((&body["status"], &body["violated-policies"]), (&429.into(), &serde_json::json!(["api"])));
    assert!(!refused.text().contains("secret"), "{}", refused.text());
}

/// The machine may be slow between our clock and the gateway's: the access log has the moments of the decisions, and
/// each verdict must be the one of that moment, to the microsecond.
#[test]
fn waiting_as_told_is_enough_and_a_second_less_is_not() {
    const PERIOD_US: i64 = 3_000_000;
    let mut gateway = Gateway::start("limits: { api: { by: ip, rate: 1/3s } }\nlog: { access: json }\n");
    let mut caller = gateway.caller();
    let mut answers = vec![caller.ask(&get("/a")), caller.ask(&get("/a"))];
    let (told, refused_at) = (answers[1].number("Retry-After").unwrap(), Instant::now());
    assert_eq!((answers[1].status, told), (429, 3));
    for wait in [told - 1, told] {
        std::thread::sleep((refused_at + Duration::from_secs(wait)).saturating_duration_since(Instant::now()));
        answers.push(caller.ask(&get("/a")));
    }
    assert_eq!(answers.last().unwrap().status, 200, "having waited exactly as told");
    assert!(gateway.stop().success());

    let log = std::fs::read_to_string(gateway.folder.join("access.log")).unwrap();
    let mut admitted_us = 0;
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), answers.len());
    let mut refusals = 0;
    for (line, answer) in lines.iter().zip(&answers) {
        let time: jiff::Timestamp = line["time"].as_str().unwrap().parse().unwrap();
        let wait_us = admitted_us + PERIOD_US - time.as_microsecond();
        if wait_us <= 0 {
            assert_eq!((answer.status, &line["verdict"]), (200, &"allow".into()));
            admitted_us = time.as_microsecond();
        } else {
            assert_eq!((answer.status, &line["verdict"]), (429, &"deny".into()));
            let seconds = u64::try_from(wait_us).unwrap().div_ceil(1_000_000);
            assert_eq!(answer.number("Retry-After"), Some(seconds), "{wait_us} us");
            refusals += 1;
        }
    }
    assert!(refusals > 0);
}
