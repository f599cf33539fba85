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
            if args[0] == "gateway" {
                continue; // until its body is there
            }
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
fn a_bad_request_is_told_without_its_secrets() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut file = tempfile::NamedTempFile::new_in(&folder).expect("a file");
    file.write_all(b"limits: { all: { rate: 5/s } }\n").expect("it is written");
    let file = file.path().display().to_string();
    assert!(refused(&["explain", &file, "login"]).contains("a path begins with `/`"));
    let error = refused(&["explain", &file, "/", "-H", "X Key: hunter2"]);
    assert!(error.contains("this is no field name") && !error.contains("hunter2"), "{error}");
}
