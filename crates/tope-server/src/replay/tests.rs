use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::rc::Rc;

use http::HeaderMap;
use tope::Budget;
use tope::core::algorithm;
use tope::core::{Algorithm, Decision, Entry, Quota, State, Verdict};
use tope::store::StoreError;

use super::decisions::Decisions;
use super::formats::{Format, Line};
use super::progress::Progress;
use super::report::Report;
use super::simulate::replay;
use super::source::Source;
use super::tally::Tally;
use crate::pass::{Caller, Outcome, Pass};

/// Whoever judges in these tests: every rate applies to every request, for each address.
struct Model {
    budgets: Vec<Budget>,
    states: HashMap<(usize, String), State>,
    judged: Vec<(u64, String)>,
}

impl Model {
    fn new(rates: &[(&str, &str)]) -> Self {
        let budget = |(name, rate): &(&str, &str)| {
            let Ok(tope::core::Rate::Quota(quota)) = rate.parse() else { panic!("{rate}") };
            let shadow = name.starts_with("shadow");
            Budget { shadow, ..Budget::new((*name).to_owned(), quota, [].into()) }
        };
        Self { budgets: rates.iter().map(budget).collect(), states: HashMap::new(), judged: Vec::new() }
    }
}

impl Pass for Model {
    fn budgets(&self) -> &[Budget] {
        &self.budgets
    }

    fn judge<'a>(
        &'a mut self,
        line: &'a Line<'a>,
        _headers: &'a HeaderMap,
        now_us: u64,
        rows: &mut Vec<(u16, Decision)>,
    ) -> Result<Outcome<'a>, StoreError> {
        self.judged.push((now_us, line.target.as_deref().unwrap_or_default().to_owned()));
        if line.target.as_deref() == Some("/..") {
            return Ok(Outcome::BadPath);
        }
        rows.clear();
        let who = line.address.map(|address| address.to_string()).unwrap_or_default();
        let mut after = Vec::new();
        for (i, budget) in self.budgets.iter().enumerate() {
            let state = self.states.get(&(i, who.clone())).copied().unwrap_or(State::FULL);
            let step = |cost| algorithm::step(&budget.quota, &[], state, now_us, cost);
            let (decision, taken) = step(line.cost.unwrap_or(1));
            after.push((step(0), taken));
            rows.push((i.try_into().expect("a good test"), decision));
        }
        let entry = |(i, decision): &(u16, Decision)| {
            let budget = &self.budgets[usize::from(*i)];
            Entry {
                name: &budget.name,
                quota: &budget.quota,
                decision: *decision,
                enforced: !budget.shadow,
                policy_item: "",
            }
        };
        let entries: Vec<_> = rows.iter().map(entry).collect();
        let verdict = Verdict::new(&entries);
        let refused_by = verdict.refused_by().map(|refused| refused.name.to_owned());
        let allowed = verdict.allowed();
        for (i, (((peek, untaken), taken), row)) in after.into_iter().zip(rows).enumerate() {
            row.1 = if !allowed && row.1.allowed() { peek } else { row.1 };
            self.states.insert((i, who.clone()), if allowed { taken } else { untaken });
        }
        let place = |name| self.budgets.iter().position(|budget| budget.name == name);
        let refused_by = refused_by.and_then(place).map(|place| place.try_into().expect("a good test"));
        let caller = line.address.map_or(Caller::Unknown, Caller::Address);
        Ok(Outcome::Judged { allowed, refused_by, caller })
    }
}

/// Bytes that can be looked at after they were written.
#[derive(Clone, Default)]
struct Kept(Rc<RefCell<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Done {
    tally: Tally,
    decisions: String,
    names: Vec<String>,
}

impl Done {
    fn text(&self, model: &Model) -> String {
        let mut text = Vec::new();
        Report::new(&self.tally, &model.budgets, &self.names).write_text(&mut text).expect("a good test");
        String::from_utf8(text).expect("a good test")
    }
}

fn run(model: &mut Model, logs: &[&str]) -> Done {
    let folder = tempfile::tempdir().expect("a good test");
    let names: Vec<String> = (1..=logs.len()).map(|number| format!("{number}.log")).collect();
    let sources: Vec<Source> = names
        .iter()
        .zip(logs)
        .map(|(name, text)| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("a good test");
            Source::new(&path)
        })
        .collect();
    let kept = Kept::default();
    let decisions = Decisions::new(Box::new(kept.clone()), &model.budgets, &names);
    let tally = replay(model, &sources, None, Some(decisions), &mut Progress::new(None)).expect("a good test");
    let decisions = String::from_utf8(kept.0.borrow().clone()).expect("a good test");
    Done { tally, decisions, names }
}

#[test]
fn decisions_are_as_the_format_says() {
    let mut model = Model::new(&[("login", "2/min"), ("shadow", "1/h"), ("all", "10/s")]);
    let line = |more: &str| format!("{{\"time\":1790000000,\"ip\":\"::1\",\"path\":\"/\"{more}}}\n");
    let log =
        [line(""), "broken\n".to_owned(), line(",\"cost\":3"), line(""), line(""), line("").replace("/\"", "/..\"")];
    let done = run(&mut model, &[&log.concat()]);
    let expected = r#"{"line": 1, "allowed": true, "refused_by": null, "limits": [{"limit": "login", "allowed": true, "remaining": 1, "reset_us": 30000000, "retry_us": 0}, {"limit": "shadow", "allowed": true, "remaining": 0, "reset_us": 3600000000, "retry_us": 0, "shadow": true}, {"limit": "all", "allowed": true, "remaining": 9, "reset_us": 100000, "retry_us": 0}]}
{"line": 3, "allowed": false, "refused_by": "login", "limits": [{"limit": "login", "allowed": false, "remaining": 1, "reset_us": 30000000, "retry_us": null}, {"limit": "shadow", "allowed": false, "remaining": 0, "reset_us": 3600000000, "retry_us": null, "shadow": true}, {"limit": "all", "allowed": true, "remaining": 9, "reset_us": 100000, "retry_us": 0}]}
{"line": 4, "allowed": true, "refused_by": null, "limits": [{"limit": "login", "allowed": true, "remaining": 0, "reset_us": 60000000, "retry_us": 0}, {"limit": "shadow", "allowed": false, "remaining": 0, "reset_us": 3600000000, "retry_us": 3600000000, "shadow": true}, {"limit": "all", "allowed": true, "remaining": 8, "reset_us": 200000, "retry_us": 0}]}
{"line": 5, "allowed": false, "refused_by": "login", "limits": [{"limit": "login", "allowed": false, "remaining": 0, "reset_us": 60000000, "retry_us": 30000000}, {"limit": "shadow", "allowed": false, "remaining": 0, "reset_us": 3600000000, "retry_us": 3600000000, "shadow": true}, {"limit": "all", "allowed": true, "remaining": 8, "reset_us": 200000, "retry_us": 0}]}
{"line": 6, "allowed": false, "refused_by": null, "status": 400, "limits": []}
"#;
    assert_eq!(done.decisions, expected);
    for line in done.decisions.lines() {
        serde_json::from_str::<serde_json::Value>(line).expect("a good test");
    }
}

#[test]
fn time_only_goes_forward_and_lines_that_are_late_are_counted() {
    let mut model = Model::new(&[]);
    let log = "{\"time\":5,\"path\":\"/a\"}\n{\"time\":3,\"path\":\"/b\"}\n\n{\"time\":5,\"path\":\"/c\"}\n{\"time\":4,\"path\":\"/d\"}";
    let done = run(&mut model, &[log, "{\"time\":2}"]);
    let at = |path: &str| (5_000_000, path.to_owned());
    assert_eq!(model.judged, [at("/a"), at("/b"), at("/c"), at("/d"), at("")]);
    assert_eq!((done.tally.late, done.tally.requests, done.tally.without_path), (3, 5, 1));
    assert!(
        done.decisions
            .ends_with("{\"file\": \"2.log\", \"line\": 1, \"allowed\": true, \"refused_by\": null, \"limits\": []}\n")
    );
}

#[test]
fn our_own_log_is_judged_in_the_order_of_the_store_at_its_own_times() {
    let mut model = Model::new(&[]);
    let line = |seq: u64, time: u64| {
        format!("{{\"time\":{time},\"seq\":{seq},\"method\":\"GET\",\"path\":\"/{seq}\",\"verdict\":\"deny\"}}\n")
    };
    let first = [line(2, 8), line(1, 9), line(4, 9)].concat();
    let done = run(&mut model, &[&first, &line(3, 7)]);
    let judged: Vec<_> = model.judged.iter().map(|(us, path)| (us / 1_000_000, path.as_str())).collect();
    assert_eq!(judged, [(9, "/1"), (8, "/2"), (7, "/3"), (9, "/4")]);
    assert_eq!((done.tally.late, done.tally.compared, done.tally.differing), (0, 4, 4));
    assert_eq!(done.tally.span_us, Some((7_000_000, 9_000_000)));
}

#[test]
fn the_summary_reads_well() {
    let mut model = Model::new(&[("login", "2/min"), ("login.2", "100/h"), ("shadow", "1/h")]);
    let line = |second: u64, ip: u64| {
        format!("198.18.0.{ip} - - [17/May/2015:10:05:{second:02} +0000] \"GET / HTTP/1.1\" 200 1\n")
    };
    let mut log: String = (0..4).map(|second| line(second, 1)).collect();
    log += "198.18.0.9 - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"cut\n";
    log += &line(2, 2);
    let done = run(&mut model, &[&log]);
    assert_eq!(
        done.text(&model),
        "\
5 requests, 2015-05-17 10:05:00 to 2015-05-17 10:05:03 UTC (3 s)

  admitted  3  60.0 %
  refused   2  40.0 %

limit            charged  refused   share  first refusal
login                  3        2  40.0 %  2015-05-17 10:05:02, 1.log:3
login.2                3        0   0.0 %  -
shadow (shadow)        2        3  60.0 %  2015-05-17 10:05:01, 1.log:2

refused most
login   198.18.0.1 (2)
shadow  198.18.0.1 (3)

busiest minute: 2015-05-17 10:05 UTC with 5 requests, 2 of them refused

note: 1 line is no request, 1.log:5:72: the line ends inside a quoted field
note: 1 line is older than one before; judged at the latest time so far
"
    );
    let json = Report::new(&done.tally, &model.budgets, &done.names).to_json();
    assert_eq!(json["limits"][0]["refused_most"][0]["caller"], "198.18.0.1");
    assert_eq!(json["first_broken"]["column"], 72);
}

#[test]
fn gzip_in_several_members_is_one_log() {
    let folder = tempfile::tempdir().expect("a good test");
    let path = folder.path().join("log");
    let mut bytes = Vec::new();
    for part in ["{\"time\":1,\"pa", "th\":\"/a\"}\n{\"time\":2,\"path\":\"/b\"}\n"] {
        let mut member = flate2::write::GzEncoder::new(&mut bytes, flate2::Compression::fast());
        member.write_all(part.as_bytes()).expect("a good test");
        member.finish().expect("a good test");
    }
    std::fs::write(&path, &bytes).expect("a good test");
    let mut model = Model::new(&[]);
    let mut progress = Progress::new(None);
    let tally =
        replay(&mut model, &[Source::new(&path)], Some(Format::Json), None, &mut progress).expect("a good test");
    assert_eq!((tally.requests, tally.broken), (2, 0));
    assert_eq!(progress.read().get(), bytes.len() as u64);

    std::fs::write(&path, &bytes[..bytes.len() - 9]).expect("a good test");
    let error =
        replay(&mut model, &[Source::new(&path)], None, None, &mut Progress::new(None)).expect_err("it is wrong");
    assert!(error.to_string().contains("can't be read"), "{error}");
}

/// The oracle's cases of several limits, as a log.
#[test]
fn decisions_equal_the_oracle() {
    let folder = std::env::var("TOPE_VECTORS")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../tope-core/tests/vectors").to_owned());
    let cases = std::fs::read_to_string(Path::new(&folder).join("request.jsonl")).expect("a good test");
    let mut compared = 0;
    for case in cases.lines() {
        let case: serde_json::Value = serde_json::from_str(case).expect("a good test");
        let shapes = case["limits"].as_array().expect("a good test");
        // The model has no sliding logs; the store's own tests have.
        if shapes.iter().any(|shape| shape["algorithm"] == "sliding-log") {
            continue;
        }
        let mut model = Model::new(&[]);
        for shape in shapes {
            let number = |name: &str| shape[name].as_u64().expect("a good test");
            let algorithm = match shape["algorithm"].as_str().expect("a good test") {
                "token-bucket" => Algorithm::TokenBucket,
                "fixed-window" => Algorithm::FixedWindow,
                _ => Algorithm::SlidingWindow,
            };
            let burst = (algorithm == Algorithm::TokenBucket).then(|| number("burst"));
            let quota = Quota::new(algorithm, number("limit"), number("period_us"), burst).expect("a good test");
            let name = shape["name"].as_str().expect("a good test").to_owned();
            model.budgets.push(Budget::new(name, quota, [].into()));
        }
        let steps = case["steps"].as_array().expect("a good test");
        let line = |step: &serde_json::Value| {
            let us = step["at_us"].as_u64().expect("a good test");
            format!(
                "{{\"time\":{}.{:06},\"ip\":\"::1\",\"path\":\"/\",\"cost\":{}}}\n",
                us / 1_000_000,
                us % 1_000_000,
                step["cost"]
            )
        };
        let done = run(&mut model, &[&steps.iter().map(line).collect::<String>()]);
        assert_eq!(done.tally.late, 0);
        for (said, step) in done.decisions.lines().zip(steps) {
            let said: serde_json::Value = serde_json::from_str(said).expect("a good test");
            assert_eq!((&said["allowed"], &said["limits"]), (&step["allowed"], &step["limits"]), "{said}");
            compared += 1;
        }
    }
    assert!(compared > 500, "{compared} steps compared");
}
