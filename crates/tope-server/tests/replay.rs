//! `tope replay` through the built program: the oracle's vectors as logs, a real log, our own access log.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

struct Room(TempDir);

impl Room {
    fn new(policy: &str) -> Self {
        let room = Self(tempfile::tempdir().expect("a folder"));
        room.write("policy.yaml", policy);
        room
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).expect("a file");
        path
    }

    fn run(&self, logs: &[&str], more: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tope"));
        command.current_dir(self.0.path()).args(["replay", "policy.yaml"]).args(logs).args(more);
        command.stdin(Stdio::null()).output().expect("the program runs")
    }

    /// Replays; what comes back is the decisions and the summary.
    fn replay(&self, logs: &[&str]) -> (Vec<Value>, Value) {
        let output = self.run(logs, &["--json", "--decisions", "out.jsonl"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let decisions = fs::read_to_string(self.path("out.jsonl")).expect("decisions");
        let json = |line: &str| serde_json::from_str(line).expect("a decision is JSON");
        (decisions.lines().map(json).collect(), json(&String::from_utf8_lossy(&output.stdout)))
    }

    fn refused(&self, logs: &[&str], more: &[&str]) -> String {
        let output = self.run(logs, more);
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
        String::from_utf8(output.stderr).expect("messages are UTF-8")
    }
}

fn vectors(name: &str) -> Vec<Value> {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../tope-core/tests/vectors");
    let folder = std::env::var("TOPE_VECTORS").unwrap_or_else(|_| own.to_owned());
    let text = fs::read_to_string(Path::new(&folder).join(name)).expect("vectors");
    text.lines().map(|line| serde_json::from_str(line).expect("a vector is JSON")).collect()
}

/// A limit of a policy with the numbers of a vector.
fn limit(name: &str, shape: &Value) -> String {
    let (amount, algorithm) = (&shape["limit"], shape["algorithm"].as_str().expect("an algorithm"));
    if algorithm == "calendar" {
        return format!("  {name}: {{ by: ip, rate: {amount}/{} }}\n", shape["unit"].as_str().expect("a unit"));
    }
    let burst = if algorithm == "token-bucket" { format!(", burst: {}", shape["burst"]) } else { String::new() };
    let per = &shape["period_us"];
    format!("  {name}: {{ by: ip, rate: {{ amount: {amount}, per: {per}us, algorithm: {algorithm}{burst} }} }}\n")
}

fn log(steps: &[Value]) -> String {
    let line = |step: &Value| {
        let us = step["at_us"].as_u64().expect("a time");
        let time = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
        format!(r#"{{"time":{time},"ip":"203.0.113.7","method":"GET","path":"/","cost":{}}}"#, step["cost"]) + "\n"
    };
    steps.iter().map(line).collect()
}

fn without_name(mut decision: Value) -> Value {
    decision.as_object_mut().expect("an object").remove("limit");
    decision
}

#[test]
fn single_limits_equal_the_oracle() {
    for name in ["token-bucket", "fixed-window", "sliding-window", "sliding-log", "calendar"] {
        for case in vectors(&format!("{name}.jsonl")) {
            let zone = case["timezone"].as_str().map_or(String::new(), |zone| format!("timezone: {zone}\n"));
            let room = Room::new(&format!("{zone}limits:\n{}", limit("one", &case)));
            let steps = case["steps"].as_array().expect("steps");
            room.write("log", log(steps));
            let (decisions, _) = room.replay(&["log"]);
            assert_eq!(decisions.len(), steps.len());
            for (line, (decision, step)) in (1..).zip(decisions.into_iter().zip(steps)) {
                let mut expected = step.clone();
                let fields = expected.as_object_mut().expect("an object");
                fields.remove("at_us");
                fields.remove("cost");
                assert_eq!(decision["line"], line);
                assert_eq!(without_name(decision["limits"][0].clone()), expected, "{name}, {case:.0}, line {line}");
            }
        }
    }
}

#[test]
fn requests_under_several_limits_equal_the_oracle() {
    for case in vectors("request.jsonl") {
        let shapes = case["limits"].as_array().expect("limits");
        let limits: String = shapes.iter().map(|shape| limit(shape["name"].as_str().expect("a name"), shape)).collect();
        let room = Room::new(&format!("limits:\n{limits}"));
        let steps = case["steps"].as_array().expect("steps");
        room.write("log", log(steps));
        let (decisions, _) = room.replay(&["log"]);
        for (decision, step) in decisions.iter().zip(steps) {
            assert_eq!(decision["allowed"], step["allowed"]);
            assert_eq!(decision["limits"], step["limits"]);
            let wait = |limit: &&Value| limit["retry_us"].as_u64().unwrap_or(u64::MAX);
            let limits = step["limits"].as_array().expect("limits").iter();
            // Of equal waits the first.
            let longest = limits.filter(|limit| limit["allowed"] == false).rev().max_by_key(wait);
            assert_eq!(decision["refused_by"], longest.map_or(Value::Null, |limit| limit["limit"].clone()));
        }
    }
}

const SITE: &str = "limits:\n  pages: { by: ip, rate: 20/min }\n  all: { rate: 100/min }\n";

#[test]
fn a_real_log_replays() {
    let room = Room::new(SITE);
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/site.combined.log.gz");
    let (decisions, summary) = room.replay(&[data]);
    assert_eq!((decisions.len(), &summary["requests"]), (999, &Value::from(999)));
    assert_eq!((&summary["broken"], &summary["late"]), (&1.into(), &947.into()));
    assert_eq!(summary["first_broken"]["at"]["line"], 499);
    assert_eq!(summary["first_broken"]["why"], "the line ends inside a quoted field");
    assert_eq!((&decisions[497]["line"], &decisions[498]["line"]), (&498.into(), &500.into()));
    assert_eq!(summary["logs"][0]["format"], "combined");

    let text = room.run(&[data], &[]);
    let text = String::from_utf8(text.stdout).expect("a summary is UTF-8");
    assert!(text.contains("note: 947 lines are older than one before"), "{text}");
    assert!(!text.contains('\u{1b}'), "no colours where there is no terminal");
}

#[test]
fn our_own_log_gives_the_same_decisions_line_for_line() {
    let room = Room::new(
        "clients: { header: X-Api-Key, keys: { k: { name: acme, plan: pro } } }\n\
         plans: { free: { api: 5/min }, pro: { api: 20/min } }\n\
         limits: { api: { match: /api/**, by: client, rate: plan.api } }\n",
    );
    let mut json = String::new();
    let mut ours = Vec::new();
    for number in 0..600_u64 {
        let us = 1_790_000_000_000_000 + number * 1_234_567;
        let time = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
        let known = number % 3 == 0;
        let (key, client) =
            if known { (r#"{"X-Api-Key":"k"}"#, r#""acme","plan":"pro""#) } else { ("{}", r#"null,"plan":"free""#) };
        json.extend([r#"{"time":"#, &time, r#","ip":"::1","path":"/api/a?b","headers":"#, key, "}\n"]);
        ours.push(format!(
            "{{\"time\":\"{time}\",\"seq\":{},\"method\":\"GET\",\"path\":\"/api/a\",\"host\":\"h\",\"status\":200,\
             \"address\":\"::1\",\"client\":{client},\"verdict\":\"VERDICT\",\"refused_by\":null,\"took_us\":3}}\n",
            number + 1
        ));
    }
    room.write("plain.jsonl", &json);
    let (expected, _) = room.replay(&["plain.jsonl"]);
    assert!(expected.iter().any(|decision| decision["allowed"] == false));
    for (line, decision) in ours.iter_mut().zip(&expected) {
        *line = line.replace("VERDICT", if decision["allowed"] == true { "allow" } else { "deny" });
    }

    // Answers end out of order, so lines are written out of order.
    let order: Vec<usize> = (0..600).map(|place| place / 40 * 40 + (place * 7) % 40).collect();
    let shuffled: String = order.iter().map(|place| ours[*place].as_str()).collect();
    room.write("access.log", shuffled);
    let (decisions, summary) = room.replay(&["access.log"]);
    assert_eq!((&summary["compared"], &summary["differing"]), (&600.into(), &0.into()));
    for decision in decisions {
        let line = usize::try_from(decision["line"].as_u64().expect("a line")).expect("it is small");
        let original = &expected[order[line - 1]];
        assert_eq!((&decision["allowed"], &decision["limits"]), (&original["allowed"], &original["limits"]));
    }
}

#[test]
fn the_peer_is_believed_only_where_the_policy_says_so() {
    let line = |far: u8| {
        format!(
            "{{\"time\":1790000000,\"ip\":\"10.0.0.1\",\"path\":\"/\",\"headers\":{{\"X-Forwarded-For\":\"192.0.2.{far}\"}}}}\n"
        )
    };
    let log: String = (1..=5).map(line).collect();
    for (trust, admitted) in [("", 2), ("address: { trust: 10.0.0.0/8 }\n", 5)] {
        let room = Room::new(&format!("{trust}limits: {{ one: {{ by: ip, rate: 2/min }} }}\n"));
        room.write("log", &log);
        assert_eq!(room.replay(&["log"]).1["admitted"], admitted);
    }
}

#[test]
fn no_spelling_of_a_path_avoids_a_rule() {
    let room = Room::new("limits: { login: { match: /login, by: ip, rate: 3/min } }\n");
    let paths =
        ["/login", "/login/", "//login", "/%6cogin", "/./login", "/x/../login", "/login;a=1", "/login%2f", "/login?x"];
    let line = |path: &&str| {
        format!(
            "{{\"time\":1790000000,\"ip\":\"::1\",\"path\":\"{path}\"}}
"
        )
    };
    let log = paths.iter().map(line).collect::<Vec<_>>().concat();
    room.write("log", log);
    let (decisions, summary) = room.replay(&["log"]);
    assert_eq!((&summary["admitted"], &summary["refused"], &summary["bad_paths"]), (&3.into(), &5.into(), &1.into()));
    assert_eq!((&decisions[7]["status"], &decisions[7]["limits"]), (&400.into(), &Value::Array(Vec::new())));
}

#[test]
fn logs_that_can_not_be_read_are_bad_input() {
    let room = Room::new(SITE);
    room.write("empty", "");
    room.write("prose", "hello\nworld\n");
    room.write("good", "{\"time\":1}\n");
    let cases = [
        (room.refused(&["none"], &[]), "error: none: the log can't be read: "),
        (room.refused(&["good", "none"], &["--decisions", "out"]), "error: none: the log can't be read: "),
        (room.refused(&["."], &[]), "error: .: this is a directory, not a log\nhint: "),
        (room.refused(&["empty"], &[]), "error: empty: the log is empty"),
        (
            room.refused(&["prose"], &[]),
            "error: prose:1:6: the line ends too early; no other line is a request\nhint: ",
        ),
        (room.refused(&["-", "-"], &[]), "error: standard input is named twice"),
        (
            room.refused(&["good"], &["--decisions", "good"]),
            "error: good: the decisions would be written over what is read",
        ),
        (
            room.refused(&["good"], &["--decisions", "policy.yaml"]),
            "error: policy.yaml: the decisions would be written",
        ),
        (room.refused(&["good"], &["--decisions", "no/where"]), "error: no/where: the decisions can't be written: "),
    ];
    for (said, expected) in cases {
        assert!(said.starts_with(expected), "{said}");
    }
    assert!(!room.path("out").exists(), "nothing is begun when a log is missing");
    assert_eq!(fs::read_to_string(room.path("good")).expect("the log is still there"), "{\"time\":1}\n");
}

#[test]
fn standard_input_and_several_logs_are_read_in_order() {
    let room = Room::new(SITE);
    room.write("a", "{\"time\":1,\"path\":\"/\"}\n");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tope"));
    command.current_dir(room.0.path()).args(["replay", "policy.yaml", "a", "-", "--decisions", "out.jsonl"]);
    let input = fs::File::open(room.write("b", "\n{\"time\":2,\"path\":\"/\"}\n")).expect("a file");
    assert!(command.stdin(input).output().expect("the program runs").status.success());
    let out = fs::read_to_string(room.path("out.jsonl")).expect("decisions");
    let starts: Vec<_> = out.lines().map(|line| line.split(", \"allowed\"").next().unwrap_or_default()).collect();
    assert_eq!(starts, ["{\"file\": \"a\", \"line\": 1", "{\"file\": \"standard input\", \"line\": 2"]);
}

/// A request is in flight as long as the log says: the place of one that has ended is the next one's.
#[test]
fn what_is_in_flight_ends_when_the_log_says() {
    let room = Room::new("limits: { uploads: { by: ip, rate: 2 at once } }");
    let line = |at_us: u64, took: &str| format!("{{\"time\":0.{at_us:06},\"ip\":\"203.0.113.7\"{took}}}\n");
    let log: String = [
        line(0, ",\"took_us\":900,\"status\":200"),
        line(10, ",\"took_us\":90,\"status\":500"),
        line(99, ",\"took_us\":1"),
        line(100, ",\"took_us\":1000"),
        line(899, ""),
        line(900, ""),
        line(901, ""),
    ]
    .concat();
    room.write("log", log);
    let (decisions, _) = room.replay(&["log"]);
    let left: Vec<_> =
        decisions.iter().map(|said| (said["allowed"] == true, said["limits"][0]["remaining"].as_u64())).collect();
    let (yes, no) = (|left| (true, Some(left)), (false, Some(0)));
    // What doesn't say how long it took is over at once.
    assert_eq!(left, [yes(1), yes(0), no, yes(0), no, yes(0), yes(0)]);
}

/// A price is in the log by the name of its limit; where it isn't, what was held is charged.
#[test]
fn prices_are_those_of_the_log() {
    let limits = "limits: { tokens: { by: ip, rate: 100/d, reserve: 58, charge: json a }, api: { by: ip, rate: 9/d } }";
    let room = Room::new(limits);
    let line = |more: &str| format!("{{\"time\":0,\"ip\":\"203.0.113.7\",\"status\":200{more}}}\n");
    let log =
        [line(",\"charged\":{\"other\":1,\"tokens\":2}"), line(""), line(""), line(",\"charged\":{\"tokens\":1}")];
    room.write("log", log.concat());
    let (decisions, _) = room.replay(&["log"]);
    let left: Vec<_> = decisions.iter().map(|said| said["limits"][0]["remaining"].as_u64()).collect();
    assert_eq!(left, [Some(42), Some(40), Some(40), Some(40)]);
    assert_eq!(decisions.iter().filter(|said| said["allowed"] == true).count(), 2);
}
