//! What docs/operating.md says of metrics and of the access log is what the program does.

use std::collections::BTreeSet;

use crate::support::{Room, Tope, curl, until};

fn operating() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operating.md");
    std::fs::read_to_string(path).expect("docs/operating.md is there")
}

/// The words in backticks at the beginning of table rows of one section.
fn first_cells(heading: &str) -> BTreeSet<String> {
    let text = operating();
    let section = text.split_once(&format!("\n## {heading}\n")).expect("the section is there").1;
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| row.split(['`', '{']).next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn every_metric_is_documented_and_no_other() {
    let room = Room::new();
    let tope = Tope::start(&room, "upstream: demo\nlimits: { all: { rate: 5/min, charge: header X-Cost } }\n");
    curl(&[&tope.url("/")]);
    let text = curl(&[&format!("{}/metrics", tope.admin)]).body;
    let families = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let told: BTreeSet<String> = families
        .filter_map(|line| line.split_once(' '))
        .map(|(name, kind)| match kind {
            "counter" => format!("{name}_total"),
            "info" => format!("{name}_info"),
            _ => name.to_owned(),
        })
        .collect();
    assert!(told.len() > 10, "{text}");
    assert_eq!(told, first_cells("Metrics"));
    // Whoever reads a histogram asks for this bucket by its name.
    assert!(text.contains("tope_decision_duration_seconds_bucket{le=\"+Inf\"} 1\n"), "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
    for line in text.lines().filter(|line| line.starts_with("# TYPE ")) {
        let name = line.split(' ').nth(2).unwrap_or_default();
        assert!(text.contains(&format!("# HELP {name} ")), "{name} has no help");
    }
}

#[test]
fn every_field_of_the_access_log_is_documented_and_no_other() {
    let room = Room::new();
    let tope = Tope::start(
        &room,
        "upstream: demo\nlimits: { all: { rate: 2/d, charge: header X-Cost }, near: { by: ip, rate: 1/d, mode: shadow } }\n",
    );
    let preflight = ["-X", "OPTIONS", "-H", "Origin: http://a.example", "-H", "Access-Control-Request-Method: PUT"];
    for _ in 0..3 {
        curl(&[&preflight[..], &[&tope.url("/")]].concat());
    }
    until("three lines are written", || room.read("access.log").lines().count() == 3);
    let mut told = BTreeSet::new();
    for line in room.read("access.log").lines() {
        let line: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line).expect("JSON");
        told.extend(line.keys().cloned());
    }
    assert_eq!(told, first_cells("The access log"));
}
