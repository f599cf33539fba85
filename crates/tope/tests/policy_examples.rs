//! Every example is a policy without warnings, and valid by the schema.

#![allow(clippy::unwrap_used, reason = "a test that unwraps nothing fails")]

use std::path::{Path, PathBuf};

use serde_json::Value;
use tope::policy::{Policy, read, schema};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn examples() -> Vec<(String, String)> {
    let folder = std::fs::read_dir(root().join("examples")).expect("there are examples");
    let paths =
        folder.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|end| end == "yaml"));
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    let mut examples: Vec<_> = paths.map(|path| (name(&path), std::fs::read_to_string(&path).unwrap())).collect();
    examples.sort();
    examples
}

fn example(wanted: &str) -> Policy {
    let (name, text) = examples().into_iter().find(|(name, _)| name == wanted).expect("the example is there");
    read(&text, &name, &()).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn every_example_is_a_policy_without_warnings() {
    assert!(examples().len() >= 5);
    for (name, text) in examples() {
        let policy = read(&text, &name, &()).unwrap_or_else(|errors| panic!("{errors}"));
        assert!(!policy.limits().is_empty());
        assert!(policy.warnings().is_empty(), "{}", policy.warnings()[0]);
    }
}

#[test]
fn the_schema_is_fresh() {
    let path = root().join("docs/policy.schema.json");
    let fresh = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    if std::env::var_os("TOPE_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &fresh).unwrap();
    }
    let kept = std::fs::read_to_string(&path).expect("docs/policy.schema.json is committed");
    assert!(kept == fresh, "docs/policy.schema.json is stale: run this test with TOPE_BLESS=1");
}

#[test]
fn every_example_is_valid_by_the_schema() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for (name, text) in examples() {
        let value: Value = serde_saphyr::from_str(&text).unwrap();
        let errors: Vec<String> = validator.iter_errors(&value).map(|error| format!("{name}: {error}")).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
}

#[test]
fn the_schema_refuses_what_we_refuse() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for broken in [
        "limts: {}",
        "limits: { a: { rate: 5/m } }",
        "limits: { a: { by: ip } }",
        "limits: { a: { rate: } }",
        "limits: { a: { rate: 5/min, mode: off } }",
        "limits: { a: { rate: 5/min, ban: 1s } }",
        "store: redis://x",
        "timeouts: { header: 10 }",
        "headers: tripel",
    ] {
        let value: Value = serde_saphyr::from_str(broken).unwrap();
        assert!(!validator.is_valid(&value), "{broken}");
        assert!(read(broken, "broken", &()).is_err(), "{broken}");
    }
}

#[test]
fn the_quick_start_has_the_four_kinds_of_limit() {
    let policy = example("quickstart.yaml");
    let told: Vec<_> =
        policy.limits().iter().map(|limit| (limit.name(), limit.by_text(), limit.match_text())).collect();
    let expected = [
        ("login", "ip", "POST /login"),
        ("api", "client", "/**; except /search"),
        ("search", "client", "/search"),
        ("ceiling", "all", "/**"),
    ];
    assert_eq!(told, expected);
    assert!(policy.limits()[1].depends_on_plan());
    assert_eq!(policy.plans(), ["free", "pro"]);
}
