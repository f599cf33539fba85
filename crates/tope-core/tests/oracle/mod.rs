//! The oracle's vectors, read from `tests/vectors` or from the folder that `TOPE_VECTORS` names.

use std::path::PathBuf;

use serde::Deserialize;
use tope_core::{Algorithm, Calendar, Decision, Quota};

#[derive(Deserialize)]
pub(crate) struct Shape {
    pub(crate) algorithm: String,
    pub(crate) limit: u64,
    pub(crate) period_us: Option<u64>,
    pub(crate) burst: Option<u64>,
    pub(crate) unit: Option<String>,
    #[serde(default)]
    pub(crate) edges_us: Vec<u64>,
}

#[derive(Deserialize)]
pub(crate) struct Case {
    #[serde(flatten)]
    pub(crate) shape: Shape,
    pub(crate) steps: Vec<Step>,
}

#[derive(Deserialize)]
pub(crate) struct RequestCase {
    pub(crate) limits: Vec<Shape>,
    pub(crate) steps: Vec<RequestStep>,
}

#[derive(Deserialize)]
pub(crate) struct RequestStep {
    pub(crate) at_us: u64,
    pub(crate) cost: u32,
    pub(crate) allowed: bool,
    pub(crate) limits: Vec<Said>,
}

#[derive(Deserialize)]
pub(crate) struct Step {
    pub(crate) at_us: u64,
    pub(crate) cost: Option<u32>,
    #[serde(flatten)]
    pub(crate) said: Option<Said>,
    pub(crate) settle: Option<Settle>,
    pub(crate) requota: Option<Requota>,
}

#[derive(Deserialize, Debug, PartialEq)]
pub(crate) struct Said {
    pub(crate) allowed: bool,
    pub(crate) remaining: u64,
    pub(crate) reset_us: u64,
    pub(crate) retry_us: Option<u64>,
}

#[derive(Deserialize)]
pub(crate) struct Settle {
    pub(crate) taken_at_us: u64,
    pub(crate) delta: i64,
}

#[derive(Deserialize)]
pub(crate) struct Requota {
    pub(crate) limit: u64,
    pub(crate) period_us: u64,
    pub(crate) burst: u64,
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

pub(crate) fn quota(algorithm: Algorithm, limit: u64, period_us: u64, burst: Option<u64>) -> Quota {
    let burst = burst.filter(|_| algorithm == Algorithm::TokenBucket);
    Quota::new(algorithm, limit, period_us, burst).expect("a quota of the oracle is ours")
}

pub(crate) fn lines(name: &str) -> Vec<String> {
    let folder = std::env::var_os("TOPE_VECTORS")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tope-core/tests/vectors"), PathBuf::from);
    let path = folder.join(name).with_extension("jsonl");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(str::to_owned).collect()
}

impl Shape {
    pub(crate) fn quota(&self) -> Quota {
        let algorithm = match self.algorithm.as_str() {
            "token-bucket" => Algorithm::TokenBucket,
            "fixed-window" => Algorithm::FixedWindow,
            "sliding-window" => Algorithm::SlidingWindow,
            "sliding-log" => Algorithm::SlidingLog,
            "calendar" => {
                let calendar = match self.unit.as_deref() {
                    Some("day") => Calendar::Day,
                    Some("week") => Calendar::Week,
                    _ => Calendar::Month,
                };
                return Quota::calendar(self.limit, calendar).expect("a quota");
            }
            other => panic!("the oracle knows an algorithm that we don't: {other}"),
        };
        quota(algorithm, self.limit, self.period_us.expect("a period"), self.burst)
    }
}
