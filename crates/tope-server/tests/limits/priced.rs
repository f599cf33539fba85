//! Limits that charge what the answer says: tokens of a language model, a cost in a field.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use crate::client::{Caller, get, post};
use crate::support::{Gateway, LONG};
use crate::upstream::Upstream;

/// An API that sends this head and then these parts, one by one, each after `pause`.
fn streaming(head: &'static str, parts: impl Fn() -> Vec<String> + Send + Sync + 'static, pause: Duration) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let line = format!("upstream: http://{}\n", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let parts = std::sync::Arc::new(parts);
        for stream in listener.incoming().map_while(Result::ok) {
            let parts = std::sync::Arc::clone(&parts);
            std::thread::spawn(move || {
                stream.set_nodelay(true).unwrap();
                let mut reader = BufReader::new(stream);
                loop {
                    let (mut asked, mut length) = (String::new(), 0);
                    while !asked.ends_with("\r\n\r\n") {
                        let from = asked.len();
                        if !matches!(reader.read_line(&mut asked), Ok(read) if read > 0) {
                            return;
                        }
                        let field = asked[from..].to_ascii_lowercase();
                        if let Some(value) = field.strip_prefix("content-length:") {
                            length = value.trim().parse().unwrap();
                        }
                    }
                    std::io::copy(&mut std::io::Read::take(&mut reader, length), &mut std::io::sink()).unwrap();
                    let stream = reader.get_mut();
                    if write!(stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{head}\r\n").is_err() {
                        return;
                    }
                    for part in parts() {
                        if write!(stream, "{:x}\r\n{part}\r\n", part.len()).is_err() {
                            return;
                        }
                        std::thread::sleep(pause);
                    }
                    if stream.write_all(b"0\r\n\r\n").is_err() {
                        return;
                    }
                }
            });
        }
    });
    line
}

const JSON: &str = "Content-Type: application/json\r\n";
const EVENTS: &str = "Content-Type: text/event-stream\r\n";
const TOKENS: &str = "limits: { tokens: { match: POST /v1/chat, by: ip, rate: 100/min, reserve: 58, charge: json usage.total_tokens } }\n";

#[test]
fn of_five_at_once_one_is_admitted_and_its_debt_is_paid_back_at_the_rate() {
    let upstream =
        streaming(JSON, || vec!["{\"usage\":{\"total_".into(), "tokens\":175}}".into()], Duration::from_millis(50));
    let gateway = Gateway::start(&format!("{upstream}{TOKENS}"));
    let mut callers: Vec<Caller> = (0..5).map(|_| gateway.caller()).collect();
    for caller in &mut callers {
        caller.send(&post("/v1/chat").bytes());
    }
    let mut statuses: Vec<u16> = callers.iter_mut().map(|caller| caller.answer(false).status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 429, 429, 429, 429]);
    let refused = gateway.ask(&post("/v1/chat"));
    assert_eq!((refused.status, refused.number("RateLimit-Remaining")), (429, Some(0)));
    // 175 used, 42 may be: 133 units of 600 ms, less what has passed since.
    let wait = refused.number("Retry-After").unwrap();
    assert!((77..=80).contains(&wait), "{wait} s");
}

#[test]
fn a_stream_that_is_cut_in_the_middle_is_charged_what_was_seen() {
    let events = || {
        let event = |n: u64| format!("data: {{\"choices\":[],\"usage\":{{\"total_tokens\":{n}}}}}\n\n");
        (1..=10_000).map(event).collect()
    };
    let upstream = streaming(EVENTS, events, Duration::ZERO);
    let policy = TOKENS.replace("100/min", "1M/d").replace("58", "1");
    let gateway = Gateway::start(&format!("{upstream}{policy}log: {{ access: json }}\n"));
    // Whole: the last event says it.
    assert_eq!(gateway.ask(&post("/v1/chat")).status, 200);
    let log = || std::fs::read_to_string(gateway.folder.join("access.log")).unwrap();
    let begun = Instant::now();
    while !log().contains("\"charged\":{\"tokens\":10000}") {
        assert!(begun.elapsed() < LONG, "{}", log());
        std::thread::sleep(Duration::from_millis(5));
    }
    // Cut: somewhere in between, and what the next is told is what was charged.
    let mut caller = gateway.caller();
    caller.send(&post("/v1/chat").bytes());
    let mut reader = BufReader::new(caller.stream());
    let (mut line, mut seen) = (String::new(), 0_u64);
    while seen < 100 {
        line.clear();
        reader.read_line(&mut line).unwrap();
        if let Some((_, number)) = line.split_once("total_tokens\":") {
            seen = number.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().unwrap();
        }
    }
    drop(reader);
    drop(caller);
    let charged = || -> Vec<u64> {
        let text = log();
        let rows = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        rows.filter_map(|row| row["charged"]["tokens"].as_u64()).collect()
    };
    while charged().len() < 2 {
        assert!(begun.elapsed() < LONG, "{}", log());
        std::thread::sleep(Duration::from_millis(5));
    }
    let cut = charged()[1];
    assert!((100..=10_000).contains(&cut), "{cut}");
}

#[test]
fn liars_are_charged_what_was_held_and_counted() {
    let turn = std::sync::atomic::AtomicUsize::new(0);
    let upstream = Upstream::answering(move |_| {
        let costs = ["X-Cost: -5\r\n", "X-Cost: 1e99\r\n", "X-Cost: text\r\n", "", "X-Cost: 7\r\n"];
        (200, costs[turn.fetch_add(1, std::sync::atomic::Ordering::SeqCst) % costs.len()].to_owned())
    });
    let policy = "limits: { api: { by: ip, rate: 1000/d, reserve: 100, charge: header X-Cost } }\n";
    let gateway = Gateway::start(&format!("{}{policy}", upstream.line()));
    for left in [900, 800, 700, 600, 593] {
        let answer = gateway.ask(&get("/"));
        assert_eq!((answer.status, answer.number("RateLimit-Remaining")), (200, Some(left)));
        assert_eq!(answer.field("X-Cost"), None, "it is ours");
    }
    let unpriced =
        |reason| gateway.metric(&format!("tope_unpriced_answers_total{{limit=\"api\",reason=\"{reason}\"}}"));
    assert_eq!((unpriced("unreadable"), unpriced("absent")), (3, 1));
}

#[test]
fn what_the_request_asks_for_is_held_meanwhile() {
    let upstream = Upstream::answering(|head| {
        let length =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned));
        (200, format!("X-Length: {}\r\n", length.unwrap_or_default()))
    });
    let policy = TOKENS.replace("58", "json max_tokens or 10").replace("100/min", "1000/d");
    let gateway = Gateway::start(&format!("{}{policy}", upstream.line()));
    let ask = |body: &str| {
        let answer = gateway.ask(&post("/v1/chat").with("Content-Type", "application/json").body(body.as_bytes()));
        (answer.status, answer.number("RateLimit-Remaining").unwrap(), answer.number("X-Length"))
    };
    let body = "{\"messages\":[],\"max_tokens\":300}";
    assert_eq!(ask(body), (200, 700, Some(body.len() as u64)));
    let long = format!("{{\"max_tokens\":200,\"prompt\":\"{}\"}}", "x".repeat(200_000));
    assert_eq!(ask(&long), (200, 500, Some(long.len() as u64)));
    assert_eq!(ask("{}").1, 490);
    assert_eq!(ask("{\"max_tokens\":1001}").0, 403);
    assert_eq!(ask("{\"max_tokens\":500}").0, 429);
}

/// Nothing waits for what is read as it passes: each part is with the client before the next is made.
#[test]
fn parts_pass_when_they_come() {
    let upstream =
        streaming(EVENTS, || vec!["data: {\"usage\":{\"total_tokens\":1}}\n\n".into(); 3], Duration::from_millis(100));
    let gateway = Gateway::start(&format!("{upstream}{TOKENS}"));
    let mut caller = gateway.caller();
    let begun = Instant::now();
    caller.send(&post("/v1/chat").bytes());
    let (mut reader, mut line, mut seen) = (BufReader::new(caller.stream()), String::new(), Vec::new());
    while seen.len() < 3 {
        line.clear();
        reader.read_line(&mut line).unwrap();
        if line.starts_with("data:") {
            seen.push(begun.elapsed());
        }
    }
    assert!(seen[0] + Duration::from_millis(150) < seen[2], "{seen:?}");
}
