//! Local midnights of a time zone, as Unix microseconds: the store needs no time zone.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use tope_core::{Calendar, Quota};

/// The edges of calendar periods in one zone; each kind is made when a rate first asks for it.
pub(super) struct Edges {
    zone: TimeZone,
    made: HashMap<Calendar, Arc<[u64]>>,
}

impl Edges {
    /// The zone of this name in the data that is compiled into the program.
    pub(super) fn new(name: &str) -> Option<Self> {
        let zone = TimeZoneDatabase::bundled().get(name).ok()?;
        Some(Self { zone, made: HashMap::new() })
    }

    /// The edges in UTC.
    pub(super) fn utc() -> Self {
        Self { zone: TimeZone::UTC, made: HashMap::new() }
    }

    /// Names of zones near `name`.
    pub(super) fn nearest(name: &str) -> Option<String> {
        let names: Vec<String> = TimeZoneDatabase::bundled().available().map(|name| name.to_string()).collect();
        super::findings::nearest(name, names.iter().map(String::as_str)).map(str::to_owned)
    }

    /// The edges from 1970 to 2255, ascending.
    pub(super) fn of(&mut self, calendar: Calendar) -> Arc<[u64]> {
        let zone = &self.zone;
        let edges = self.made.entry(calendar).or_insert_with(|| edges(calendar, zone));
        Arc::clone(edges)
    }
}

fn edges(calendar: Calendar, zone: &TimeZone) -> Arc<[u64]> {
    // Before 1970 everywhere, so that the first window has a beginning.
    let mut date: Date = jiff::civil::date(1969, 12, 1);
    if calendar == Calendar::Week {
        date = date.nth_weekday(1, Weekday::Monday).expect("a Monday follows in 1969");
    }
    let step = match calendar {
        Calendar::Day => 1.day(),
        Calendar::Week => 1.week(),
        Calendar::Month => 1.month(),
    };
    let mut edges: Vec<u64> = Vec::new();
    loop {
        // A midnight that does not exist is the moment after the gap; of two, it is the first.
        let midnight =
            zone.to_timestamp(date.at(0, 0, 0, 0)).expect("dates before 2300 are within the range of every zone");
        let us = u64::try_from(midnight.as_microsecond()).unwrap_or(0);
        // A day that a zone left out (Samoa, 2011-12-30) is no window; all edges before 1970 are one, at 0.
        if edges.last().is_none_or(|last| *last < us) {
            edges.push(us);
        }
        if us > Quota::MAX_TIME_US {
            return edges.into();
        }
        date = date.checked_add(step).expect("dates before 2300 can be counted on");
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that unwraps nothing fails")]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn edges_are_the_oracles() {
        let vectors = include_str!("../../../tope-core/tests/vectors/calendar.jsonl");
        let mut seen = 0;
        for line in vectors.lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            let calendar = match case["unit"].as_str().unwrap() {
                "day" => Calendar::Day,
                "week" => Calendar::Week,
                _ => Calendar::Month,
            };
            let zone = case["timezone"].as_str().unwrap();
            let expected: Vec<u64> =
                case["edges_us"].as_array().unwrap().iter().map(|us| us.as_u64().unwrap()).collect();
            let edges = Edges::new(zone).unwrap().of(calendar);
            let from = edges.partition_point(|edge| edge < &expected[0]);
            assert_eq!(edges[from..from + expected.len()], expected, "{calendar:?} in {zone}");
            seen += 1;
        }
        assert_eq!(seen, 15);
    }

    #[test]
    fn every_moment_that_can_be_told_lies_between_two_edges() {
        for zone in ["UTC", "Pacific/Kiritimati", "Pacific/Apia", "America/Adak", "Africa/Cairo"] {
            let mut all = Edges::new(zone).unwrap();
            for calendar in [Calendar::Day, Calendar::Week, Calendar::Month] {
                let edges = all.of(calendar);
                assert_eq!(edges[0], 0, "{zone}");
                assert!(*edges.last().unwrap() > Quota::MAX_TIME_US, "{zone}");
                assert!(edges.windows(2).all(|pair| pair[0] < pair[1]), "{zone}");
            }
        }
    }

    #[test]
    fn a_zone_that_is_none_is_refused() {
        assert!(Edges::new("Europe/Madri").is_none());
        assert_eq!(Edges::nearest("Europe/Madri").unwrap(), "Europe/Madrid");
    }
}
