//! Where a call comes from: what strangers claim counts for nothing, what trusted proxies say counts up to them.

use std::process::Command;

use crate::client::{Ask, get};
use crate::support::{Gateway, passed, write_policy};

const LIMITS: &str = "limits: { api: { by: ip, rate: 3/h } }\n";

fn forwarded(by: &str) -> Ask {
    get("/").with("X-Forwarded-For", by)
}

#[test]
fn forged_addresses_are_one_bucket() {
    // One field at a time: fields that contradict each other are not believed from anybody.
    let kinds: [&[&str]; 6] = [
        &["X-Forwarded-For"],
        &["Forwarded"],
        &["X-Real-IP"],
        &["CF-Connecting-IP"],
        &["True-Client-IP", "X-Client-IP"],
        &["X-Forwarded-For", "Forwarded", "X-Real-IP"],
    ];
    for kind in kinds {
        for trust in ["", "address: { trust: [127.0.0.9] }\n"] {
            let gateway = Gateway::start(&format!("{trust}{LIMITS}"));
            let mut caller = gateway.caller();
            let admitted = (0..50).filter(|n| {
                let value = |name: &str| format!("{}203.0.113.{n}", if name == "Forwarded" { "for=" } else { "" });
                let forged = kind.iter().fold(get("/"), |ask, name| ask.with(name, &value(name)));
                caller.ask(&forged).status == 200
            });
            assert_eq!(admitted.count(), 3, "{kind:?} {trust}");
            assert_eq!(passed(&mut gateway.caller_from("127.0.0.5"), &get("/"), 5), 3, "another peer has its own");
        }
    }
}

#[test]
fn the_client_is_found_through_two_proxies() {
    let gateway = Gateway::start(&format!("address: {{ trust: [127.0.0.9, 10.0.0.0/8] }}\n{LIMITS}"));
    let mut proxy = gateway.caller_from("127.0.0.9");
    assert_eq!(passed(&mut proxy, &forwarded("203.0.113.7, 10.0.0.1"), 5), 3);
    // The same client, whatever it claims to the left, in one line or in two, in either field.
    for same in [
        forwarded("1.2.3.4, 203.0.113.7, 10.0.0.1"),
        forwarded("garbage, 203.0.113.7,10.2.3.4"),
        forwarded("203.0.113.7"),
        forwarded("203.0.113.7:4711"),
        forwarded("::ffff:203.0.113.7"),
        forwarded("1.1.1.1").with("X-Forwarded-For", "203.0.113.7, 10.0.0.1"),
        get("/").with("Forwarded", "for=9.9.9.9, for=\"203.0.113.7:80\";proto=https, for=10.0.0.1"),
    ] {
        assert_eq!(passed(&mut proxy, &same, 1), 0, "{same:?}");
    }
    // Another one, and the proxy that has a client of its own.
    assert_eq!(passed(&mut proxy, &forwarded("203.0.113.7, 203.0.113.8"), 5), 3);
    // Garbage stops the walk: the last good address is the client.
    assert_eq!(passed(&mut proxy, &forwarded("203.0.113.20, unknown, 10.0.0.3"), 5), 3, "10.0.0.3 itself");
    assert_eq!(passed(&mut proxy, &forwarded("203.0.113.21, evil\", 10.0.0.3"), 5), 0, "the same one");
    // An untrusted peer gains nothing by the same words.
    let mut stranger = gateway.caller();
    let admitted = (0..20).filter(|n| stranger.ask(&forwarded(&format!("203.0.113.{}", 100 + n))).status == 200);
    assert_eq!(admitted.count(), 3);
}

#[test]
fn a_block_of_ipv6_is_one_client() {
    let gateway = Gateway::start(&format!("address: {{ trust: [127.0.0.9] }}\n{LIMITS}"));
    let mut proxy = gateway.caller_from("127.0.0.9");
    let admitted = (0..1000).filter(|n| proxy.ask(&forwarded(&format!("2001:db8:1:2:{n:x}::{n:x}"))).status == 200);
    assert_eq!(admitted.count(), 3, "a thousand addresses of one /64");
    let admitted = (0..10).filter(|n| proxy.ask(&forwarded(&format!("2001:db8:1:3::{n:x}"))).status == 200);
    assert_eq!(admitted.count(), 3, "another /64");

    let gateway = Gateway::start(&format!("address: {{ trust: [127.0.0.9], ipv6: /56 }}\n{LIMITS}"));
    let mut proxy = gateway.caller_from("127.0.0.9");
    let admitted = (0..100).filter(|n| proxy.ask(&forwarded(&format!("2001:db8:1:2{n:02x}::1"))).status == 200);
    assert_eq!(admitted.count(), 3, "a hundred /64 of one /56");
}

/// `/56` of `2001:db8:1:2xx` is `2001:db8:1:200/56` for every `xx`.
#[test]
fn random_user_agents_are_one_bucket_or_no_policy() {
    let chosen = "agents: { by: header User-Agent, rate: 3/h }";
    let folder = tempfile::tempdir().unwrap();
    write_policy(folder.path(), &format!("limits: {{ {chosen} }}\n"));
    let file = folder.path().join("policy.yaml");
    let refused = Command::new(env!("CARGO_BIN_EXE_tope")).arg("gateway").arg(file).output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("policy.yaml:4:") && said.contains("caller_chosen"), "{said}");

    let gateway = Gateway::start(&format!("limits: {{ {chosen}, api: {{ by: ip, rate: 5/h }} }}\n"));
    let mut caller = gateway.caller();
    let agent = |n: usize| get("/").with("User-Agent", &format!("agent-{n}"));
    assert_eq!((0..50).filter(|n| caller.ask(&agent(*n)).status == 200).count(), 5);
}
