//! What operators are told: health, readiness, and figures that agree with what was sent.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::client::{Caller, get, post};
use crate::support::{Gateway, passed};
use crate::upstream::Upstream;

/// `prlimit` of util-linux, on a program that runs: how many files it may have open from now on.
fn allow_files(gateway: &Gateway, most: usize) {
    let limit = format!("--nofile={most}:");
    let pid = gateway.pid().to_string();
    assert!(Command::new("prlimit").args(["--pid", &pid, &limit]).status().unwrap().success());
}

#[test]
fn when_files_run_out_operators_are_told_and_clients_wait() {
    let gateway = Gateway::start("limits: { api: { by: ip, rate: 9/min } }\n");
    let from = gateway.said();
    // What is open stays open.
    allow_files(&gateway, 3);
    let mut caller = gateway.caller();
    caller.send(&get("/").bytes());
    let line = gateway.wait_for("warning: new connections wait", from);
    assert!(line.contains("files"), "{line}");
    gateway.wait_for("hint: allow the process more open files", from);
    // It is tried again many times a second, and told once a minute.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(gateway.talk(from).matches("warning:").count(), 1, "{}", gateway.talk(from));
    allow_files(&gateway, 1_000);
    assert_eq!(caller.answer(false).status, 200);
}

#[test]
fn every_figure_agrees_with_what_was_sent() {
    let upstream =
        Upstream::start(|head| if head.contains("/moved") { "Retry-After: 9\r\n".into() } else { String::new() });
    let gateway = Gateway::start(&format!(
        "{}memory: {{ max_keys: 1k }}\n\
         limits:\n  \
           two: {{ match: /two, by: ip, rate: [3/h, 2/d] }}\n  \
           never: {{ match: /never, rate: none }}\n  \
           shy: {{ match: [/two, /shy], rate: 1/h, mode: shadow }}\n",
        upstream.line()
    ));
    let mut caller = gateway.caller();
    assert_eq!(passed(&mut caller, &get("/two"), 5), 2);
    assert_eq!(caller.ask(&get("/never")).status, 403);
    assert_eq!(caller.ask(&get("/shy")).status, 200);
    assert_eq!((0..4).filter(|_| caller.ask(&get("/free")).status == 200).count(), 4);
    assert_eq!(gateway.ask(&get("/%zz")).status, 400);
    assert_eq!(gateway.ask(&post("/a%2fb")).status, 400);

    let metrics = gateway.metrics();
    let expected = [
        ("tope_requests_total{result=\"passed\"}", 7),
        ("tope_requests_total{result=\"refused\"}", 4),
        ("tope_requests_total{result=\"invalid\"}", 2),
        ("tope_upstream_answers_total{code=\"2xx\"}", 7),
        ("tope_upstream_answers_total{code=\"4xx\"}", 0),
        ("tope_upstream_answers_total{code=\"5xx\"}", 0),
        // Two rates of one limit are added up; of a refused request only who refuses counts.
        ("tope_decisions_total{limit=\"two\",result=\"allow\"}", 4),
        ("tope_decisions_total{limit=\"two\",result=\"deny\"}", 3),
        ("tope_decisions_total{limit=\"two\",result=\"never\"}", 0),
        ("tope_decisions_total{limit=\"never\",result=\"never\"}", 1),
        ("tope_decisions_total{limit=\"shy\",result=\"allow\"}", 1),
        ("tope_decisions_total{limit=\"shy\",result=\"shadow_deny\"}", 5),
        ("tope_decisions_total{limit=\"shy\",result=\"deny\"}", 0),
        ("tope_decision_duration_seconds_count", 13),
        ("tope_decision_duration_seconds_bucket{le=\"+Inf\"}", 13),
        ("tope_keys", 3),
        ("tope_keys_max", 1000),
        ("tope_evictions_total", 0),
        ("tope_forgiven_units_total", 0),
        ("tope_overflowed_total", 0),
        ("tope_coarsened_total", 0),
        ("tope_policy_reloads_total{result=\"done\"}", 0),
        ("tope_policy_reloads_total{result=\"refused\"}", 0),
    ];
    for (name, value) in expected {
        assert_eq!(metrics.get(name).map(String::as_str), Some(value.to_string().as_str()), "{name} in {metrics:#?}");
    }
    let version = format!("tope_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    assert_eq!(metrics.get(&version).map(String::as_str), Some("1"));
    let since: u64 = metrics["tope_policy_since_timestamp_seconds"].parse().unwrap();
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    assert!((now - 60..=now + 1).contains(&since), "{since}");
}

/// OpenMetrics 1.0: each family has its HELP and TYPE before its samples, samples are in one block, the end is marked.
#[test]
fn the_exposition_is_what_its_type_says() {
    let gateway = Gateway::start("limits: { api: { by: ip, rate: 1/h } }\nlog: { access: json }\n");
    gateway.ask(&get("/"));
    let answer = Caller::connect(gateway.admin).ask(&get("/metrics"));
    let kind = answer.field("Content-Type").unwrap();
    assert_eq!(kind, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    let text = answer.text();
    assert!(text.ends_with("# EOF\n"), "{text}");
    let (mut types, mut current, mut seen) = (BTreeMap::new(), String::new(), Vec::new());
    let (mut last_bucket, mut unbounded) = (0, false);
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# ") {
            let mut words = rest.split(' ');
            match (words.next(), words.next(), words.next()) {
                (Some("TYPE"), Some(name), Some(kind)) => assert!(types.insert(name, kind).is_none(), "{name} twice"),
                (Some("HELP"), Some(_), Some(_)) | (Some("EOF"), None, None) => {}
                _ => panic!("{line}"),
            }
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
        let bare = name.split('{').next().unwrap();
        let family = ["_total", "_bucket", "_count", "_sum", "_info"].iter().find_map(|end| bare.strip_suffix(end));
        let family = family.filter(|family| types.contains_key(family)).unwrap_or(bare);
        let kind = types.get(family).unwrap_or_else(|| panic!("{line} has no type before it"));
        assert!(*kind != "counter" || bare.ends_with("_total"), "{line}");
        if family != current {
            assert!(!seen.contains(&family.to_owned()), "{family} is in two blocks");
            family.clone_into(&mut current);
            seen.push(current.clone());
        }
        if bare.ends_with("_bucket") {
            let count: u64 = value.parse().unwrap();
            assert!(count >= last_bucket, "buckets add up");
            last_bucket = count;
            unbounded |= name.contains("le=\"+Inf\"");
        }
    }
    assert!(unbounded, "the last bucket has no bound");
    assert_eq!(seen.len(), types.len());
}

#[test]
fn a_draining_gateway_is_alive_and_not_ready() {
    let (arrived, on_arrival) = channel();
    let (go, wait) = channel::<()>();
    let (arrived, wait) = (Mutex::new(arrived), Mutex::new(wait));
    let upstream = Upstream::start(move |_| {
        arrived.lock().unwrap().send(()).unwrap();
        wait.lock().unwrap().recv().unwrap();
        String::new()
    });
    let mut gateway = Gateway::start(&format!("{}limits: {{ api: {{ by: ip, rate: 9/h }} }}\n", upstream.line()));
    let admin = |target: &str| {
        let answer = Caller::connect(gateway.admin).ask(&get(target));
        (answer.status, answer.text().to_owned())
    };
    assert_eq!(admin("/healthz"), (200, "alive\n".into()));
    assert_eq!(admin("/readyz"), (200, "ready\n".into()));
    assert_eq!(admin("/other").0, 404);
    let mut caller = gateway.caller();
    caller.send(&get("/slow").bytes());
    on_arrival.recv().unwrap();
    gateway.signal("TERM");
    while admin("/readyz").0 == 200 {
        std::thread::yield_now();
    }
    assert_eq!(admin("/readyz"), (503, "draining\n".into()));
    assert_eq!(admin("/healthz").0, 200);
    go.send(()).unwrap();
    let answer = caller.answer(false);
    assert_eq!((answer.status, answer.number("RateLimit-Remaining")), (200, Some(8)), "what is in flight ends well");
    assert!(gateway.end().success());
    assert!(std::net::TcpStream::connect(gateway.address).is_err());
}
