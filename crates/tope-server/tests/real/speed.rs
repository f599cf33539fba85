//! Long logs, replayed: the bar while it runs, and how long a million lines take (in a release build: `make bench`).

use std::fmt::Write as _;
use std::process::Command;
use std::time::Instant;

use crate::support::Room;

const LINES: u32 = 1_000_000;

const POLICY: &str = "\
limits:
  pages: { by: ip, rate: 60/min burst 120 }
  login: { match: POST /login, by: ip, rate: 5/min sliding-log }
  ceiling: { rate: 2000/s }
";

/// Lines in the combined format: 30,000 addresses, some of them busy, a line in a thousand cut off.
fn log(lines: u32) -> String {
    let mut out = String::new();
    let mut state = 1_u32;
    for number in 0..lines {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        let address = if state.is_multiple_of(3) { state % 50 } else { state % 30_000 };
        let (second, path) = (number / 120, state % 997);
        let (minute, hour) = (second / 60 % 60, second / 3600 % 24);
        let request = if path == 0 { "POST /login".to_owned() } else { format!("GET /page/{path}?q={state}") };
        let _ = write!(
            out,
            "198.18.{}.{} - - [01/Dec/2026:{hour:02}:{minute:02}:{:02} +0000] \"{request} HTTP/1.1\" 200 {path} \"-\" \"Mozilla/5.0 (X11; Linux x86_64)",
            address >> 8,
            address & 255,
            second % 60
        );
        out.push_str(if number % 1000 == 999 { "\n" } else { "\"\n" });
    }
    out
}

#[test]
#[ignore = "a measurement: `make bench` runs it in a release build"]
fn a_million_lines_take_less_than_ten_seconds() {
    let room = Room::new();
    room.write("policy.yaml", POLICY);
    room.write("access.log", log(LINES));
    let run = |more: &[&str]| {
        let begun = Instant::now();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tope"));
        command.current_dir(room.0.path()).args(["replay", "policy.yaml", "access.log", "--json"]).args(more);
        let out = command.output().expect("the program runs");
        let took = begun.elapsed();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let summary: serde_json::Value = serde_json::from_slice(&out.stdout).expect("a summary");
        assert_eq!(summary["requests"], LINES - LINES / 1000);
        assert_eq!(summary["broken"], LINES / 1000);
        assert_eq!(summary["first_broken"]["at"]["line"], 1000);
        let rate = u128::from(LINES) * 1000 / took.as_millis().max(1);
        println!("replay {:<12} {took:>8.2?} for {LINES} lines: {rate} lines/s", more.first().unwrap_or(&"summary"));
        took
    };
    let plain = run(&[]);
    let written = run(&["--decisions", "decisions.jsonl"]);
    if !cfg!(debug_assertions) {
        assert!(plain.as_secs() < 10 && written.as_secs() < 10, "{plain:?} {written:?}");
    }
}

#[test]
fn a_bar_is_drawn_on_a_terminal_and_taken_away() {
    let room = Room::new();
    room.write("policy.yaml", POLICY);
    room.write("access.log", log(100_000));
    let tope = env!("CARGO_BIN_EXE_tope");
    // `script` gives the program a terminal; bsdutils is essential in Debian.
    let mut command = Command::new("script");
    command.args(["-qec", &format!("'{tope}' replay policy.yaml access.log"), "/dev/null"]);
    let out = command.current_dir(room.0.path()).env("TERM", "xterm").output().expect("this test needs script");
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{text}");
    assert!(text.contains(" lines  ") && text.contains(" left") && text.contains("█"), "no bar in:\n{text}");
    let summary = &text[text.rfind(" left").unwrap_or_default()..];
    assert!(summary.contains("99,900 requests"), "the summary comes after the bar:\n{text}");
}
