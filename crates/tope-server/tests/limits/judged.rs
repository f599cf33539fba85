//! Concurrent requests of several limits, judged once more by the pure steps in the order that the log tells: status,
//! who refused, what is left and how long to wait, for each request.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use tope_core::{Algorithm, Decision, Outcome, Quota};

use crate::client::{Answer, Caller, ask};
use crate::model::{Bucket, request};
use crate::support::Gateway;

const POLICY: &str = "log: { access: json }
address: { trust: [127.0.0.0/8] }
headers: [draft]
limits:
  bucket: { match: /a/**, by: ip, rate: 7/s burst 9 }
  log: { match: /b/**, by: ip, rate: 11/3s sliding-log, cost: { POST /b/**: 3 } }
  window: { match: [/a/**, /b/**], by: ip, rate: 15/2s sliding-window }
  fixed: { match: /c/**, rate: [40/s fixed-window, 400/min] }
  ceiling: { rate: 600/s burst 300, cost: { POST /c/**: 5 } }
";

/// A budget as the policy above has it.
struct Rule {
    name: &'static str,
    paths: &'static [&'static str],
    by_ip: bool,
    costs: Option<(&'static str, u32)>,
    quota: Quota,
}

fn rules() -> [Rule; 6] {
    use Algorithm::{FixedWindow, SlidingLog, SlidingWindow, TokenBucket};
    let quota =
        |algorithm, amount, seconds: u64, burst| Quota::new(algorithm, amount, seconds * 1_000_000, burst).unwrap();
    let rule = |name, paths, by_ip, costs, quota| Rule { name, paths, by_ip, costs, quota };
    [
        rule("bucket", &["/a/"], true, None, quota(TokenBucket, 7, 1, Some(9))),
        rule("log", &["/b/"], true, Some(("/b/", 3)), quota(SlidingLog, 11, 3, None)),
        rule("window", &["/a/", "/b/"], true, None, quota(SlidingWindow, 15, 2, None)),
        rule("fixed", &["/c/"], false, None, quota(FixedWindow, 40, 1, None)),
        rule("fixed.2", &["/c/"], false, None, quota(TokenBucket, 400, 60, None)),
        rule("ceiling", &["/"], false, Some(("/c/", 5)), quota(TokenBucket, 600, 1, Some(300))),
    ]
}

impl Rule {
    fn applies(&self, path: &str) -> bool {
        self.paths.iter().any(|start| path.starts_with(start))
    }

    fn cost(&self, method: &str, path: &str) -> u32 {
        self.costs.filter(|(start, _)| method == "POST" && path.starts_with(start)).map_or(1, |(_, cost)| cost)
    }
}

/// All or nothing over buckets with a cost each: the model has one cost for all, so it is asked bucket by bucket.
fn judge(buckets: &mut [(Bucket, u32)], now_us: u64) -> (bool, Vec<Decision>) {
    let alone = |(bucket, cost): &(Bucket, u32)| request(&mut [bucket.clone()], now_us, *cost).1[0];
    let decisions: Vec<Decision> = buckets.iter().map(alone).collect();
    let allowed = decisions.iter().all(Decision::allowed);
    let after = |((bucket, cost), decision): (&mut (Bucket, u32), Decision)| match (allowed, decision.allowed()) {
        (true, _) => bucket.check(now_us, *cost),
        (false, true) => bucket.check(now_us, 0),
        (false, false) => decision,
    };
    let decisions = buckets.iter_mut().zip(decisions).map(after).collect();
    (allowed, decisions)
}

/// What was told: status, `"name";r=left` of each limit named, and Retry-After.
type Told = (u16, BTreeMap<String, u64>, Option<u64>);

fn told(answer: &Answer) -> Told {
    let items = answer.field("RateLimit").unwrap().split(", ").map(|item| {
        let (name, rest) = item.split_once(";r=").unwrap();
        let left = rest.split(';').next().unwrap();
        (name.trim_matches('"').to_owned(), left.parse().unwrap())
    });
    (answer.status, items.collect(), answer.number("Retry-After"))
}

fn expected(allowed: bool, rules: &[&Rule], decisions: &[Decision]) -> (Told, Option<&'static str>) {
    let told = rules.iter().zip(decisions).filter(|(_, decision)| decision.allowed() == allowed);
    let left = told.map(|(rule, decision)| (rule.name.to_owned(), decision.remaining)).collect();
    let mut longest: Option<(u64, &'static str)> = None;
    for (rule, decision) in rules.iter().zip(decisions) {
        if let Outcome::Deny { retry_us } = decision.outcome()
            && longest.is_none_or(|(most, _)| retry_us > most)
        {
            longest = Some((retry_us, rule.name));
        }
    }
    let wait = longest.map(|(us, _)| us.div_ceil(1_000_000).max(1));
    ((if allowed { 200 } else { 429 }, left, wait), longest.map(|(_, name)| name))
}

/// 2,000 requests on 8 connections; each has a path of its own, by which its line is found.
fn answers(gateway: &Gateway) -> HashMap<String, Answer> {
    let address = gateway.address;
    let connection = move |thread: usize| {
        std::thread::spawn(move || {
            let mut caller = Caller::connect(address);
            let one = |n: usize| {
                let number = thread * 250 + n;
                let mixed = number.wrapping_mul(2_654_435_761) >> 7;
                let path = format!("/{}/{number}", ["a", "b", "c", "d"][mixed % 4]);
                let method = if (mixed / 4).is_multiple_of(5) { "POST" } else { "GET" };
                let from = format!("203.0.113.{}", mixed / 20 % 4);
                (path.clone(), caller.ask(&ask(method, &path).with("X-Forwarded-For", &from)))
            };
            (0..250).map(one).collect::<Vec<_>>()
        })
    };
    let threads: Vec<_> = (0..8).map(connection).collect();
    threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
}

#[test]
fn two_thousand_concurrent_requests_are_judged_as_one_after_the_other() {
    let mut gateway = Gateway::start(POLICY);
    let answers = answers(&gateway);
    assert!(gateway.stop().success());
    let log = std::fs::read_to_string(gateway.folder.join("access.log")).unwrap();
    let mut lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines.sort_by_key(|line| line["seq"].as_u64());
    assert_eq!((lines.len(), answers.len()), (2000, 2000));

    let all = rules();
    let mut buckets: HashMap<(&str, String), Bucket> = HashMap::new();
    let mut refusals: BTreeMap<&str, usize> = BTreeMap::new();
    for line in &lines {
        let text = |name: &str| line[name].as_str().unwrap();
        let (method, path) = (text("method"), text("path"));
        let now_us = text("time").parse::<jiff::Timestamp>().unwrap().as_microsecond().try_into().unwrap();
        let applied: Vec<&Rule> = all.iter().filter(|rule| rule.applies(path)).collect();
        let key = |rule: &Rule| (rule.name, if rule.by_ip { text("address").to_owned() } else { String::new() });
        let fresh = |rule: &Rule| Bucket::new(rule.quota, Vec::new());
        let taken = applied.iter().map(|rule| buckets.remove(&key(rule)).unwrap_or_else(|| fresh(rule)));
        let mut taken: Vec<_> = taken.zip(&applied).map(|(bucket, rule)| (bucket, rule.cost(method, path))).collect();
        let (allowed, decisions) = judge(&mut taken, now_us);
        let (expected, refused_by) = expected(allowed, &applied, &decisions);
        assert_eq!(told(&answers[path]), expected, "{line}");
        assert_eq!(line["refused_by"].as_str(), refused_by, "{line}");
        for (rule, _) in applied.iter().zip(&decisions).filter(|(_, decision)| !decision.allowed()) {
            *refusals.entry(rule.name).or_default() += 1;
        }
        buckets.extend(applied.iter().map(|rule| key(rule)).zip(taken.into_iter().map(|(bucket, _)| bucket)));
    }
    for rule in ["bucket", "log", "window", "fixed", "ceiling"] {
        assert!(refusals.contains_key(rule), "nothing was shown about {rule}: {refusals:?}");
    }
}
