//! h2load in front: every request is answered, and the limit is met to the unit.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::{Process, Room, Tope, free_port, nginx};

const REQUESTS: u64 = 20_000;
const LIMIT: u64 = 7_000;

/// A budget that gets nothing back while a test runs, and one that has nothing to say.
fn policy(port: u16, other: &str) -> String {
    format!(
        "upstream: http://127.0.0.1:{port}\n\
         limits: {{ few: {{ match: /few, by: ip, rate: 1/d burst {LIMIT} }}, other: {{ match: /other, by: ip, rate: {other} }} }}\n"
    )
}

fn h2load(url: &str) -> Child {
    let mut command = Command::new("h2load");
    command.args(["-n", &REQUESTS.to_string(), "-c", "4", "-m", "16", url]).stdout(Stdio::piped());
    command.spawn().expect("this test needs h2load: apt-get install nghttp2-client")
}

/// What h2load counted: succeeded with 2xx, with 4xx.
fn counted(h2load: Child) -> (u64, u64) {
    let out = h2load.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let line = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{text}"));
    let number = |line: &str, word: &str| -> u64 {
        let before = line.split([',', ':']).find_map(|part| part.trim().strip_suffix(word));
        before.and_then(|number| number.trim().parse().ok()).unwrap_or_else(|| panic!("{word} in {line}"))
    };
    let requests = line("requests:");
    assert_eq!((number(requests, "done"), number(requests, "errored"), number(requests, "timeout")), (REQUESTS, 0, 0));
    let codes = line("status codes:");
    assert_eq!((number(codes, "3xx"), number(codes, "5xx")), (0, 0), "{text}");
    (number(codes, "2xx"), number(codes, "4xx"))
}

fn upstream(room: &Room) -> (u16, Process) {
    let port = free_port();
    let nginx = nginx(room, port, "location / { return 200 \"yes\\n\"; }");
    (port, nginx)
}

/// Requests that nginx itself has counted.
fn reached(room: &Room, port: u16) -> u64 {
    room.read(&format!("{port}.access")).lines().count() as u64
}

fn decisions(tope: &Tope) -> (u64, u64) {
    let of = |result: &str| tope.metric(&format!("tope_decisions_total{{limit=\"few\",result=\"{result}\"}}"));
    (of("allow"), of("deny"))
}

#[test]
fn h2load_gets_the_limit_to_the_unit() {
    let room = Room::new();
    let (port, _nginx) = upstream(&room);
    let tope = Tope::start(&room, &policy(port, "5/min"));
    let (passed, refused) = counted(h2load(&tope.url("/few")));
    assert_eq!((passed, refused), (LIMIT, REQUESTS - LIMIT));
    assert_eq!(decisions(&tope), (LIMIT, REQUESTS - LIMIT));
    assert_eq!(reached(&room, port), LIMIT, "what was refused never reached nginx");
}

#[test]
fn a_reload_under_load_loses_no_request_and_no_count() {
    let room = Room::new();
    let (port, _nginx) = upstream(&room);
    let mut tope = Tope::start(&room, &policy(port, "5/min"));
    let mut reloads = 0;
    let mut load = h2load(&tope.url("/few"));
    while load.try_wait().expect("a child").is_none() {
        // An unrelated limit changes each time, so that the policy in force is another one.
        room.write("policy.yaml", Tope::policy(&policy(port, &format!("{}/min", 6 + reloads % 2))));
        tope.process.signal("HUP");
        reloads += 1;
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(reloads >= 5, "only {reloads} reloads fell into the run");
    tope.hears("policy.yaml is in force");
    assert_eq!(counted(load), (LIMIT, REQUESTS - LIMIT));
    assert_eq!(decisions(&tope), (LIMIT, REQUESTS - LIMIT));
    assert_eq!(reached(&room, port), LIMIT);
    let done = tope.metric("tope_policy_reloads_total{result=\"done\"}");
    println!("{done} reloads during {REQUESTS} requests");
    assert!(done >= 5, "{}", tope.said());
}
