//! The access log of a run with real parts: it holds no secret, and replayed it gives the same decisions.

use std::process::Command;

use serde_json::Value;

use crate::support::{Room, Tope, curl, free_port, nginx};

const LIMITS: &str = "\
clients:
  header: X-Api-Key
  keys:
    planted-key-free: { name: fred, plan: free }
    planted-key-pro: { name: petra, plan: pro }
plans:
  free: { api: 20/s burst 40, search: 5/min }
  pro: { api: 200/s burst 300, search: 30/min }
exempt: [path /healthz]
limits:
  login: { match: POST /login, by: ip, rate: [5/min, 30/h sliding-log] }
  api: { match: /api/**, by: client, rate: plan.api, cost: { /api/bulk: 7 } }
  search: { match: /api/search, by: client, rate: plan.search }
  windows: { match: [/api/a, /api/b], by: [route, client], rate: [50/s fixed-window, 120/s sliding-window] }
  hidden: { match: /api/**, by: ip, rate: 10/s, mode: shadow }
  closed: { match: /api/closed, by: ip, rate: none }
  ceiling: { rate: 900/s, reject: { status: 503 } }
";

/// What may be in no log, wherever a client puts it.
const SECRETS: [&str; 5] =
    ["planted-key-free", "planted-key-pro", "planted-in-query", "planted-in-cookie", "planted-bearer"];

fn traffic(tope: &Tope, room: &Room) {
    // Three clients at once, over HTTP/1.1 and HTTP/2, each over several connections.
    let key = |key: &str| format!("X-Api-Key: {key}");
    let load = |path: &str, header: &str, more: &[&str]| {
        let mut command = Command::new("h2load");
        command.args(["-n", "1500", "-c", "4", "-m", "8", "-H", header]).args(more).arg(tope.url(path));
        command.stdout(std::process::Stdio::null()).spawn()
    };
    let loads = [
        load("/api/a?token=planted-in-query", &key("planted-key-free"), &[]),
        load("/api/b", &key("planted-key-pro"), &["--h1"]),
        load("/api/search", &key("a-key-that-nobody-knows"), &[]),
        load("/api/bulk", "Cookie: session=planted-in-cookie", &[]),
    ];
    for _ in 0..7 {
        curl(&[
            "-X",
            "POST",
            "-H",
            "Authorization: Bearer planted-bearer",
            "-d",
            "x",
            &tope.url("/login/?k=planted-in-query"),
        ]);
        curl(&[&tope.url("/healthz"), "-H", &key("planted-key-pro")]);
        assert_eq!(curl(&[&tope.url("/api/closed")]).status, 403);
        curl(&["-I", &tope.url("//api/./search"), "-H", &key("planted-key-pro")]);
        curl(&["--path-as-is", &tope.url("/x/../%61pi/a;v=1?planted-in-query")]);
    }
    let preflight = ["-X", "OPTIONS", "-H", "Origin: http://a.example", "-H", "Access-Control-Request-Method: PUT"];
    curl(&[&preflight[..], &[&tope.url("/api/a")]].concat());
    for load in loads {
        load.expect("this test needs h2load: apt-get install nghttp2-client").wait().expect("it ends");
    }
    assert!(!room.read("access.log").is_empty());
}

#[test]
fn the_log_of_a_real_run_replays_to_the_same_decisions_and_holds_no_secret() {
    let (room, port) = (Room::new(), free_port());
    let _nginx = nginx(&room, port, "location / { return 200 \"yes\\n\"; }");
    let mut tope = Tope::start(&room, &format!("upstream: http://127.0.0.1:{port}\n{LIMITS}"));
    traffic(&tope, &room);
    tope.process.signal("TERM");
    assert_eq!(tope.process.wait().code(), Some(0));

    let log = room.read("access.log");
    let talk = tope.said();
    for secret in SECRETS {
        assert!(!log.contains(secret) && !talk.contains(secret), "{secret} is in what tope wrote");
    }
    assert!(!log.contains('?'), "a query string is in the log");

    let mut command = Command::new(env!("CARGO_BIN_EXE_tope"));
    command.current_dir(room.0.path());
    command.args(["replay", "policy.yaml", "access.log", "--json", "--decisions", "decisions.jsonl"]);
    let out = command.output().expect("the program runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let json = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    let lines: Vec<Value> = log.lines().map(json).collect();
    let decisions: Vec<Value> = room.read("decisions.jsonl").lines().map(json).collect();
    assert_eq!((lines.len(), decisions.len()), (6036, 6036));
    let mut count = std::collections::BTreeMap::<String, u32>::new();
    for decision in &decisions {
        let line = &lines[decision["line"].as_u64().and_then(|line| usize::try_from(line).ok()).expect("a line") - 1];
        let allowed = matches!(line["verdict"].as_str(), Some("allow" | "none"));
        assert_eq!(decision["allowed"], allowed, "{line}\n{decision}");
        assert_eq!(decision["refused_by"], line["refused_by"], "{line}\n{decision}");
        let shadows = decision["limits"].as_array().expect("limits").iter();
        let shadows: Vec<&Value> =
            shadows.filter(|limit| limit["shadow"] == true && limit["allowed"] == false).collect();
        let told = line["shadow_refused"].as_array().map_or(0, Vec::len);
        assert_eq!(shadows.len(), told, "{line}\n{decision}");
        *count.entry(line["refused_by"].as_str().unwrap_or("passed").to_owned()).or_default() += 1;
    }
    let summary = json(&String::from_utf8_lossy(&out.stdout));
    assert_eq!((&summary["compared"], &summary["differing"]), (&Value::from(6029), &Value::from(0)), "{summary}");
    println!("6036 lines replayed to the same decisions; refused by: {count:?}");
    for limit in ["login", "api", "search", "closed", "passed"] {
        assert!(count.contains_key(limit), "{count:?}");
    }
}
