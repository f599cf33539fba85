//! Every kind of bad input: said clearly and with its place, exit code 2, and nothing has started.

use std::fmt::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

const LIMITS: &str = "limits: { api: { by: ip, rate: 1/h } }\n";

/// What is said about this policy. The program must end by itself, with code 2, and may not have listened.
fn refused(folder: &Path, policy: &str, arguments: &[&str]) -> String {
    let file = folder.join("policy.yaml");
    std::fs::write(&file, policy).unwrap();
    // A policy that is good after all would be served for ever.
    let mut command = Command::new("timeout");
    command.args(["30", env!("CARGO_BIN_EXE_tope"), "gateway"]).arg(&file).args(arguments).stdin(Stdio::null());
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{policy}\n{said}");
    assert!(output.stdout.is_empty() && !said.contains("tope listens"), "{said}");
    assert!(said.starts_with("error: "), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    said
}

/// A port that was free a moment ago.
fn free() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

#[test]
fn what_is_wrong_in_a_policy_is_said_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("listen: 127.0.0.1:0\nlimits: { a: { rate: 1/h } }\n", ":", "names no upstream"),
        ("upstream: demo\nlimts: {}\n", ":2:1:", "did you mean `limits`?"),
        ("upstream: demo\nlimits: { a: { by: ip } }\n", ":2:", "rate"),
        ("upstream: demo\nlimits: { a: { by: ip, rate: 1/h, burst: 3 } }\n", ":2:35:", "burst"),
        ("upstream: demo\nlimits: { a: { by: ip, rate: fast } }\n", ":2:30:", "hint:"),
        ("upstream: demo\nlimits: { a: { by: ip, rate: 60/m } }\n", ":2:33:", "hint:"),
        ("upstream: demo\nlimits: { a: { by: ip, rate: 1/500d } }\n", ":2:30:", "400d"),
        ("upstream: demo\nlimits: { a: { by: ip, rate: plan.x } }\n", ":2:30:", ""),
        ("upstream: demo\nlimits: { a: { by: header X, rate: 1/h } }\n", ":2:", "caller_chosen"),
        ("upstream: demo\nlimits: { a: { match: login, rate: 1/h } }\n", ":2:", "hint:"),
        ("upstream: demo\nlimits: { a: { rate: 1/h }, a: { rate: 2/h } }\n", ":2:", "twice"),
        ("upstream: demo\nlimits: { a: { rate: 4/s, store_down: deny } }\n", ":2:", "not in this version"),
        ("upstream: demo\nstore: redis://redis\n", ":2:1:", "not in this version"),
        ("upstream: demo\ntls: { cert: a, key: b }\n", ":2:1:", "not in this version"),
        ("upstream: demo\nadmin: { listen: 0.0.0.0:9080 }\n", ":2:18:", "can't guard it"),
        ("upstream: demo\nadmin: { listen: 127.0.0.1:0, token: x }\n", ":2:", "not in this version"),
        ("upstream: demo\nlisten: localhost\n", ":2:9:", "no address to listen on"),
        ("upstream: demo\nlisten: :8080\n", ":2:9:", "hint:"),
        ("upstream: ftp://x\n", ":1:11:", "hint:"),
        ("upstream: [demo, http://127.0.0.1:1]\n", ":1:12:", "among other upstreams"),
        ("upstream: demo\naddress: { trust: [10.0.0.0/33] }\n", ":2:20:", ""),
        ("upstream: demo\nclients: { header: X-Api-Key, file: none.yaml }\n", ":2:37:", "none.yaml"),
        ("upstream: demo\nclients: { header: A, bearer: true }\n", ":2:", "second"),
        ("upstream: demo\nmemory: { max_keys: 0 }\n", ":2:21:", "max_keys"),
        ("upstream: demo\ntimeouts: { header: 25h }\n", ":2:21:", "24 hours"),
        ("upstream: demo\nsecret: ${TOPE_NO_SUCH_VARIABLE}\n", ":2:", "TOPE_NO_SUCH_VARIABLE"),
        ("upstream: demo\nheaders: [none, triple]\n", ":2:", "none"),
        ("upstream: demo\nlimits: { a: { rate: 1/h }\n", ":", "error"),
        ("upstream: demo\n\tlimits: {}\n", ":1:11:", "tab"),
        ("- upstream\n", ":1:1:", "error"),
        ("tope: 2\nupstream: demo\n", ":1:7:", "error"),
        ("", ":", "empty"),
    ];
    let mut wrong = String::new();
    for (policy, place, hint) in cases {
        let said = refused(folder.path(), policy, &[]);
        if !said.contains(&format!("policy.yaml{place}")) || !said.contains(hint) {
            let _ = writeln!(wrong, "expected `{place}` and `{hint}`:\n{policy}{said}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_port_that_is_taken_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let (other, base) = (free(), format!("upstream: demo\n{LIMITS}"));

    let policy = format!("listen: {taken}\nadmin: {{ listen: {other} }}\n{base}");
    let said = refused(folder.path(), &policy, &[]);
    assert!(said.contains(&format!("`listen` {taken}")), "{said}");

    let policy = format!("listen: {other}\nadmin: {{ listen: {taken} }}\n{base}");
    let said = refused(folder.path(), &policy, &[]);
    assert!(said.contains(&format!("`admin.listen` {taken}")), "{said}");
    assert!(TcpStream::connect(&other).is_err(), "nothing listens any more");

    let policy = format!("listen: {other}\nadmin: {{ listen: 127.0.0.1:0 }}\n{base}");
    let said = refused(folder.path(), &policy, &["--listen", &taken]);
    assert!(said.contains(&taken), "{said}");
    // 192.0.2.1 is an address of nobody.
    let said = refused(folder.path(), &policy, &["--listen", "192.0.2.1:8080"]);
    assert!(said.contains("192.0.2.1:8080"), "{said}");
}

#[test]
fn arguments_that_make_no_sense_are_bad_input() {
    for arguments in [&["gateway"][..], &["gateway", "a", "b"], &["gateway", "a", "--workers", "0"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_tope")).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty() && output.stdout.is_empty());
    }
}

#[test]
fn a_state_file_that_can_not_be_read_at_all_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("state.tope")).unwrap();
    let ports = "listen: 127.0.0.1:0\nadmin: { listen: 127.0.0.1:0 }\n";
    let policy = format!("{ports}upstream: demo\nmemory: {{ file: state.tope }}\n{LIMITS}");
    let said = refused(folder.path(), &policy, &[]);
    assert!(said.contains("memory.file"), "{said}");
}
