//! What the pages say is true: their policies load, their links lead somewhere, every field is named.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages of the house, by their names.
fn pages() -> Vec<(String, String)> {
    let crates = ["tope-core", "tope", "tope-server", "tope-client"].map(|name| format!("crates/{name}/README.md"));
    let docs = ["policy", "operating", "algorithms", "protect-a-login", "uploads-and-slow-queries", "limit-tokens"]
        .map(|name| format!("docs/{name}.md"));
    let front = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(str::to_owned);
    let names = crates.into_iter().chain(docs).chain(front);
    names.map(|name| (name.clone(), fs::read_to_string(root().join(&name)).expect(&name))).collect()
}

/// The blocks of one language in a page.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).filter_map(|rest| rest.split("\n```").next()).collect()
}

fn check(policy: &str) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    write("policy.yaml", policy);
    write("keys.yaml", "a-key: { name: acme, plan: pro }\n");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tope"));
    command.current_dir(folder.path()).args(["check", "policy.yaml"]).output().expect("the program runs")
}

#[test]
fn every_policy_in_the_pages_loads_and_its_tests_pass() {
    let mut loaded = 0;
    for (name, page) in pages() {
        for policy in blocks(&page, "yaml") {
            let out = check(policy);
            assert!(out.status.success(), "{name}:\n{policy}\n{}", String::from_utf8_lossy(&out.stderr));
            loaded += 1;
        }
    }
    assert!(loaded >= 5, "only {loaded} policies were found");
}

#[test]
fn the_reference_names_every_field_and_what_is_refused_by_name() {
    let (_, page) = pages().into_iter().find(|(name, _)| name == "docs/policy.md").expect("the reference");
    let schema = fs::read_to_string(root().join("docs/policy.schema.json")).expect("the schema");
    let schema: serde_json::Value = serde_json::from_str(&schema).expect("JSON");
    let mut fields = Vec::new();
    let mut todo = vec![&schema];
    while let Some(value) = todo.pop() {
        let properties = value.get("properties").and_then(serde_json::Value::as_object);
        fields.extend(properties.into_iter().flat_map(|object| object.keys().cloned()));
        todo.extend(value.as_object().into_iter().flat_map(|object| object.values()));
        todo.extend(value.as_array().into_iter().flatten());
    }
    assert!(fields.len() > 40, "{fields:?}");
    for field in fields {
        let named = page.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == field);
        assert!(named, "docs/policy.md does not name `{field}`");
    }
    // Each word in backticks of the last section is refused, and by that name.
    let later = page.split_once("## Not in this version").expect("the section").1;
    for (text, word) in [
        ("store: redis://x", "store"),
        ("store_down: share", "store_down"),
        ("redis: { lease: 1s }", "redis"),
        ("tls: { cert: a }", "tls"),
        ("address: { proxy_protocol: true }", "proxy_protocol"),
        ("admin: { token: x }", "token"),
        ("clients: { jwt: { jwks: F } }", "jwt"),
        ("upstream: https://a", "https"),
    ] {
        let out = check(&format!("{text}\nlimits: {{ a: {{ by: ip, rate: 5/min }} }}\n"));
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.code() == Some(2) && said.contains("not in this version"), "{text}: {said}");
        assert!(said.contains(word) && later.contains(word), "{text}: {said}");
    }
    for field in ["ban", "store_down"] {
        let out = check(&format!("limits: {{ a: {{ by: ip, rate: 5/min, {field}: 1s }} }}\n"));
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(said.contains(&format!("`{field}` is not in this version")), "{field}: {said}");
        assert!(later.contains(&format!("`{field}`")), "{field}");
    }
}

fn is_source(word: &str) -> bool {
    word.contains('/') && Path::new(word).extension().is_some_and(|end| end == "rs")
}

#[test]
fn every_link_leads_to_a_file() {
    for (name, page) in pages() {
        for link in page.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.starts_with("http") || link.starts_with('#') {
                continue;
            }
            let target =
                root().join(&name).parent().expect("a folder").join(link.split('#').next().unwrap_or_default());
            assert!(target.exists(), "{name} links to {link}");
        }
        for path in page.split('`').skip(1).step_by(2).filter(|word| is_source(word)) {
            let places = ["", "crates", "crates/tope-server"].map(|place| root().join(place).join(path));
            assert!(places.iter().any(|place| place.exists()), "{name} names {path}");
        }
    }
}

#[test]
fn ci_runs_what_the_readme_says() {
    let read = |name: &str| fs::read_to_string(root().join(name)).expect(name);
    let readme = read("README.md");
    let commands: Vec<&str> = blocks(&readme, "sh");
    assert_eq!(commands.len(), 3, "{commands:?}");
    assert_eq!((commands[0], commands[2]), ("cargo run --release -- gateway examples/quickstart.yaml", "make test"));
    assert!(read(".ci/run").contains("make test"));
    assert!(read("LICENSE-APACHE").contains("END OF TERMS AND CONDITIONS"));
    assert!(read("LICENSE-MIT").contains("WITHOUT WARRANTY OF ANY KIND"));
}
