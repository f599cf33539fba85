use proptest::prelude::*;
use sfv::{ListEntry, Parser};
use tope_core::algorithm::step;
use tope_core::{Algorithm, Decision, Entry, Quota, State};

use super::*;

const NOW: u64 = 1_790_000_000_000_000;
const BOTH: &[Dialect] = &[Dialect::Triple, Dialect::Draft];

/// What a bucket decides about its last charge of one unit, after `used` units at the same moment.
pub(crate) fn after(quota: &Quota, used: u32) -> Decision {
    let (_, state) = step(quota, &[], State::FULL, NOW, used);
    step(quota, &[], state, NOW, 1).0
}

pub(crate) fn entry<'a>(name: &'a str, quota: &'a Quota, used: u32) -> Entry<'a> {
    Entry { name, quota, decision: after(quota, used), enforced: true, policy_item: "" }
}

pub(crate) fn quota(amount: u64, period_s: u64) -> Quota {
    Quota::new(Algorithm::TokenBucket, amount, period_s * 1_000_000, None).expect("a quota")
}

fn lines(headers: &HeaderMap) -> Vec<String> {
    headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().expect("ASCII"))).collect()
}

fn written(headers: &[(&'static str, &str)], entries: &[Entry<'_>], dialects: &[Dialect]) -> Vec<String> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, value.parse().expect("a value"));
    }
    write(&mut map, &Verdict::new(entries), dialects, NOW);
    lines(&map)
}

#[test]
fn an_admitted_request_hears_of_all_limits_and_first_of_the_tightest() {
    let (api, ceiling) = (quota(60, 60), quota(5000, 1));
    let entries = [entry("ceiling", &ceiling, 9), entry("api", &api, 18)];
    assert_eq!(
        written(&[], &entries, BOTH),
        [
            "ratelimit-limit: 60",
            "ratelimit-remaining: 41",
            "ratelimit-reset: 19",
            "ratelimit: \"api\";r=41;t=41, \"ceiling\";r=4990;t=1",
            "ratelimit-policy: \"api\";q=60;w=60, \"ceiling\";q=5000;w=1",
        ]
    );
}

#[test]
fn a_refused_request_hears_of_the_limits_that_refused() {
    let (api, day, search) = (quota(60, 60), quota(1000, 86_400), quota(5, 60));
    let entries = [entry("api", &api, 60), entry("day", &day, 60), entry("search", &search, 5)];
    let mut headers = HeaderMap::new();
    write(&mut headers, &Verdict::new(&entries), BOTH, NOW);
    write_refusal(&mut headers, &Verdict::new(&entries));
    assert_eq!(
        lines(&headers),
        [
            "ratelimit-limit: 5",
            "ratelimit-remaining: 0",
            "ratelimit-reset: 12",
            "ratelimit: \"search\";r=0;t=12, \"api\";r=0;t=1",
            "ratelimit-policy: \"search\";q=5;w=60, \"api\";q=60;w=60",
            "cache-control: no-store",
            "retry-after: 12",
        ]
    );
}

#[test]
fn a_request_that_can_never_pass_is_told_no_wait() {
    let entries = [entry("closed", &Quota::NONE, 0)];
    let mut headers = HeaderMap::new();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=60"));
    write(&mut headers, &Verdict::new(&entries), BOTH, NOW);
    write_refusal(&mut headers, &Verdict::new(&entries));
    assert_eq!(
        lines(&headers),
        [
            "cache-control: no-store",
            "ratelimit-limit: 0",
            "ratelimit-remaining: 0",
            "ratelimit-reset: 0",
            "ratelimit: \"closed\";r=0",
            "ratelimit-policy: \"closed\";q=0;w=1",
        ]
    );
}

#[test]
fn github_style_names_the_moment() {
    let api = quota(60, 60);
    assert_eq!(
        written(&[], &[entry("api", &api, 18)], &[Dialect::XRateLimit, Dialect::XRateLimit]),
        [
            "x-ratelimit-limit: 60",
            "x-ratelimit-remaining: 41",
            "x-ratelimit-used: 19",
            "x-ratelimit-reset: 1790000019",
            "x-ratelimit-resource: api",
        ]
    );
}

#[test]
fn nothing_is_said_of_shadow_limits_or_without_limits() {
    let api = quota(60, 60);
    let shadow = Entry { enforced: false, ..entry("api", &api, 60) };
    assert!(written(&[], &[shadow], BOTH).is_empty());
    assert!(written(&[], &[], BOTH).is_empty());
    assert!(written(&[], &[entry("api", &api, 1)], &[]).is_empty());
    let seen = written(&[], &[shadow, entry("b", &api, 1)], BOTH);
    assert!(!seen.iter().any(|line| line.contains("api")), "{seen:?}");
}

#[test]
fn an_upstreams_lists_stay_behind_ours() {
    let api = quota(60, 60);
    let upstream = [
        ("ratelimit", "\"theirs\";r=1;t=2;x=\"a\\\",b\", tok;r=1"),
        ("ratelimit", "limit=100, remaining=50, reset=5"),
        ("ratelimit", "\"more\";r=7"),
        ("ratelimit-policy", "100;w=60"),
        ("ratelimit-policy", "\"broken"),
    ];
    assert_eq!(
        written(&upstream, &[entry("api", &api, 18)], &[Dialect::Draft, Dialect::Draft]),
        [
            "ratelimit: \"api\";r=41;t=41",
            "ratelimit: \"theirs\";r=1;t=2;x=\"a\\\",b\", tok;r=1",
            "ratelimit: \"more\";r=7",
            "ratelimit-policy: \"api\";q=60;w=60",
            "ratelimit-policy: 100;w=60",
        ]
    );
}

#[test]
fn of_two_triples_the_tighter_goes_out() {
    let api = quota(60, 60);
    let ours = ["ratelimit-limit: 60", "ratelimit-remaining: 41", "ratelimit-reset: 19"];
    let theirs = |remaining| [("ratelimit-limit", "9"), ("ratelimit-remaining", remaining), ("ratelimit-reset", "3")];
    let seen = |upstream: &[(&'static str, &str)]| written(upstream, &[entry("api", &api, 18)], &[Dialect::Triple]);
    for tighter in ["0", "40", "007"] {
        assert_eq!(
            seen(&theirs(tighter)),
            ["ratelimit-limit: 9", &format!("ratelimit-remaining: {tighter}"), "ratelimit-reset: 3"]
        );
    }
    for looser in ["41", "42", "99999999999999999999999", "-1", "", "4.5", "1, 2"] {
        assert_eq!(seen(&theirs(looser)), ours, "{looser}");
    }
    assert_eq!(seen(&[("ratelimit-remaining", "1"), ("ratelimit-remaining", "2")]).len(), 3);

    let x = written(&[("x-ratelimit-remaining", "3")], &[entry("api", &api, 18)], &[Dialect::XRateLimit]);
    assert_eq!(x, ["x-ratelimit-remaining: 3"]);
}

#[test]
fn at_most_eight_limits_are_listed() {
    let api = quota(60, 60);
    let entries: Vec<_> = (0..16).map(|used| entry("api", &api, used)).collect();
    let seen = written(&[], &entries, &[Dialect::Draft]);
    assert_eq!(seen[0].matches("\"api\"").count(), 8);
    assert!(seen[0].starts_with("ratelimit: \"api\";r=44;"), "{seen:?}");
}

#[test]
fn a_name_that_no_policy_has_still_makes_a_field() {
    let api = quota(60, 60);
    let seen = written(&[], &[entry("a\"\\\u{e9}\n", &api, 0)], &[Dialect::Draft, Dialect::XRateLimit]);
    assert_eq!(seen[0], "ratelimit: \"a\\\"\\\\__\";r=59;t=59");
    assert!(seen.iter().all(|line| !line.starts_with("x-ratelimit-resource")));
}

#[test]
fn a_full_map_is_no_panic() {
    let mut headers = HeaderMap::new();
    for number in 0.. {
        let name = HeaderName::try_from(format!("x-{number}")).expect("a name");
        if headers.try_insert(name, HeaderValue::from_static("1")).is_err() {
            break;
        }
    }
    let api = quota(60, 60);
    write(&mut headers, &Verdict::new(&[entry("api", &api, 60)]), BOTH, NOW);
    write_refusal(&mut headers, &Verdict::new(&[entry("api", &api, 60)]));
}

proptest! {
    #[test]
    fn any_upstream_fields_leave_a_readable_list(
        theirs in proptest::collection::vec(
            prop_oneof!["[ -~]{0,40}", "(\"[a-z]\";r=[0-9]{1,3}(;t=[0-9])?(, ?)?){1,3}", "[a-z\";=,: ]{0,12}",
                ":[a-zA-Z+/=]{0,6}:?", "-?[0-9]{0,17}[.]?[0-9]{0,4}", "\"a\";x=-?[0-9]{0,17}[.]?[0-9]{0,4}"], 0..4),
    ) {
        let api = quota(60, 60);
        let mut headers = HeaderMap::new();
        for line in &theirs {
            headers.append(&DRAFT[0], line.parse().expect("a value"));
        }
        write(&mut headers, &Verdict::new(&[entry("api", &api, 18)]), BOTH, NOW);
        let joined = headers.get_all(&DRAFT[0]).iter().map(HeaderValue::as_bytes).collect::<Vec<_>>().join(&b", "[..]);
        let list: sfv::List = Parser::new(&joined).parse().expect("a list");
        let ListEntry::Item(first) = &list[0] else { panic!("an item") };
        prop_assert_eq!(first.bare_item.as_string().map(sfv::StringRef::as_str), Some("api"));
    }
}

/// `cargo test --release -p tope http::fields -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
#[expect(clippy::print_stdout, reason = "it is read by a person")]
#[expect(clippy::disallowed_methods, reason = "a measurement")]
fn how_long_three_limits_take() {
    let (api, ceiling, day) = (quota(600, 60), quota(5000, 1), quota(10_000, 86_400));
    let entries = [entry("api", &api, 18), entry("ceiling", &ceiling, 9), entry("day", &day, 4_000)];
    for dialects in [&BOTH[..1], &BOTH[1..], BOTH] {
        let mut best = u128::MAX;
        for _ in 0..20 {
            let start = std::time::Instant::now();
            for _ in 0..100_000 {
                let mut headers = HeaderMap::with_capacity(16);
                write(&mut headers, &std::hint::black_box(Verdict::new(&entries)), dialects, NOW);
                std::hint::black_box(&headers);
            }
            best = best.min(start.elapsed().as_nanos() / 100_000);
        }
        println!("three limits, {dialects:?}, with a new map of 16: {best} ns");
    }
}
