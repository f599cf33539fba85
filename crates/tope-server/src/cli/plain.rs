//! Limits in plain words.

use tope::core::{Algorithm, Calendar, Period, Quota, Rate, rate::Duration};

use super::view::Limit;
use crate::text::words::count;

/// `at most 5 per minute for each address, on POST /login`
pub(crate) fn limit(limit: &Limit) -> String {
    let mut text = if limit.depends_on_plan() {
        "at most what the plan says".to_owned()
    } else {
        let rates: Vec<String> = limit.on_plan(0).iter().map(|(_, rate)| how_much(rate)).collect();
        if rates.is_empty() { "no ceiling".to_owned() } else { rates.join(", and ") }
    };
    text.push(' ');
    text.push_str(&to_whom(&limit.by));
    text.push_str(", on ");
    text.push_str(if limit.on.is_empty() { "every request" } else { &limit.on });
    if !limit.except.is_empty() {
        text.push_str(" except ");
        text.push_str(&limit.except);
    }
    if let Some(cost) = &limit.cost {
        text.push_str("; ");
        text.push_str(cost);
    }
    if !limit.count.is_empty() {
        text.push_str("; only answers with ");
        text.push_str(&limit.count);
        text.push_str(" count");
    }
    if !limit.charge.is_empty() {
        text.push_str("; charged is what the answer says in ");
        text.push_str(&limit.charge);
    }
    if !limit.reserve.is_empty() {
        text.push_str(", held until then is ");
        text.push_str(&limit.reserve);
    }
    if let Some(us) = limit.wait_us {
        text.push_str("; a request waits in line for up to ");
        text.push_str(&span(us));
    }
    if let Some(us) = limit.hold_us {
        text.push_str("; a place that is lost is free again after ");
        text.push_str(&span(us));
    }
    if let Some(status) = limit.status {
        text.push_str("; a refusal is ");
        text.push_str(&status.to_string());
    }
    if limit.disabled {
        text.push_str(" (disabled)");
    } else if limit.shadow {
        text.push_str(" (shadow: counted, never refused)");
    }
    text
}

/// `at most 60 per minute, 20 in a burst`
pub(crate) fn how_much(rate: &Rate) -> String {
    match rate {
        Rate::Unlimited => "no ceiling".to_owned(),
        Rate::Quota(quota) => quota_words(quota),
        rate => format!("at most {rate}"),
    }
}

fn quota_words(quota: &Quota) -> String {
    let amount = count(quota.amount());
    if quota.amount() == 0 {
        return "nothing at all".to_owned();
    }
    let us = match quota.period() {
        Period::Calendar(calendar) => {
            let period = match calendar {
                Calendar::Day => "day, from midnight",
                Calendar::Week => "week, from Monday",
                Calendar::Month => "month, from the first",
            };
            return format!("at most {amount} each {period}");
        }
        Period::Rolling(us) => us,
    };
    let period = length(us);
    match quota.algorithm() {
        Algorithm::TokenBucket if quota.capacity() == quota.amount() => format!("at most {amount} per {period}"),
        Algorithm::TokenBucket => format!("at most {amount} per {period}, {} in a burst", count(quota.capacity())),
        Algorithm::FixedWindow => format!("at most {amount} in each {period} of the clock"),
        Algorithm::SlidingWindow => format!("at most {amount} per {period}, the {period} before counted in proportion"),
        Algorithm::SlidingLog => format!("never more than {amount} in any {period}"),
        Algorithm::Concurrency => format!("at most {amount} at once"),
    }
}

/// `one minute`, `10 seconds`
fn span(us: u64) -> String {
    let length = length(us);
    if length.starts_with(|c: char| c.is_ascii_digit()) { length } else { format!("one {length}") }
}

/// `minute`, `10 seconds`
fn length(us: u64) -> String {
    const NAMES: [(&str, &str); 7] = [
        ("w", "week"),
        ("d", "day"),
        ("h", "hour"),
        ("min", "minute"),
        ("s", "second"),
        ("ms", "millisecond"),
        ("us", "microsecond"),
    ];
    let text = Duration(us).to_string();
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (times, unit) = text.split_at(unit_at);
    let name = NAMES.iter().find(|(short, _)| *short == unit).map_or(unit, |(_, name)| name);
    if times.is_empty() { name.to_owned() } else { format!("{times} {name}s") }
}

/// `for each address`
fn to_whom(by: &[String]) -> String {
    let part = |part: &String| match part.split_once(' ') {
        Some((kind @ ("header" | "cookie" | "query"), name)) => format!("value of {kind} {name}"),
        Some(("path", name)) => format!("value of :{name}"),
        _ if part == "ip" => "address".to_owned(),
        _ => part.clone(),
    };
    let parts: Vec<String> = by.iter().filter(|part| *part != "all").map(part).collect();
    if parts.is_empty() { "in total".to_owned() } else { format!("for each {}", parts.join(" and ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(rate: &str) -> String {
        how_much(&rate.parse().expect("a rate"))
    }

    #[test]
    fn rates_read_as_people_say_them() {
        let cases = [
            ("5/min", "at most 5 per minute"),
            ("600/min burst 100", "at most 600 per minute, 100 in a burst"),
            ("5000/10s fixed-window", "at most 5,000 in each 10 seconds of the clock"),
            ("7/h sliding-window", "at most 7 per hour, the hour before counted in proportion"),
            ("5/15min sliding-log", "never more than 5 in any 15 minutes"),
            ("1M/month", "at most 1,000,000 each month, from the first"),
            ("0/min", "nothing at all"),
            ("none", "nothing at all"),
            ("unlimited", "no ceiling"),
            ("1/100ms", "at most 1 per 100 milliseconds"),
        ];
        for (rate, said) in cases {
            assert_eq!(words(rate), said, "{rate}");
        }
    }

    #[test]
    fn limits_read_as_people_say_them() {
        let rate = |text: &str| vec![(String::new(), text.parse().expect("a rate"))];
        let mut one = Limit {
            name: "login".to_owned(),
            on: "POST /login".to_owned(),
            by: vec!["ip".to_owned()],
            rates: vec![rate("5/min")],
            ..Limit::default()
        };
        assert_eq!(limit(&one), "at most 5 per minute for each address, on POST /login");
        one.rates = vec![rate("5/min"), rate("6/min")];
        one.by = vec!["client".to_owned(), "header X-Tenant".to_owned()];
        one.except = "/api/search".to_owned();
        one.status = Some(503);
        one.shadow = true;
        assert_eq!(
            limit(&one),
            "at most what the plan says for each client and value of header X-Tenant, on POST /login except \
             /api/search; a refusal is 503 (shadow: counted, never refused)"
        );
        let all = Limit { rates: vec![rate("5000/s")], by: vec!["all".to_owned()], ..Limit::default() };
        assert_eq!(limit(&all), "at most 5,000 per second in total, on every request");
    }
}
