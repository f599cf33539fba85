//! Budgets that outlive the program: `memory.file`.

use std::path::Path;
use std::time::Instant;

use crate::client::get;
use crate::support::{Gateway, LONG, passed};

const POLICY: &str = "memory: { max_keys: 1k, file: state.tope }\n\
    limits:\n  \
      bucket: { match: /bucket, by: ip, rate: 5/h }\n  \
      window: { match: /window, by: ip, rate: 5/300d fixed-window }\n  \
      sliding: { match: /sliding, by: ip, rate: 5/300d sliding-window }\n  \
      log: { match: /log, by: ip, rate: 5/h sliding-log }\n  \
      month: { match: /month, by: ip, rate: 5/month }\n";
const PATHS: [&str; 5] = ["/bucket", "/window", "/sliding", "/log", "/month"];

fn start(folder: &Path) -> Gateway {
    Gateway::start_in(folder, POLICY, &[])
}

/// How many of so many requests pass, at each limit.
fn take(gateway: &Gateway, times: usize) -> [usize; 5] {
    let mut caller = gateway.caller();
    PATHS.map(|path| passed(&mut caller, &get(path), times))
}

#[test]
fn what_was_used_is_still_used_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut gateway = start(folder.path());
    assert_eq!(take(&gateway, 3), [3; 5]);
    assert!(gateway.stop().success());
    let mut gateway = start(folder.path());
    assert_eq!(take(&gateway, 4), [2; 5]);
    gateway.signal("INT");
    assert!(gateway.end().success());
    assert_eq!(take(&start(folder.path()), 2), [0; 5]);
}

#[test]
fn a_policy_that_changed_meanwhile_is_as_if_it_had_been_reloaded() {
    let folder = tempfile::tempdir().unwrap();
    let mut gateway = start(folder.path());
    assert_eq!(take(&gateway, 6), [5; 5]);
    assert!(gateway.stop().success());
    let doubled = POLICY.replace("rate: 5/", "rate: 10/");
    let mut gateway = Gateway::start_in(folder.path(), &doubled, &[]);
    assert_eq!(take(&gateway, 6), [5; 5]);
    assert!(gateway.stop().success());
    let fewer_places = doubled.replace("max_keys: 1k", "max_keys: 100");
    assert_eq!(take(&Gateway::start_in(folder.path(), &fewer_places, &[]), 1), [0; 5]);
}

#[test]
fn a_kill_forgets_at_most_what_came_after_the_last_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let mut gateway = start(folder.path());
    assert_eq!(take(&gateway, 3), [3; 5]);
    let (file, begun) = (folder.path().join("state.tope"), Instant::now());
    while !file.exists() {
        assert!(begun.elapsed() < LONG, "no snapshot in {LONG:?}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    gateway.signal("KILL");
    assert!(!gateway.end().success());
    assert_eq!(take(&start(folder.path()), 4), [2; 5]);
}

#[test]
fn a_damaged_file_is_put_aside_and_said_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut gateway = start(folder.path());
    assert_eq!(take(&gateway, 3), [3; 5]);
    assert!(gateway.stop().success());
    let (file, aside) = (folder.path().join("state.tope"), folder.path().join("state.tope.broken"));
    let whole = std::fs::read(&file).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for damaged in [&whole[..whole.len() - 1], &flipped, b"", b"tope buckets 1\nsomething else"] {
        std::fs::write(&file, damaged).unwrap();
        let mut gateway = start(folder.path());
        let warning = gateway.wait_for("warning:", 0);
        assert!(warning.contains("state.tope.broken") && warning.contains("every budget begins full"), "{warning}");
        assert_eq!(std::fs::read(&aside).unwrap(), damaged);
        std::fs::remove_file(&aside).unwrap();
        assert_eq!(take(&gateway, 1), [1; 5]);
        assert!(gateway.stop().success());
    }
}

#[test]
fn the_file_is_nobody_else_s_to_read() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let mut gateway = start(folder.path());
    assert!(gateway.stop().success());
    let mode = std::fs::metadata(folder.path().join("state.tope")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "it holds the seed that names buckets");
}

/// A supervisor may change its mind at once: whoever is told that we listen can end us well.
#[test]
fn a_signal_right_after_the_start_ends_it_well() {
    for signal in ["TERM", "INT"] {
        let folder = tempfile::tempdir().unwrap();
        let mut gateway = start(folder.path());
        gateway.signal("HUP");
        gateway.signal(signal);
        assert!(gateway.end().success(), "{signal}");
        assert!(folder.path().join("state.tope").exists(), "the buckets are written at the end");
    }
}
