//! The planning tool can't disagree with the enforcer: a log of the gateway, judged again, gives the same decisions.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::client::{Ask, ask};
use crate::support::{Gateway, policy_text};

const POLICY: &str = "log: { access: json }
address: { trust: [127.0.0.0/8] }
clients:
  header: X-Api-Key
  keys: { k1: { name: ann, plan: free }, k2: { name: bob, plan: pro }, k3: { name: bob, plan: pro } }
plans:
  free: { api: 40/min, strict: 6/10s sliding-log }
  pro: { api: 300/min burst 50, strict: 12/10s sliding-log }
limits:
  login: { match: POST /login, by: ip, rate: [7/s, 20/min fixed-window] }
  api: { match: /api/**, by: client, rate: plan.api, cost: { POST /api/bulk: 3 } }
  strict: { match: GET /api/search, by: client, rate: plan.strict }
  window: { match: /w/**, by: [ip, route], rate: 25/2s sliding-window }
  quiet: { match: /api/**, rate: 90/s, mode: shadow }
  closed: { match: /never, rate: none }
  ceiling: { match: /**, except: /free, rate: 100/s burst 1500 }
";

/// A request that looks like any other: which is decided by a number that is hashed.
fn request(number: u64) -> Ask {
    let random = |salt: u64, below: usize| {
        let mixed =
            (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(salt.wrapping_mul(0xd1b5_4a32_d192_ed03));
        usize::try_from((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40).unwrap() % below
    };
    let targets = [
        ("POST", "/login"),
        ("POST", "//login/?x=1"),
        ("GET", "/api/items/7"),
        ("GET", "/api/items;v=1"),
        ("POST", "/api/bulk"),
        ("GET", "/api/search?q=a"),
        ("HEAD", "/api/search"),
        ("OPTIONS", "/api/search"),
        ("GET", "/w/a"),
        ("PUT", "/w/%62"),
        ("GET", "/never"),
        ("GET", "/free"),
        ("GET", "/else\u{22}"),
    ];
    let (method, target) = targets[random(1, targets.len())];
    let asked = ask(method, target).with("X-Forwarded-For", &format!("203.0.113.{}", random(2, 6)));
    let asked = if method == "OPTIONS" {
        asked.with("Origin", "https://a.org").with("Access-Control-Request-Method", "GET")
    } else {
        asked
    };
    match random(3, 6) {
        0 | 1 => asked,
        2 => asked.with("X-Api-Key", "unknown"),
        key => asked.with("X-Api-Key", ["k1", "k2", "k3"][key - 3]),
    }
}

fn lines(file: &Path) -> Vec<Value> {
    std::fs::read_to_string(file).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn two_thousand_mixed_requests_are_judged_the_same_again() {
    const CONNECTIONS: u64 = 8;
    const EACH: u64 = 250;
    let mut gateway = Gateway::start(POLICY);
    let address = gateway.address;
    let threads: Vec<_> = (0..CONNECTIONS)
        .map(|thread| {
            std::thread::spawn(move || {
                let mut caller = crate::client::Caller::connect(address);
                (0..EACH).map(|n| caller.ask(&request(thread * EACH + n)).status).collect::<Vec<u16>>()
            })
        })
        .collect();
    let statuses: Vec<u16> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    assert!(gateway.stop().success());

    let (log, out) = (gateway.folder.join("access.log"), gateway.folder.join("decisions.jsonl"));
    let mut replay = Command::new(env!("CARGO_BIN_EXE_tope"));
    replay.arg("replay").arg(gateway.folder.join("policy.yaml")).arg(&log).arg("--decisions").arg(&out);
    let output = replay.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let (logged, mut judged) = (lines(&log), lines(&out));
    judged.sort_by_key(|one| one["line"].as_u64());
    assert_eq!((logged.len(), judged.len()), (2000, 2000), "{}", policy_text(POLICY));
    let (mut by, mut allowed) = (std::collections::BTreeMap::<String, usize>::new(), 0);
    for (number, (line, decision)) in logged.iter().zip(&judged).enumerate() {
        assert_eq!(decision["line"], number as u64 + 1);
        let passed = matches!(line["verdict"].as_str(), Some("allow" | "none"));
        assert_eq!(decision["allowed"], passed, "{line} is judged {decision}");
        assert_eq!(decision["refused_by"], line["refused_by"], "{line} is judged {decision}");
        let shadows = decision["limits"].as_array().unwrap().iter();
        let shadows = shadows.filter(|one| one["shadow"] == true && one["allowed"] == false).count();
        assert_eq!(line["shadow_refused"].as_array().map_or(0, Vec::len), shadows, "{line} is judged {decision}");
        allowed += usize::from(passed);
        let refusing = decision["limits"].as_array().unwrap().iter().filter(|one| one["allowed"] == false);
        for one in refusing {
            *by.entry(one["limit"].as_str().unwrap().to_owned()).or_default() += 1;
        }
    }
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), allowed, "what the clients saw");
    for limit in ["login", "api", "strict", "window", "closed"] {
        assert!(by.contains_key(limit), "no request was refused by {limit}, so nothing was shown: {by:?}");
    }
}
