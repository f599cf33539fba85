//! A corpus of files that are no policies: `bad/NAME.yaml`, and beside each the message, `bad/NAME.txt`. After a change
//! of the messages run with `TOPE_BLESS=1`, and read every difference.

#![allow(clippy::unwrap_used, reason = "a test that unwraps nothing fails")]

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use tope::policy::{Surroundings, read};

/// What the corpus may ask for. The values are secrets: no message may show them.
struct Around;

const SECRETS: [&str; 6] = ["sesame", "12 monkeys", "9876543210987", "hush-hush", "2cf24dba5fb0", "hello"];

impl Surroundings for Around {
    fn variable(&self, name: &str) -> Option<String> {
        match name {
            "SECRET_RATE" => Some("12 monkeys".to_owned()),
            "LARGE" => Some("9876543210987".to_owned()),
            "SECRET_WORD" => Some("hush-hush".to_owned()),
            _ => None,
        }
    }

    fn file(&self, name: &str) -> io::Result<String> {
        match name {
            "keys.yaml" => {
                Ok("sesame-open: { name: ali, plan: free }\nsesame-shut: { name: ala, plan: pro }\nsesame-ajar:\n"
                    .to_owned())
            }
            "keys-twice.yaml" => Ok("sesame-open: { name: ali }\nsesame-open: { name: ala }\n".to_owned()),
            "keys-syntax.yaml" => Ok("sesame-open: { name: ali\nsesame-shut: {}\n".to_owned()),
            _ => Err(io::Error::new(io::ErrorKind::NotFound, "no such file")),
        }
    }
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad")
}

fn names() -> BTreeSet<String> {
    let entries = std::fs::read_dir(corpus()).expect("the corpus is there").map(|entry| entry.unwrap().path());
    let yaml = entries.filter(|path| path.extension().is_some_and(|end| end == "yaml"));
    yaml.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

fn message(name: &str) -> String {
    let file = format!("{name}.yaml");
    let text = std::fs::read_to_string(corpus().join(&file)).unwrap();
    match read(&text, &file, &Around) {
        Ok(_) => panic!("{file} is a policy"),
        Err(errors) => format!("{errors}\n"),
    }
}

#[test]
fn every_bad_file_is_told_what_is_wrong() {
    let bless = std::env::var_os("TOPE_BLESS").is_some();
    let mut wrong = Vec::new();
    for name in names() {
        let told = message(&name);
        let path = corpus().join(format!("{name}.txt"));
        if bless {
            std::fs::write(&path, &told).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        if told != expected {
            wrong.push(format!("--- {name}: expected\n{expected}+++ {name}: told\n{told}"));
        }
    }
    assert!(wrong.is_empty(), "{} messages differ\n{}", wrong.len(), wrong.join("\n"));
    assert!(names().len() >= 60);
}

#[test]
fn every_message_has_a_place_and_no_secret() {
    for name in names() {
        let told = message(&name);
        let first = told.lines().next().unwrap();
        let mut parts = first.splitn(4, ':');
        let file = parts.next().unwrap();
        assert!(Path::new(file).extension().is_some_and(|end| end == "yaml"), "{name}: {first}");
        let numbers: Vec<u32> = parts.by_ref().take(2).map(|number| number.parse().unwrap()).collect();
        assert!(numbers.len() == 2 && numbers.iter().all(|number| *number > 0), "{name}: {first}");
        for secret in SECRETS {
            assert!(!told.contains(secret), "{name} shows {secret}:\n{told}");
        }
    }
}

#[test]
fn no_message_belongs_to_a_file_that_is_gone() {
    let entries = std::fs::read_dir(corpus()).unwrap().map(|entry| entry.unwrap().path());
    for path in entries.filter(|path| path.extension().is_some_and(|end| end == "txt")) {
        assert!(path.with_extension("yaml").exists(), "{}", path.display());
    }
}
