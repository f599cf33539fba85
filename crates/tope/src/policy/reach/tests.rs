//! The walk against trying every request.

use ::http::HeaderMap;
use proptest::prelude::*;

use super::*;
use crate::facts::{Client, Facts};
use crate::policy::{Policy, read};

fn segment() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("a"), Just("b"), Just("*"), Just(":n")]
}

fn pattern() -> impl Strategy<Value = String> {
    let method = prop_oneof![Just(""), Just("GET "), Just("HEAD "), Just("POST "), Just("GET,POST ")];
    let path = proptest::collection::vec(segment(), 0..4);
    (method, path, any::<bool>()).prop_map(|(method, path, tail)| {
        // A name may stand once.
        let mut named = false;
        let path: Vec<&str> = path
            .into_iter()
            .map(|one| if one == ":n" && std::mem::replace(&mut named, true) { "*" } else { one })
            .chain(tail.then_some("**"))
            .collect();
        format!("\"{method}/{}\"", path.join("/"))
    })
}

fn list(patterns: &[String]) -> String {
    format!("[{}]", patterns.join(", "))
}

prop_compose! {
    fn limit()(
        matches in proptest::collection::vec(pattern(), 0..3),
        except in proptest::collection::vec(pattern(), 0..2),
        host in prop_oneof![Just(""), Just("host: x.org, "), Just("host: '*.x.org', "), Just("host: [x.org, y.org], ")],
        rates in 1_usize..3,
    ) -> String {
        let field = |name: &str, patterns: &[String]| {
            if patterns.is_empty() { String::new() } else { format!("{name}: {}, ", list(patterns)) }
        };
        let rate = if rates == 1 { "1/s" } else { "[1/s, 2/min]" };
        format!("{{ {}{}{host}by: ip, rate: {rate} }}", field("match", &matches), field("except", &except))
    }
}

/// Every kind of request that such a policy can tell apart, and more.
fn requests(mut each: impl FnMut(&Facts<'_>)) {
    let headers = HeaderMap::new();
    let words = ["a", "b", "c"];
    let mut paths = vec![String::new()];
    let mut from = 0;
    for _ in 0..5 {
        let to = paths.len();
        for at in from..to {
            for word in words {
                paths.push(format!("{}/{word}", paths[at]));
            }
        }
        from = to;
    }
    paths[0].push('/');
    for path in &paths {
        for method in ["GET", "HEAD", "POST", "PUT"] {
            for host in ["", "x.org", "y.org", "z.x.org"] {
                each(&Facts {
                    method,
                    path,
                    other_path: None,
                    host,
                    query: None,
                    headers: &headers,
                    address: None,
                    client: Client { name: None, plan: 0 },
                    preflight: false,
                    body: None,
                    cost: None,
                });
            }
        }
    }
}

fn policy(limits: &[String], exempt: &[String]) -> Policy {
    let lines = limits.iter().enumerate().map(|(at, limit)| format!("  l{at}: {limit}\n")).collect::<Vec<_>>().concat();
    let exempt = exempt.iter().map(|pattern| format!("  - path: {pattern}\n")).collect::<Vec<_>>().concat();
    let exempt = if exempt.is_empty() { exempt } else { format!("exempt:\n{exempt}") };
    read(&format!("{exempt}limits:\n{lines}"), "random", &()).unwrap_or_else(|errors| panic!("{errors}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_walk_finds_what_trying_finds(
        limits in proptest::collection::vec(limit(), 1..6),
        exempt in proptest::collection::vec(pattern(), 0..2),
    ) {
        let policy = policy(&limits, &exempt);
        let (mut most, mut reached) = (0, HashSet::new());
        requests(|facts| {
            most = most.max(policy.charges(facts).budgets().len());
            if policy.exempt.iter().any(|exemption| exemption.frees(facts, &policy.address)) {
                return;
            }
            for (at, limit) in policy.limits.iter().enumerate() {
                if limit.matching.meet(facts).is_some() {
                    let hit = |pattern: &Pattern| pattern.matches(facts.method, facts.path, false);
                    let hits = limit.matching.patterns.iter().enumerate().filter(|(_, pattern)| hit(pattern));
                    reached.extend(hits.map(|(number, _)| (at, number)));
                }
            }
        });
        prop_assert_eq!(policy.reach.most, most);
        prop_assert_eq!(policy.reach.reached.as_ref(), Some(&reached));
        prop_assert!(at_most(&policy.limits, 1).most >= most);
    }

    #[test]
    fn a_covered_limit_never_applies_alone(outer in limit(), inner in limit()) {
        let policy = policy(&[outer, inner], &[]);
        let [outer, inner] = [0, 1].map(|at| &policy.limits[at].matching);
        if crate::policy::guard::covers(outer, inner) {
            requests(|facts| assert!(inner.meet(facts).is_none() || outer.meet(facts).is_some(), "{facts:?}"));
        }
    }

    #[test]
    fn patterns_that_share_a_path_meet(a in pattern(), b in pattern()) {
        let limits = [&a, &b].map(|text| format!("{{ match: {text}, by: ip, rate: 1/s }}"));
        let policy = policy(&limits, &[]);
        let [a, b] = [0, 1].map(|at| &policy.limits[at].matching.patterns[0]);
        let mut shared = false;
        requests(|facts| {
            let hit = |pattern: &Pattern| pattern.matches(facts.method, facts.path, false);
            shared |= hit(a) && hit(b);
        });
        prop_assert_eq!(a.meets(b), shared);
    }
}

#[test]
fn two_readings_may_meet_what_no_request_meets() {
    let text = |slash: &str| {
        let limits: String = ["a", "b"]
            .iter()
            .flat_map(|path| (0..9).map(move |n| format!("  {path}{n}: {{ match: /{path}, by: ip, rate: 1/s }}\n")))
            .collect();
        format!("paths: {{ encoded_slash: {slash} }}\nlimits:\n{limits}")
    };
    assert_eq!(read(&text("reject"), "p", &()).unwrap().reach.most, 9);
    let errors = read(&text("both"), "p", &()).unwrap_err();
    assert!(errors.problems()[0].message().starts_with("18 rates can meet in one request"));
}

#[test]
fn a_reading_that_is_exempt_counts_when_the_other_is_not() {
    let text = |slash: &str, exempt: &str| {
        let limits: String = [("a", "/e/*"), ("b", "/e/*/*")]
            .iter()
            .flat_map(|(name, path)| {
                (0..9).map(move |n| format!("  {name}{n}: {{ match: {path}, by: ip, rate: 1/s }}\n"))
            })
            .collect();
        format!("paths: {{ encoded_slash: {slash} }}\nexempt: {exempt}\nlimits:\n{limits}")
    };
    let most = |slash, exempt| match read(&text(slash, exempt), "p", &()) {
        Ok(policy) => policy.reach.most.to_string(),
        Err(errors) => errors.problems()[0].message().to_owned(),
    };
    assert_eq!(most("reject", "path /e/*"), "9");
    assert!(most("both", "path /e/*").starts_with("18 rates can meet"));
    // Each exemption takes one reading, and no request is exempt by two halves.
    assert!(most("both", "[path /e/*, path /e/*/*]").starts_with("18 rates can meet"));
    // One that takes both frees the request; where the other reading is elsewhere, the nine are charged.
    assert_eq!(most("both", "path /e/**"), "9");
}

#[test]
fn too_much_work_gives_a_safe_bound() {
    // Two patterns a limit, each with its literal elsewhere: the sets that fit double with each segment.
    let limits: Vec<String> = (0..16)
        .map(|bit| {
            let path = |own: usize| (0..32).map(|at| if at == own { "/x" } else { "/*" }).collect::<String>();
            format!("{{ match: ['{}', '{}'], by: ip, rate: 1/s }}", path(2 * bit), path(2 * bit + 1))
        })
        .collect();
    let policy = policy(&limits, &[]);
    assert_eq!(policy.reach.most, 16);
    assert!(policy.reach.reached.is_none());
}
