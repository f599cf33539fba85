//! The commands, through the built program.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn tope(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tope")).args(args).stdin(Stdio::null()).output().expect("the program runs")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("what is said is UTF-8")
}

/// Bad input: exit code 2, nothing on stdout, and this on stderr.
fn refused(args: &[&str]) -> String {
    let output = tope(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "", "{args:?}");
    text(&output.stderr).to_owned()
}

fn at(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

#[test]
fn help_is_a_page_that_a_newcomer_understands() {
    let output = tope(&["--help"]);
    assert!(output.status.success());
    let help = text(&output.stdout);
    for word in ["gateway", "check", "explain", "replay", "key", "schema", "completions", "Begin here:", "Exit codes:"]
    {
        assert!(help.contains(word), "{word} is missing in:\n{help}");
    }
    for command in ["gateway", "check", "explain", "replay", "key", "schema", "completions"] {
        assert!(tope(&[command, "--help"]).status.success(), "{command}");
    }
    assert_eq!(text(&tope(&["--version"]).stdout), format!("tope {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn bad_arguments_are_bad_input() {
    for args in [&[][..], &["chek"], &["check"], &["replay", "policy.yaml"], &["completions", "basic"], &["key", "a"]] {
        assert!(!refused(args).is_empty());
    }
    assert!(refused(&["chek"]).contains("check"), "a near word is offered");
}

#[test]
fn a_policy_that_can_not_be_read_is_bad_input() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).expect("a file");
    write("empty.yaml", b" \n");
    write("latin.yaml", b"limits:\n  l\xe9: x\n");
    write("there.yml", b"limits: {}\n");
    let folder = folder.path();
    let directory = at(folder, "");
    let cases = [
        (at(folder, "empty.yaml"), "the file is empty\nhint: "),
        (at(folder, "latin.yaml"), "latin.yaml:2:4: the file is not UTF-8\nhint: "),
        (at(folder, "there.yaml"), "there is no such file\nhint: did you mean "),
        (at(folder, "none.yaml"), "there is no such file\n"),
        (directory, "this is a directory, not a policy file\nhint: "),
    ];
    for (file, said) in &cases {
        for args in [&["check", file][..], &["explain", file, "/"], &["replay", file, "-"], &["gateway", file]] {
            let error = refused(args);
            assert!(error.starts_with("error: ") && error.contains(said), "{args:?}: {error}");
        }
    }
}

#[test]
fn a_key_is_printed_once_with_its_line() {
    let output = tope(&["key", "acme", "pro"]);
    assert!(output.status.success());
    let (key, line) = text(&output.stdout).trim_end().split_once('\n').expect("two lines");
    assert!(key.starts_with("tope_") && key.len() == 48, "{key}");
    assert!(line.starts_with("sha256:") && line.ends_with(": { name: acme, plan: pro }"), "{line}");
    assert!(!line.contains(key));
    assert_ne!(text(&tope(&["key", "acme", "pro"]).stdout), text(&output.stdout));
    assert!(refused(&["key", "a\nb", "pro"]).contains("NAME has the character"));
}

#[test]
fn completions_are_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = tope(&["completions", shell]);
        assert!(output.status.success() && text(&output.stdout).contains("replay"), "{shell}");
    }
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tope"));
    let output = command.args(["completions", "bash"]).stdout(writer).output().expect("the program runs");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
}

#[test]
fn a_full_disk_is_told() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has one");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tope"));
    let output = command.args(["schema"]).stdout(full).output().expect("the program runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("error: standard output can't be written: "), "{}", text(&output.stderr));
}

#[test]
fn a_bad_request_is_told_without_its_secrets() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut file = tempfile::NamedTempFile::new_in(&folder).expect("a file");
    file.write_all(b"limits: { all: { rate: 5/s } }\n").expect("it is written");
    let file = file.path().display().to_string();
    assert!(refused(&["explain", &file, "login"]).contains("a path begins with `/`"));
    let error = refused(&["explain", &file, "/", "-H", "X Key: hunter2"]);
    assert!(error.contains("this is no field name") && !error.contains("hunter2"), "{error}");
}

const POLICY: &str = "\
clients: { header: X-Api-Key, keys: { hunter2: { name: acme, plan: pro } } }
plans:
  free: { api: 60/min }
  pro: { api: 600/min burst 100 }
exempt: path /healthz
limits:
  login: { match: POST /login, by: ip, rate: [5/min, 30/h] }
  api: { match: /api/**, by: client, rate: plan.api, except: /api/search, cost: { POST /api/export: 20 } }
  seen: { by: ip, rate: 1/h, mode: shadow }
tests:
  - { request: POST /login, times: 6, allowed: 5, refused_by: login }
  - { request: POST /login, after: 12s, times: 2, allowed: 1 }
  - { request: POST /api/export, headers: { X-Api-Key: hunter2 }, times: 6, allowed: 5, refused_by: api }
";

fn policy(folder: &tempfile::TempDir, text: &str) -> String {
    let file = at(folder.path(), "policy.yaml");
    std::fs::write(&file, text).expect("a file");
    file
}

#[test]
fn check_says_what_a_policy_means() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = policy(&folder, POLICY);
    let output = tope(&["check", &file]);
    let said = text(&output.stdout);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""), "{said}");
    for line in [
        "policy.yaml: 3 limits, 2 plans",
        "  login  at most 5 per minute, and at most 30 per hour for each address, on POST /login",
        "  api    at most what the plan says for each client, on /api/** except /api/search; a request costs 20 on POST \
         /api/export, others 1",
        "  seen   at most 1 per hour for each address, on every request (shadow: counted, never refused)",
        "no limit applies to path /healthz",
        "  pro   600/min burst 100",
        "a call without a known key is on plan free, counted by its address",
        "3 tests, 0 failed",
    ] {
        assert!(said.contains(line), "{line:?} is missing in:\n{said}");
    }
    assert!(!said.contains("hunter2"));
    let json: serde_json::Value = serde_json::from_slice(&tope(&["check", &file, "--json"]).stdout).expect("JSON");
    assert_eq!(
        (&json["tests"], &json["limits"][1]["plans"]["pro"][0]["rate"]),
        (&3.into(), &"600/min burst 100".into())
    );
}

#[test]
fn a_test_that_fails_is_an_answer_of_no() {
    let folder = tempfile::tempdir().expect("a folder");
    let cases = [
        ("request: POST /login, times: 6, allowed: 6", "POST /login: 5 of 6 pass, not 6; the last is refused by login"),
        ("request: POST /login, times: 6, refused_by: api", "POST /login: the last is refused by login, not by api"),
        (
            "request: POST /login, times: 5, refused_by: login",
            "POST /login: the last passes, and is not refused by login",
        ),
        ("request: POST /login%2f", "POST /login%2f: the path may not pass: 400"),
    ];
    for (test, said) in cases {
        let until_tests = POLICY.split("  - {").next().expect("a policy");
        let file = policy(&folder, &format!("{until_tests}  - {{ {test} }}\n"));
        let output = tope(&["check", &file]);
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(1), "error: 1 of 1 tests failed\n"), "{test}");
        let line = format!("{file}:11: {said}\n");
        assert!(text(&output.stdout).ends_with(&line), "{line} is missing in:\n{}", text(&output.stdout));
    }
}

#[test]
fn a_file_that_is_no_policy_says_where_and_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = policy(&folder, "upstream: https://a\nlimits:\n  all: { rate: 5/s, brust: 3 }\n");
    for args in [&["check", &file][..], &["explain", &file, "/"], &["replay", &file, "-"]] {
        let error = refused(args);
        assert!(error.starts_with(&format!("error: {file}:")), "{error}");
        assert!(error.contains(":3:21: a limit has no field `brust`"), "{error}");
        assert!(error.contains("\nhint: its fields are match, "), "{error}");
    }
}

#[test]
fn explain_says_which_limits_and_buckets() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = policy(&folder, POLICY);
    let output =
        tope(&["explain", &file, "POST /api//export/?x=1", "-H", "X-Api-Key: hunter2", "--from", "203.0.113.7"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for line in [
        "  path     /api/export, forwarded as /api/export/\n",
        "  client   acme (known by the key in header X-Api-Key)\n",
        "  login  no       -                  -  -                  it is on POST /login\n",
        "  api    yes      client acme       20  600/min burst 100  /api/**\n",
        "  seen   shadow   ip 203.0.113.7     1  1/h                every request\n",
        "  ratelimit-remaining: 80\n",
        "  429 Too Many Requests\n",
        "  retry-after: 2\n",
    ] {
        assert!(said.contains(line), "{line:?} is missing in:\n{said}");
    }
    assert!(!said.contains("hunter2"), "a key is printed:\n{said}");
    assert!(!said.contains("\"seen\""), "a shadow limit is told to the client:\n{said}");

    let nobody = tope(&["explain", &file, "/api/a", "-H", "X-Api-Key: hunter3", "--from", "203.0.113.7"]);
    assert!(text(&nobody.stdout).contains("  api    yes      ip 203.0.113.7     1  60/min  /api/**\n"));
    let exempt = tope(&["explain", &file, "/healthz"]);
    assert!(text(&exempt.stdout).contains("the request is exempt"), "{}", text(&exempt.stdout));
    let bad = tope(&["explain", &file, "/a%2fb"]);
    assert!(text(&bad.stdout).contains("the path may not pass: 400"));
}

/// A limit, and why it does not apply.
type Because = (&'static str, &'static str);

#[test]
fn explain_says_why_a_limit_does_not_apply() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = policy(
        &folder,
        "exempt: path /healthz
plans: { free: { r: unlimited } }
limits:
  skips: { by: [ip, header X-Tenant], missing: skip, rate: 9/s }
  holds: { by: ip, rate: 99/s }
  hole: { match: /a/**, except: /a/b, by: ip, rate: 9/s }
  open: { by: ip, rate: plan.r }
  never: { by: ip, rate: 9/s, mode: disabled }
  named: { by: client, rate: 9/s }
",
    );
    let preflight = ["-H", "Origin: https://a.org", "-H", "Access-Control-Request-Method: GET"];
    let cases: &[(&[&str], &[Because])] = &[
        (
            &["GET /a/b"],
            &[
                ("skips", "a part of its key is missing"),
                ("hole", "it is on /a/** except /a/b"),
                ("open", "it has no ceiling on this plan"),
                ("never", "it is disabled"),
            ],
        ),
        (&["/b"], &[("hole", "it is on /a/**"), ("skips", "a part of its key is missing")]),
        (&["/healthz"], &[("skips", "the request is exempt"), ("hole", "the request is exempt")]),
        (&[&["OPTIONS /b"][..], &preflight].concat(), &[("named", "it counts no preflights")]),
    ];
    for (request, expected) in cases {
        let output = tope(&[&["explain", &file][..], request].concat());
        let said = text(&output.stdout);
        for (limit, because) in *expected {
            let row = said.lines().find(|line| line.trim_start().starts_with(&format!("{limit} ")));
            assert!(row.is_some_and(|row| row.ends_with(because)), "{limit} {because} in:\n{said}");
        }
    }
}

#[test]
fn check_and_explain_say_that_each_plan_has_its_own_bucket() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = policy(
        &folder,
        "plans: { free: { r: 5/h }, pro: { r: 6/h } }\nlimits: { login: { match: POST /login, by: ip, rate: plan.r } }\n",
    );
    let said = tope(&["check", &file]);
    let line = "  login  at most what the plan says for each address and plan, on POST /login\n";
    assert!(text(&said.stdout).contains(line), "{}", text(&said.stdout));
    let said = tope(&["explain", &file, "POST /login", "--from", "192.0.2.1"]);
    assert!(text(&said.stdout).contains("ip 192.0.2.1, plan free"), "{}", text(&said.stdout));
}

#[test]
fn a_memory_file_that_is_not_tope_s_to_write_is_bad_input() {
    let folder = tempfile::tempdir().expect("a folder");
    let with = |name: &str| {
        let text = format!("upstream: demo\nmemory: {{ file: {name} }}\nlimits: {{ a: {{ by: ip, rate: 5/s }} }}\n");
        let file = policy(&folder, &text);
        let said = refused(&["gateway", &file]);
        assert_eq!(std::fs::read_to_string(file).expect("it is there"), text, "{said}");
        said
    };
    std::fs::write(folder.path().join("notes"), "my notes").expect("a file");
    assert!(with("policy.yaml").contains(":2:17: the buckets would be written over a file"));
    assert!(with("notes").contains("is no file of buckets"));
    assert_eq!(std::fs::read(folder.path().join("notes")).expect("it is there"), b"my notes");
    assert!(with("none/state").contains("memory.file can't be written"));
    assert!(with("notes/state").contains("memory.file can't be written"));
}

#[test]
fn the_schema_is_json() {
    let output = tope(&["schema"]);
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(schema["title"], "tope policy");
}
