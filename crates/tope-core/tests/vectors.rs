//! Every vector of the oracle, every field. `TOPE_VECTORS` names another folder of the same form.

mod model;
mod oracle;

use model::{Bucket, request};
use oracle::{Case, RequestCase, Said, lines, quota};

fn bucket(shape: &oracle::Shape) -> Bucket {
    Bucket::new(shape.quota(), shape.edges_us.clone())
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
