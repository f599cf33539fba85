//! A policy that changes while it is in force: whole or not at all, and what was used is still used.

use std::os::unix::fs::symlink;

use crate::client::{Caller, get};
use crate::support::{Gateway, passed, policy_text, write_policy};

const DONE: &str = "tope_policy_reloads_total{result=\"done\"}";
const REFUSED: &str = "tope_policy_reloads_total{result=\"refused\"}";

fn api(rate: &str) -> String {
    format!("limits: {{ api: {{ by: ip, rate: {rate} }} }}\n")
}

fn take(caller: &mut Caller, times: usize) -> usize {
    passed(caller, &get("/"), times)
}

#[test]
fn an_unrelated_change_keeps_every_counter() {
    for rate in ["10/h", "10/300d fixed-window", "10/300d sliding-window", "10/h sliding-log", "10/month"] {
        let gateway = Gateway::start(&api(rate));
        let mut caller = gateway.caller();
        assert_eq!(take(&mut caller, 7), 7);
        let text = format!("timeouts: {{ upstream: 29s }}\n{}exempt: [path /healthz]\n", api(rate));
        let from = gateway.said();
        gateway.reload(&text);
        // Once the second reading is over, all has been said about the first.
        gateway.reload(&text);
        let said = gateway.talk(from);
        assert!(!said.contains("note:") && !said.contains("warning:"), "{said}");
        assert_eq!(take(&mut caller, 5), 3, "{rate}");
        assert_eq!((gateway.metric(DONE), gateway.metric(REFUSED)), (2, 0));
    }
}

#[test]
fn ten_more_after_ten_an_hour_became_twenty() {
    for (from, to) in [
        ("10/h", "20/h"),
        ("10/300d fixed-window", "20/300d fixed-window"),
        ("10/300d sliding-window", "20/300d sliding-window"),
        ("10/h sliding-log", "20/h sliding-log"),
        ("10/month", "20/month"),
        ("10/h", "10/h burst 20"),
    ] {
        let gateway = Gateway::start(&api(from));
        let mut caller = gateway.caller();
        assert_eq!(take(&mut caller, 15), 10, "{from}");
        gateway.reload(&api(to));
        assert_eq!(take(&mut caller, 15), 10, "{to}");
        gateway.reload(&api(from));
        assert_eq!(take(&mut caller, 2), 0, "back to {from}");
    }
}

#[test]
fn a_broken_file_changes_nothing_and_says_where() {
    let gateway = Gateway::start(&api("10/h"));
    let mut caller = gateway.caller();
    assert_eq!(take(&mut caller, 4), 4);
    for (number, (broken, place, hint)) in [
        ("limits: { api: { by: ip, rat: 10/h } }\n", "policy.yaml:4:26:", "did you mean `rate`?"),
        ("limits: { api: { by: ip, rate: 10/m } }\n", "policy.yaml:4:35:", "hint:"),
        ("limits: { api: { by: ip, rate: plan.api } }\n", "policy.yaml:4:32:", "hint:"),
        ("limits: { api: { by: ip, rate: 10/h }\n", "policy.yaml:", "error"),
        ("\u{0}\u{1}", "policy.yaml:", "error"),
        ("admin: { listen: 0.0.0.0:9080 }\n", "policy.yaml:", "error"),
    ]
    .into_iter()
    .enumerate()
    {
        let said = gateway.reload(broken);
        assert!(said.contains(place) && said.contains(hint) && said.contains("the policy in force stays"), "{said}");
        assert_eq!(gateway.metric(REFUSED), number as u64 + 1);
    }
    // Also when there is none at all.
    let from = gateway.said();
    std::fs::remove_file(gateway.folder.join("policy.yaml")).unwrap();
    assert!(gateway.wait_for("there is no such file", from).contains("policy.yaml"));
    assert_eq!((gateway.metric(DONE), gateway.metric(REFUSED)), (0, 7));
    assert_eq!(take(&mut caller, 10), 6, "the budget in force is the one of before");
}

#[test]
fn every_way_to_replace_a_file_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let (path, at) = (folder.path(), |name: &str| folder.path().join(name));
    // As Kubernetes mounts it: policy.yaml -> ..data/policy.yaml, ..data -> ..1
    for (name, rate) in [("..1", "1/h"), ("..2", "2/h")] {
        std::fs::create_dir(at(name)).unwrap();
        std::fs::write(at(name).join("policy.yaml"), policy_text(&api(rate))).unwrap();
    }
    symlink("..1", at("..data")).unwrap();
    symlink("..data/policy.yaml", at("policy.yaml")).unwrap();
    let gateway = Gateway::start_file(&at("policy.yaml"), &[]);
    let mut caller = gateway.caller();
    assert_eq!(take(&mut caller, 2), 1);

    let from = gateway.said();
    symlink("..2", at("..data_tmp")).unwrap();
    std::fs::rename(at("..data_tmp"), at("..data")).unwrap();
    gateway.wait_for("is in force", from);
    assert_eq!(take(&mut caller, 2), 1, "2/h by the swap of ..data");

    let from = gateway.said();
    std::fs::remove_file(at("policy.yaml")).unwrap();
    write_policy(path, &api("3/h"));
    gateway.wait_for("is in force", from);
    assert_eq!(take(&mut caller, 2), 1, "3/h by another file of the name");

    let from = gateway.said();
    std::fs::write(at("policy.yaml~"), policy_text(&api("4/h"))).unwrap();
    std::fs::rename(at("policy.yaml~"), at("policy.yaml")).unwrap();
    gateway.wait_for("is in force", from);
    assert_eq!(take(&mut caller, 2), 1, "4/h by an editor's rename");

    let from = gateway.said();
    write_policy(path, &api("5/h"));
    gateway.wait_for("is in force", from);
    assert_eq!(take(&mut caller, 2), 1, "5/h by writing in place");
    assert_eq!((gateway.metric(DONE), gateway.metric(REFUSED)), (4, 0));
}

#[test]
fn the_key_file_is_watched_too() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys.yaml");
    std::fs::write(&keys, "a: { name: ann, plan: free }\n").unwrap();
    let policy = "clients: { header: X-Api-Key, file: keys.yaml }\nplans: { free: { api: 1/h }, pro: { api: 3/h } }\n\
                  limits: { api: { by: client, rate: plan.api } }\n";
    let gateway = Gateway::start_in(folder.path(), policy, &[]);
    let mut caller = gateway.caller();
    let keyed = |key: &str| get("/").with("X-Api-Key", key);
    assert_eq!((passed(&mut caller, &keyed("a"), 3), passed(&mut caller, &keyed("b"), 3)), (1, 1));
    let from = gateway.said();
    std::fs::write(&keys, "a: { name: ann, plan: pro }\nb: { name: bob, plan: pro }\n").unwrap();
    gateway.wait_for("is in force", from);
    assert_eq!(passed(&mut caller, &keyed("a"), 5), 2, "what was used on the other plan is used");
    assert_eq!(passed(&mut caller, &keyed("b"), 5), 3);
    let from = gateway.said();
    std::fs::write(&keys, "a: { name: ann, plan: gold }\n").unwrap();
    gateway.wait_for("the policy in force stays", from);
    let said = gateway.talk(from);
    assert!(said.contains("keys.yaml:1:23:") && said.contains("gold"), "{said}");
    // The broken key file is watched on.
    let from = gateway.said();
    std::fs::write(&keys, "c: { name: cy, plan: pro }\n").unwrap();
    gateway.wait_for("is in force", from);
    assert_eq!((passed(&mut caller, &keyed("c"), 5), passed(&mut caller, &keyed("b"), 1)), (3, 0));
}

#[test]
fn what_can_not_be_carried_over_is_said() {
    let gateway = Gateway::start(&api("2/h"));
    let mut caller = gateway.caller();
    assert_eq!(take(&mut caller, 3), 2);
    let from = gateway.said();
    gateway.reload("limits: { api: { by: ip, rate: 2/h }, more: { by: ip, rate: 1/h } }\n");
    gateway.wait_for("note: `more` is new and begins with full budgets", from);
    assert_eq!(take(&mut caller, 1), 0, "the old one is as it was");
    let from = gateway.said();
    gateway.reload(&api("2/h sliding-log"));
    gateway.wait_for("note: `api` counts in another way and begins with full budgets", from);
    assert_eq!(take(&mut caller, 3), 2);
    let from = gateway.said();
    gateway.reload(&format!("memory: {{ max_keys: 7 }}\n{}", api("2/h sliding-log")));
    gateway.wait_for("warning: the change of `memory.max_keys` waits for a restart", from);
    assert_eq!(take(&mut caller, 1), 0);
}

/// Nobody gains by a limit that was taken out for a minute, and the note says so.
#[test]
fn what_was_used_before_a_limit_was_taken_out_still_counts() {
    for between in ["limits: { other: { by: ip, rate: 9/h } }\n", &api("2/h sliding-log"), &api("2/300d fixed-window")]
    {
        let gateway = Gateway::start(&api("2/h"));
        let mut caller = gateway.caller();
        assert_eq!(take(&mut caller, 3), 2);
        gateway.reload(between);
        let from = gateway.said();
        gateway.reload(&api("2/h"));
        gateway.wait_for("what was used under this name in this way before still counts", from);
        assert_eq!(take(&mut caller, 3), 0, "after {between}");
    }
}

#[test]
fn shadow_counts_everything_and_refuses_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = Gateway::start_in(folder.path(), &api("2/h"), &["--shadow"]);
    let mut caller = gateway.caller();
    assert_eq!(take(&mut caller, 10), 10);
    gateway.reload(&api("3/h"));
    assert_eq!(take(&mut caller, 10), 10, "also after a reload");
    assert_eq!(gateway.metric("tope_decisions_total{limit=\"api\",result=\"shadow_deny\"}"), 17);
    assert_eq!(gateway.metric("tope_decisions_total{limit=\"api\",result=\"allow\"}"), 3);
    assert_eq!(gateway.metric("tope_requests_total{result=\"refused\"}"), 0);
}
