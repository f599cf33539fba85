//! A refusal in plain words: which limit, and how long to wait. What is left out on purpose: how much the limit is,
//! which a policy may wish to keep to itself, and whose budget it is.

use tope_core::Verdict;

/// The `detail` of a refusal, and the message of a gRPC status.
pub(in super::super) fn detail(verdict: &Verdict<'_>) -> String {
    let name = verdict.refused_by().map_or("", |entry| entry.name);
    match verdict.retry_after_s() {
        Some(seconds) => format!("The budget of the limit '{name}' is used up. Try again in {}.", length(seconds)),
        None => format!("The limit '{name}' can never let this request pass. Waiting does not help."),
    }
}

/// A length of time as people say it: the two largest units that are not nothing, rounded up.
fn length(seconds: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")];
    let place = UNITS.iter().position(|(length, _)| seconds >= *length).unwrap_or(UNITS.len() - 1);
    let (large, _) = UNITS[place];
    let small = UNITS.get(place + 1).map_or(large, |(length, _)| *length);
    // Rounded up in the smaller unit, so that nobody comes too early.
    let rounded = seconds.div_ceil(small).saturating_mul(small);
    let count = |count: u64, unit: &str| format!("{count} {unit}{}", if count == 1 { "" } else { "s" });
    let first = count(rounded / large, UNITS[place].1);
    match (rounded % large / small, UNITS.get(place + 1)) {
        (0, _) | (_, None) => first,
        (more, Some((_, unit))) => format!("{first} {}", count(more, unit)),
    }
}

#[cfg(test)]
mod tests {
    use super::length;

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
