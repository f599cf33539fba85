//! A refusal in plain words: which limit, and how long to wait. What is left out on purpose: how much the limit is,
//! which a policy may wish to keep to itself, and whose budget it is.

use tope_core::wire::text::write_digits;
use tope_core::{Algorithm, Entry, Verdict};

/// The `detail` of a refusal, and the message of a gRPC status. Pieced together by hand: it is made for every refusal.
pub(in super::super) fn detail(verdict: &Verdict<'_>) -> String {
    let name = verdict.refused_by().map_or("", |entry| entry.name);
    let mut text = String::with_capacity(128);
    if let Some(seconds) = verdict.retry_after_s() {
        let in_flight = |entry: &Entry<'_>| entry.quota.algorithm() == Algorithm::Concurrency;
        let (before, after) = if verdict.refused_by().is_some_and(in_flight) {
            ("As many requests as the limit '", "' allows at once are under way. Try again in ")
        } else {
            ("The budget of the limit '", "' is used up. Try again in ")
        };
        text += before;
        text += name;
        text += after;
        push_length(&mut text, seconds);
        text.push('.');
    } else {
        text += "The limit '";
        text += name;
        text += "' can never let this request pass. Waiting does not help.";
    }
    text
}

/// A length of time as people say it: the two largest units that are not nothing, rounded up.
fn push_length(text: &mut String, seconds: u64) {
    const UNITS: [(u64, &str); 4] = [(86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")];
    let place = UNITS.iter().position(|(length, _)| seconds >= *length).unwrap_or(UNITS.len() - 1);
    let (large, unit) = UNITS[place];
    let (small, smaller) = UNITS.get(place + 1).copied().unwrap_or((large, ""));
    // Rounded up in the smaller unit, so that nobody comes too early.
    let rounded = seconds.div_ceil(small).saturating_mul(small);
    push_count(text, rounded / large, unit);
    let more = rounded % large / small;
    if more > 0 {
        text.push(' ');
        push_count(text, more, smaller);
    }
}

fn push_count(text: &mut String, count: u64, unit: &str) {
    write_digits(text, count).expect("a string takes all");
    *text += " ";
    *text += unit;
    if count != 1 {
        *text += "s";
    }
}

#[cfg(test)]
mod tests {
    use super::push_length;

    fn length(seconds: u64) -> String {
        let mut text = String::new();
        push_length(&mut text, seconds);
        text
    }

    #[test]
    fn lengths_are_never_told_too_short() {
        let rows = [
            (1, "1 second"),
            (59, "59 seconds"),
            (60, "1 minute"),
            (61, "1 minute 1 second"),
            (3_599, "59 minutes 59 seconds"),
            (3_600, "1 hour"),
            (3_601, "1 hour 1 minute"),
            (7_199, "2 hours"),
            (86_400, "1 day"),
            (90_001, "1 day 2 hours"),
            (400 * 86_400, "400 days"),
        ];
        for (seconds, expected) in rows {
            assert_eq!(length(seconds), expected);
        }
        assert!(length(u64::MAX).contains("days"));
    }
}
