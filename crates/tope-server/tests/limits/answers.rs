//! Limits that wait for the answer: a login of which only failures count.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::client::{Answer, Ask, Caller, get, post};
use crate::support::{Gateway, LONG};
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

/// An API that counts how many requests are with it, and how many were at most.
fn crowded(takes_us: impl Fn(usize) -> u64 + Send + Sync + 'static) -> (Upstream, Arc<AtomicUsize>) {
    let (now, most) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    let upstream = Upstream::answering(move |_| {
        let inside = now.fetch_add(1, SeqCst) + 1;
        let before = seen.fetch_max(inside, SeqCst);
        std::thread::sleep(Duration::from_micros(takes_us(before.max(inside))));
        now.fetch_sub(1, SeqCst);
        (200, String::new())
    });
    (upstream, most)
}

const UPLOADS: &str = "limits: { uploads: { match: POST /files, by: ip, rate: 4 at once, hold: 10min } }\n";

#[test]
fn four_at_once_are_never_five() {
    let turn = AtomicUsize::new(0);
    let (upstream, most) = crowded(move |_| (turn.fetch_add(1, SeqCst) as u64 * 7919) % 3_000);
    let gateway = Gateway::start(&format!("{}{UPLOADS}", upstream.line()));
    let ask = |leaves: bool| {
        std::thread::scope(|scope| {
            for thread in 0..12 {
                let gateway = &gateway;
                scope.spawn(move || {
                    let (mut caller, mut passed, mut turn) = (gateway.caller(), 0, thread);
                    while passed < 25 {
                        turn += 1;
                        if leaves && turn % 3 == 0 {
                            caller.send(&post("/files").bytes());
                            caller = gateway.caller();
                            continue;
                        }
                        let answer = caller.ask(&post("/files").body(b"x"));
                        assert!(matches!(answer.status, 200 | 429), "{}", answer.status);
                        passed += u32::from(answer.status == 200);
                    }
                });
            }
        });
    };
    ask(false);
    assert_eq!((most.load(SeqCst), upstream.requests()), (4, 300));
    // Of a client that leaves its upstream learns later than we do, and goes on for a while; but no place is lost.
    ask(true);
    let (mut caller, begun) = (gateway.caller(), Instant::now());
    while caller.ask(&post("/files")).number("RateLimit-Remaining") != Some(3) {
        assert!(begun.elapsed() < Duration::from_secs(5), "a place is lost");
    }
}

#[test]
fn a_place_has_its_fields_and_a_refusal_its_words() {
    let (upstream, _) = crowded(|_| 300_000);
    let gateway = Gateway::start(&format!("{}{UPLOADS}", upstream.line()));
    let mut callers: Vec<Caller> = (0..5).map(|_| gateway.caller()).collect();
    for caller in &mut callers {
        caller.send(&post("/files").bytes());
    }
    let mut answers: Vec<_> = callers.iter_mut().map(|caller| caller.answer(false)).collect();
    answers.sort_by_key(|answer| answer.status);
    let refused = answers.pop().unwrap();
    assert!(answers.iter().all(|answer| answer.status == 200));
    let policy = "\"uploads\";q=4;qu=\"concurrent-requests\"";
    let told = |answer: &Answer| {
        let field = |name| answer.field(name).map(str::to_owned);
        (field("RateLimit"), field("RateLimit-Policy"), field("Retry-After"))
    };
    assert_eq!(refused.status, 429);
    assert_eq!(told(&refused), (Some("\"uploads\";r=0".into()), Some(policy.into()), Some("1".into())));
    let mut left: Vec<_> = answers.iter().map(|answer| told(answer).0.unwrap()).collect();
    left.sort();
    assert_eq!(left, [0, 1, 2, 3].map(|left| format!("\"uploads\";r={left}")));
    assert_eq!(refused.json()["violated-policies"], serde_json::json!(["uploads"]));
    let detail = "As many requests as the limit 'uploads' allows at once are under way. Try again in 1 second.";
    assert_eq!(refused.json()["detail"], detail);
}

/// A client that vanishes without a word is noticed when its connection ends, and its place is free.
#[test]
fn a_killed_client_frees_its_place() {
    let (upstream, _) = crowded(|_| 60_000_000);
    let policy = UPLOADS.replace("4 at once", "1 at once");
    let gateway = Gateway::start(&format!("{}{policy}", upstream.line()));
    let mut client = std::process::Command::new("curl")
        .args(["-sd", "x", &format!("http://{}/files", gateway.address)])
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while upstream.requests() == 0 {
        assert!(begun.elapsed() < LONG);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(gateway.ask(&post("/files")).status, 429);
    client.kill().unwrap();
    client.wait().unwrap();
    loop {
        let mut caller = gateway.caller();
        caller.send(&post("/files").bytes());
        caller.stream().set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        if matches!(caller.stream().peek(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock) {
            return; // it is with the upstream
        }
        assert!(begun.elapsed() < LONG, "the place is lost");
    }
}

/// What follows a switch of protocols is in flight until it ends.
#[test]
fn an_open_websocket_has_its_place() {
    let switched = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    let upstream = Upstream::answering(move |_| (101, switched.to_owned()));
    let policy = "limits: { chats: { match: GET /chat, by: ip, rate: 1 at once } }\n";
    let gateway = Gateway::start(&format!("{}{policy}", upstream.line()));
    let chat = get("/chat").with("Connection", "Upgrade").with("Upgrade", "websocket");
    let mut open = gateway.caller();
    assert_eq!((open.ask(&chat).status, gateway.ask(&chat).status), (101, 429));
    drop(open);
    let begun = Instant::now();
    while gateway.ask(&chat).status == 429 {
        assert!(begun.elapsed() < LONG, "its place is lost");
    }
}
