//! Every vector of the oracle, every field. `TOPE_VECTORS` names another folder of the same form.

mod model;

use std::path::PathBuf;

use model::{Bucket, request};
use serde::Deserialize;
use tope_core::{Algorithm, Calendar, Decision, Quota};

#[derive(Deserialize)]
struct Shape {
    algorithm: String,
    limit: u64,
    period_us: Option<u64>,
    burst: Option<u64>,
    unit: Option<String>,
    #[serde(default)]
    edges_us: Vec<u64>,
}

#[derive(Deserialize)]
struct Case {
    #[serde(flatten)]
    shape: Shape,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct RequestCase {
    limits: Vec<Shape>,
    steps: Vec<RequestStep>,
}

#[derive(Deserialize)]
struct RequestStep {
    at_us: u64,
    cost: u32,
    allowed: bool,
    limits: Vec<Said>,
}

#[derive(Deserialize)]
struct Step {
    at_us: u64,
    cost: Option<u32>,
    #[serde(flatten)]
    said: Option<Said>,
    settle: Option<Settle>,
    requota: Option<Requota>,
}

#[derive(Deserialize, Debug, PartialEq)]
struct Said {
    allowed: bool,
    remaining: u64,
    reset_us: u64,
    retry_us: Option<u64>,
}

#[derive(Deserialize)]
struct Settle {
    taken_at_us: u64,
    delta: i64,
}

#[derive(Deserialize)]
struct Requota {
    limit: u64,
    period_us: u64,
    burst: u64,
}

impl From<Decision> for Said {
    fn from(decision: Decision) -> Self {
        Self {
            allowed: decision.allowed(),
            remaining: decision.remaining,
            reset_us: decision.reset_us,
            retry_us: decision.retry_us(),
        }
    }
}

fn bucket(shape: &Shape) -> Bucket {
    let algorithm = match shape.algorithm.as_str() {
        "token-bucket" => Algorithm::TokenBucket,
        "fixed-window" => Algorithm::FixedWindow,
        "sliding-window" => Algorithm::SlidingWindow,
        "sliding-log" => Algorithm::SlidingLog,
        "calendar" => {
            let calendar = match shape.unit.as_deref() {
                Some("day") => Calendar::Day,
                Some("week") => Calendar::Week,
                _ => Calendar::Month,
            };
            return Bucket::new(Quota::calendar(shape.limit, calendar).expect("a quota"), shape.edges_us.clone());
        }
        other => panic!("the oracle knows an algorithm that we don't: {other}"),
    };
    Bucket::new(quota(algorithm, shape.limit, shape.period_us.expect("a period"), shape.burst), Vec::new())
}

fn quota(algorithm: Algorithm, limit: u64, period_us: u64, burst: Option<u64>) -> Quota {
    let burst = burst.filter(|_| algorithm == Algorithm::TokenBucket);
    Quota::new(algorithm, limit, period_us, burst).expect("a quota of the oracle is ours")
}

fn lines(name: &str) -> Vec<String> {
    let folder = std::env::var_os("TOPE_VECTORS")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors"), PathBuf::from);
    let path = folder.join(name).with_extension("jsonl");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(str::to_owned).collect()
}

fn run(name: &str) {
    let mut checked = 0;
    for (number, line) in lines(name).iter().enumerate() {
        let case: Case = serde_json::from_str(line).expect("a case");
        let mut bucket = bucket(&case.shape);
        for step in case.steps {
            if let Some(settle) = step.settle {
                bucket.settle(settle.taken_at_us, step.at_us, settle.delta);
            } else if let Some(new) = step.requota {
                let burst = Some(new.burst);
                bucket.requota(quota(bucket.quota.algorithm(), new.limit, new.period_us, burst), step.at_us);
            } else {
                let cost = step.cost.expect("a check has a cost");
                let said = Said::from(bucket.check(step.at_us, cost));
                assert_eq!(Some(said), step.said, "{name}, case {number}: {cost} units at {}", step.at_us);
                checked += 1;
            }
        }
    }
    assert!(checked > 100, "{name} has only {checked} checks");
}

#[test]
fn token_bucket() {
    run("token-bucket");
}

#[test]
fn fixed_window() {
    run("fixed-window");
}

#[test]
fn sliding_window() {
    run("sliding-window");
}

#[test]
fn sliding_log() {
    run("sliding-log");
}

#[test]
fn calendar() {
    run("calendar");
}

#[test]
fn settle() {
    run("settle");
}

#[test]
fn requota() {
    run("requota");
}

#[test]
fn requests_under_several_limits() {
    for (number, line) in lines("request").iter().enumerate() {
        let case: RequestCase = serde_json::from_str(line).expect("a case");
        let mut buckets: Vec<Bucket> = case.limits.iter().map(bucket).collect();
        for step in case.steps {
            let (allowed, decisions) = request(&mut buckets, step.at_us, step.cost);
            let said: Vec<Said> = decisions.into_iter().map(Said::from).collect();
            assert_eq!((allowed, said), (step.allowed, step.limits), "case {number} at {}", step.at_us);
        }
    }
}
