//! Rates as text: what is printed is read as the same, and what is none is refused where the trouble begins.

mod model;

use model::shapes::quotas;
use proptest::prelude::*;
use tope_core::rate::{Duration, RateErrorKind, parse_amount, parse_duration_us};
use tope_core::{Algorithm, Calendar, Quota, QuotaError, Rate};

fn any_rate() -> impl Strategy<Value = Rate> {
    let calendar = prop_oneof![Just(Calendar::Day), Just(Calendar::Week), Just(Calendar::Month)];
    let of = |algorithm| quotas(algorithm).prop_map(Rate::Quota);
    prop_oneof![
        4 => of(Algorithm::TokenBucket),
        1 => of(Algorithm::FixedWindow),
        1 => of(Algorithm::SlidingWindow),
        1 => of(Algorithm::SlidingLog),
        1 => (0..=Quota::MAX_AMOUNT, calendar)
            .prop_map(|(amount, calendar)| Rate::Quota(Quota::calendar(amount, calendar).expect("a quota"))),
        1 => (1..=u32::MAX).prop_map(Rate::AtOnce),
        1 => prop_oneof![Just(Rate::Unlimited), Just(Rate::Quota(Quota::NONE))],
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_printed_is_read_as_the_same(rate in any_rate()) {
        let text = rate.to_string();
        prop_assert_eq!(text.parse::<Rate>(), Ok(rate), "{}", text);
    }

    #[test]
    fn a_duration_is_read_as_the_same(us in 1..=Quota::MAX_PERIOD_US) {
        prop_assert_eq!(parse_duration_us(&Duration(us).to_string()), Some(us));
    }

    #[test]
    fn no_text_is_a_panic_and_the_place_is_in_it(
        text in prop_oneof![any::<String>(), "[0-9]{1,21}[kM_]?/[a-z0-9_]{0,6}( (burst|fixed-window|x) ?[0-9kM]*){0,2}"],
    ) {
        match text.parse::<Rate>() {
            Ok(rate) => prop_assert_eq!(rate.to_string().parse::<Rate>(), Ok(rate)),
            Err(error) => prop_assert!(error.at <= text.len() && text.is_char_boundary(error.at), "{}", error.at),
        }
        let _ = (parse_amount(&text), parse_duration_us(&text));
    }
}

#[test]
fn rates_as_people_write_them() {
    let bucket = |amount, period_us, burst| {
        Rate::Quota(Quota::new(Algorithm::TokenBucket, amount, period_us, burst).expect("a quota"))
    };
    let rows = [
        ("60/min", bucket(60, 60_000_000, None), "60/min"),
        ("600/min burst 100", bucket(600, 60_000_000, Some(100)), "600/min burst 100"),
        ("  600/min   burst  100 token-bucket ", bucket(600, 60_000_000, Some(100)), "600/min burst 100"),
        ("600/min token-bucket burst 600", bucket(600, 60_000_000, None), "600/min"),
        ("10k/d", bucket(10_000, 86_400_000_000, None), "10000/d"),
        ("5M/24h", bucket(5_000_000, 86_400_000_000, None), "5000000/d"),
        ("50_000/90s", bucket(50_000, 90_000_000, None), "50000/90s"),
        ("1/1_000us", bucket(1, 1_000, None), "1/ms"),
        ("1/sec", bucket(1, 1_000_000, None), "1/s"),
        ("1/400d", bucket(1, Quota::MAX_PERIOD_US, None), "1/400d"),
        ("0/min", bucket(0, 60_000_000, None), "0/min"),
    ];
    for (text, rate, printed) in rows {
        assert_eq!(text.parse(), Ok(rate), "{text}");
        assert_eq!(rate.to_string(), printed, "{text}");
    }
    assert_eq!("none".parse(), Ok(Rate::Quota(Quota::NONE)));
    assert_eq!("unlimited".parse(), Ok(Rate::Unlimited));
    assert_eq!("4 at once".parse(), Ok(Rate::AtOnce(4)));
    assert_eq!("500/day".parse(), Ok(Rate::Quota(Quota::calendar(500, Calendar::Day).expect("a quota"))));
}

#[test]
fn what_is_no_rate_is_refused_where_the_trouble_begins() {
    use RateErrorKind::{Ambiguous, Amount, NoRate, Tail, Unit};
    let quota = RateErrorKind::Quota;
    let rows = [
        ("", 0, NoRate),
        ("   ", 0, NoRate),
        ("60", 0, NoRate),
        ("24h", 0, NoRate),
        ("unlimited please", 0, NoRate),
        ("none 1", 0, NoRate),
        ("4 at", 0, NoRate),
        ("4 at once now", 0, NoRate),
        (" 0 at once", 1, Amount),
        ("4294967296 at once", 0, Amount),
        ("/min", 0, Amount),
        ("x/min", 0, Amount),
        ("1.5/min", 0, Amount),
        ("-1/min", 0, Amount),
        ("_1/min", 0, Amount),
        ("1_/min", 0, Amount),
        ("k/min", 0, Amount),
        ("1K/min", 0, Amount),
        ("18446744073709551616/min", 0, Amount),
        ("  \u{661}/min", 2, Amount),
        ("60/m", 3, Ambiguous),
        ("60/5m", 3, Ambiguous),
        ("60/", 3, Unit),
        ("60/10", 3, Unit),
        ("60/minute", 3, Unit),
        ("60/ min", 3, Unit),
        ("60/min/s", 3, Unit),
        ("60/min burst", 7, Tail),
        ("60/min burst x", 13, Amount),
        ("60/min burst 1 burst 2", 15, Tail),
        ("60/min bursts 1", 7, Tail),
        ("60/min leaky-bucket", 7, Tail),
        ("60/min fixed-window sliding-log", 20, Tail),
        ("60/day burst 5", 3, RateErrorKind::Calendar),
        ("60/month sliding-log", 3, RateErrorKind::Calendar),
        ("60/0s", 0, quota(QuotaError::Period(0))),
        ("60/401d", 0, quota(QuotaError::Period(401 * 86_400_000_000))),
        ("60/99999999999999999999d", 0, quota(QuotaError::Period(u64::MAX))),
        (" 1000000000001/min", 1, quota(QuotaError::Amount(1_000_000_000_001))),
        ("60/min burst 0", 0, quota(QuotaError::NoBurst)),
        ("60/min burst 5 fixed-window", 0, quota(QuotaError::Burst(Algorithm::FixedWindow))),
        ("5000M/min sliding-log", 0, quota(QuotaError::Paired(Algorithm::SlidingLog, 5_000_000_000))),
        ("999999999989/400d", 0, quota(QuotaError::Ticks(999_999_999_989))),
    ];
    for (text, at, kind) in rows {
        let error = text.parse::<Rate>().expect_err(text);
        assert_eq!((error.at, error.kind), (at, kind), "{text:?}: {error}");
        assert!(!error.hint().is_empty() && !error.to_string().is_empty());
    }
}
