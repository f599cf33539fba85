//! Limits that wait for the answer: a login of which only failures count.

use std::time::Duration;

use crate::client::{Ask, Caller, post};
use crate::support::Gateway;
use crate::upstream::Upstream;

const LOGIN: &str = "limits: { login: { match: POST /login, by: ip, rate: 5/d, count: 'status 401, 403' } }\n";

/// An API that takes its time to know a password.
fn logins() -> Upstream {
    Upstream::answering(|head| {
        std::thread::sleep(Duration::from_millis(50));
        let right = head.to_ascii_lowercase().contains("\r\nx-password: right\r\n");
        (if right { 204 } else { 401 }, String::new())
    })
}

fn login(password: &str) -> Ask {
    post("/login").with("X-Password", password)
}

/// All at one moment, each over its own connection.
fn at_once(gateway: &Gateway, times: usize, password: &str) -> Vec<u16> {
    let mut callers: Vec<Caller> = (0..times).map(|_| gateway.caller()).collect();
    for caller in &mut callers {
        caller.send(&login(password).bytes());
    }
    callers.iter_mut().map(|caller| caller.answer(false).status).collect()
}

#[test]
fn parallel_guesses_gain_nothing() {
    let upstream = logins();
    let gateway = Gateway::start(&format!("{}{LOGIN}", upstream.line()));
    let statuses = at_once(&gateway, 20, "wrong");
    let count = |status| statuses.iter().filter(|one| **one == status).count();
    assert_eq!((count(401), count(429), upstream.requests()), (5, 15, 5));
    assert_eq!(gateway.ask(&login("right")).status, 429);
    assert_eq!(gateway.metric("tope_requests_total{result=\"refused\"}"), 16);
}

#[test]
fn whoever_knows_the_password_is_not_limited() {
    let upstream = logins();
    let gateway = Gateway::start(&format!("{}{LOGIN}", upstream.line()));
    assert_eq!(at_once(&gateway, 30, "right"), [204; 30]);
    assert_eq!(upstream.requests(), 30);
    let next = gateway.ask(&login("right"));
    assert_eq!((next.status, next.number("RateLimit-Remaining")), (204, Some(5)));
}

#[test]
fn right_and_wrong_mixed_count_the_wrong() {
    let gateway = Gateway::start(&format!("{}{}", logins().line(), LOGIN.replace("5/d", "12/d")));
    let (mut caller, mut wrong, mut random) = (gateway.caller(), 0, 0x9e37_79b9_7f4a_7c15_u64);
    while wrong < 12 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let right = random >> 63 == 0;
        wrong += u64::from(!right);
        let answer = caller.ask(&login(if right { "right" } else { "wrong" }));
        let expected = (if right { 204 } else { 401 }, Some(12 - wrong));
        assert_eq!((answer.status, answer.number("RateLimit-Remaining")), expected);
    }
    assert_eq!(caller.ask(&login("right")).status, 429);
}

/// What the gateway answers itself, because the upstream did not, is no failure to log in.
#[test]
fn an_upstream_that_is_away_counts_nothing() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let policy = LOGIN.replace("status 401, 403", "not status 2xx");
    let gateway = Gateway::start(&format!("upstream: http://{free}\n{policy}"));
    for _ in 0..8 {
        let answer = gateway.ask(&login("wrong"));
        assert_eq!((answer.status, answer.number("RateLimit-Remaining")), (502, Some(5)));
    }
}
