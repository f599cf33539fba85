//! The numbers are the numbers, whoever else is asking; and a refused request costs the upstream nothing.

use std::io::Write;

use crate::client::{Caller, get, post};
use crate::support::Gateway;
use crate::upstream::Upstream;

const CONNECTIONS: usize = 250;
const EACH: usize = 20;

/// 5,000 requests, `CONNECTIONS` of them at any time, on two workers.
fn five_thousand(a: &str, b: &str) {
    let upstream = Upstream::saying("");
    let policy = format!("{}limits:\n  a: {{ rate: {a} }}\n  b: {{ match: /b/**, rate: {b} }}\n", upstream.line());
    let gateway = Gateway::start(&policy);
    let mut callers: Vec<Caller> = (0..CONNECTIONS).map(|_| gateway.caller()).collect();
    let batch = get("/b/x").bytes().repeat(EACH);
    for caller in &mut callers {
        caller.send(&batch);
    }
    let answers = callers.iter_mut().flat_map(|caller| (0..EACH).map(|_| caller.answer(false).status));
    let answers: Vec<u16> = answers.collect();
    let count = |status| answers.iter().filter(|one| **one == status).count();
    assert_eq!((count(200), count(429)), (700, 4300), "{a}, {b}");
    assert_eq!(upstream.requests(), 700, "{a}, {b}: by the upstream's own count");
    // A request that only A applies to takes one of the 300 that are left.
    let left = gateway.ask(&get("/a"));
    assert_eq!((left.status, left.number("RateLimit-Remaining")), (200, Some(299)), "{a}, {b}");
    assert_eq!(gateway.metric("tope_requests_total{result=\"refused\"}"), 4300);
    assert_eq!(gateway.metric("tope_decisions_total{limit=\"a\",result=\"allow\"}"), 701);
    assert_eq!(gateway.metric("tope_decisions_total{limit=\"b\",result=\"deny\"}"), 4300);
}

#[test]
fn exactly_700_of_5000_pass_a_token_bucket() {
    five_thousand("1000/d", "700/d");
}

/// Windows of 300 days, for a test must not fail at midnight.
#[test]
fn exactly_700_of_5000_pass_a_fixed_window() {
    five_thousand("1000/300d fixed-window", "700/300d fixed-window");
}

#[test]
fn exactly_700_of_5000_pass_a_sliding_window() {
    five_thousand("1000/300d sliding-window", "700/300d sliding-window");
}

#[test]
fn exactly_700_of_5000_pass_a_sliding_log() {
    five_thousand("1000/d sliding-log", "700/d sliding-log");
}

/// A policy that is read again in the middle is no chance to get more, nor is another that gives the same.
#[test]
fn exactly_700_of_5000_pass_while_the_policy_is_reloaded() {
    let upstream = Upstream::saying("");
    let limits = "limits:\n  a: { rate: 1000/d }\n  b: { match: /b/**, rate: 700/d }\n";
    let policy = format!("{}{limits}", upstream.line());
    let gateway = Gateway::start(&policy);
    let mut callers: Vec<Caller> = (0..CONNECTIONS).map(|_| gateway.caller()).collect();
    let batch = get("/b/x").bytes().repeat(EACH);
    let answers = std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            for caller in &mut callers {
                caller.send(&batch);
            }
            callers
                .iter_mut()
                .map(|caller| (0..EACH).filter(|_| caller.answer(false).status == 200).count())
                .sum::<usize>()
        });
        let mut reloads = 0;
        while !asking.is_finished() || reloads < 5 {
            gateway.reload(&format!("{policy}  c{reloads}: {{ match: /c, rate: 1/h }}\n"));
            reloads += 1;
        }
        asking.join().unwrap()
    });
    assert_eq!((answers, upstream.requests()), (700, 700));
    let left = gateway.ask(&get("/a"));
    assert_eq!((left.status, left.number("RateLimit-Remaining")), (200, Some(299)));
}

#[test]
fn a_refused_upload_reaches_nobody_and_is_told_why() {
    const LENGTH: usize = 100 << 20;
    let upstream = Upstream::saying("");
    let policy = format!("{}limits: {{ uploads: {{ match: POST /up, rate: 1/h }} }}\n", upstream.line());
    let gateway = Gateway::start(&policy);
    assert_eq!(gateway.ask(&post("/up").body(b"small")).status, 200);
    let seen = upstream.seen();
    assert_eq!((seen.0, seen.1), (1, 1));

    let head = post("/up").with("Content-Length", &LENGTH.to_string());
    let mut caller = gateway.caller();
    caller.send(&head.bytes());
    let mut stream = caller.stream().try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        let block = vec![b'x'; 64 << 10];
        // The gateway stops listening at some point; what matters is that the answer is there by then.
        (0..LENGTH / block.len()).take_while(|_| stream.write_all(&block).is_ok()).count() * block.len()
    });
    assert_eq!(caller.answer(false).status, 429);
    let sent = sending.join().unwrap();
    assert!(sent < LENGTH, "all of it was read");
    assert_eq!(upstream.seen(), seen, "no byte and no connection more");

    let mut patient = gateway.caller();
    patient.send(&head.with("Expect", "100-continue").bytes());
    assert_eq!(patient.answer(false).status, 429, "and no 100 Continue before it");
    assert_eq!(upstream.seen(), seen);
}
