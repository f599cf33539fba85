//! Rates as they are written: `5/min`, `plan.api`, an object, or a list of them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use tope_core::rate::{RateError, RateErrorKind, parse_amount, parse_duration_us};
use tope_core::{Algorithm, Calendar, Quota, Rate};

use super::record::{Many, Read, described, place_in, record, scalar};
use super::scalar::{Amount, schema, words};
use crate::policy::document::{Kind, Node};
use crate::policy::error::{At, Place};
use crate::policy::findings::{Findings, nearest};
use crate::policy::traps;

/// How much: a rate, or the name of a column of the plans.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Written {
    /// `60/min burst 20`, `unlimited`, `none`, or the same as an object.
    Rate(Rate),
    /// `plan.api`: what the caller's plan says in column `api`.
    Plan(String),
}

/// One rate, or a list of rates that all apply.
pub type Rates = Many<Written>;

words! {
    /// An algorithm, by its name.
    AlgorithmWord is "algorithm" {
        /// A bucket that refills continuously.
        #[default]
        TokenBucket = "token-bucket",
        /// A counter that starts anew at each aligned edge.
        FixedWindow = "fixed-window",
        /// Two windows, the earlier in proportion to its overlap.
        SlidingWindow = "sliding-window",
        /// At most so many in any period.
        SlidingLog = "sliding-log",
    }
}

impl From<AlgorithmWord> for Algorithm {
    fn from(word: AlgorithmWord) -> Self {
        match word {
            AlgorithmWord::TokenBucket => Self::TokenBucket,
            AlgorithmWord::FixedWindow => Self::FixedWindow,
            AlgorithmWord::SlidingWindow => Self::SlidingWindow,
            AlgorithmWord::SlidingLog => Self::SlidingLog,
        }
    }
}

record! {
    /// A rate as an object, for programs that write policies.
    RateObject is "a rate" {
        /// Units per period.
        #[schemars(required)]
        amount: At<Amount> = "amount",
        /// The period: `1min`, `24h`, or the calendar's `day`, `week`, `month`.
        #[schemars(required)]
        per: At<String> = "per",
        /// The most units a token bucket holds; the amount unless said.
        burst: At<Amount> = "burst",
        /// How it is counted.
        algorithm: At<AlgorithmWord> = "algorithm",
    }
    later []
}

impl Read for Written {
    fn read(node: &Node, findings: &mut Findings) -> Option<Self> {
        match &node.kind {
            Kind::Map(_) => object(node, findings).map(Self::Rate),
            Kind::Scalar(_) => text(node, findings),
            Kind::Null | Kind::List(_) => {
                findings
                    .blame(node.place, format!("a rate is expected here, and this is {}", described(node)))
                    .hint("write AMOUNT/PERIOD, `N at once`, `plan.COLUMN`, `unlimited` or `none`");
                None
            }
        }
    }
}

fn text(node: &Node, findings: &mut Findings) -> Option<Written> {
    let text = scalar(node, "a rate", findings)?.trim_end();
    if let Some(column) = text.strip_prefix("plan.") {
        return Some(Written::Plan(column.to_owned()));
    }
    match text.parse::<Rate>() {
        Ok(rate) => Some(Written::Rate(rate)),
        Err(error) => {
            let place = place_in(node, text, error.at, findings);
            blame(&error, text, place, findings);
            None
        }
    }
}

fn blame(error: &RateError, text: &str, place: Place, findings: &mut Findings) {
    let word = text.get(error.at..).and_then(|tail| tail.split_ascii_whitespace().next()).unwrap_or_default();
    let hint = match error.kind {
        RateErrorKind::NoRate if traps::is_sexagesimal(text) => {
            "`1:30` is a number of seconds to some readers of YAML; write AMOUNT/PERIOD".to_owned()
        }
        RateErrorKind::NoRate if parse_amount(text).is_some() => "say in what time, as in `60/min`".to_owned(),
        RateErrorKind::NoRate if word == "plan" => "write `plan.COLUMN`".to_owned(),
        RateErrorKind::NoRate => near(word, &["unlimited", "none"])
            .unwrap_or_else(|| "write AMOUNT/PERIOD, `N at once`, `plan.COLUMN`, `unlimited` or `none`".to_owned()),
        RateErrorKind::Unit => {
            unit(word).map_or_else(|| error.hint().to_owned(), |unit| format!("did you mean `{unit}`?"))
        }
        RateErrorKind::Tail => {
            let tails = ["burst", "token-bucket", "fixed-window", "sliding-window", "sliding-log"];
            near(word, &tails).unwrap_or_else(|| error.hint().to_owned())
        }
        _ => error.hint().to_owned(),
    };
    // The bounds cite numbers, which may be a variable's in another spelling.
    let message = if findings.is_filled(place) { "this variable holds no rate".to_owned() } else { error.to_string() };
    findings.blame(place, message).hint(hint);
}

/// The unit that a longer word means.
fn unit(word: &str) -> Option<String> {
    let (number, name) = word.split_at(word.find(|c: char| !c.is_ascii_digit())?);
    let short = match name.to_ascii_lowercase().trim_end_matches('s') {
        "second" => "s",
        "minute" | "mins" => "min",
        "hour" | "hr" => "h",
        "days" if number.is_empty() => "day",
        "day" => "d",
        "week" => "w",
        "month" if number.is_empty() => "month",
        _ => return None,
    };
    Some(format!("{number}{short}"))
}

fn near(word: &str, options: &[&str]) -> Option<String> {
    nearest(word, options.iter().copied()).map(|near| format!("did you mean `{near}`?"))
}

fn object(node: &Node, findings: &mut Findings) -> Option<Rate> {
    let written = RateObject::read(node, findings)?;
    let missing = [("amount", written.amount.is_none()), ("per", written.per.is_none())];
    if let Some((name, _)) = missing.into_iter().find(|(_, missing)| *missing) {
        findings.blame(node.place, format!("this rate has no `{name}`")).hint("as in { amount: 600, per: 1min }");
        return None;
    }
    let (amount, per) = (written.amount?, written.per?);
    let burst = written.burst.as_ref().map(|burst| burst.value.0);
    let quota = match per.as_str() {
        "day" | "week" | "month" => {
            if let Some(place) =
                written.burst.as_ref().map(|at| at.place).or(written.algorithm.as_ref().map(|at| at.place))
            {
                findings
                    .blame(place, "a calendar period has no burst and no other algorithm")
                    .hint("for a rolling period with a burst write `24h`, `7d` or `30d`");
                return None;
            }
            let calendar = match per.as_str() {
                "day" => Calendar::Day,
                "week" => Calendar::Week,
                _ => Calendar::Month,
            };
            Quota::calendar(amount.value.0, calendar)
        }
        rolling => {
            let Some(us) = parse_duration_us(rolling) else {
                let hint = format!("1/{rolling}").parse::<Rate>().map_err(|error| error.hint());
                let hint = hint.err().unwrap_or("write a number and a unit, as in `1min`");
                findings.blame(per.place, "this is no period").hint(hint);
                return None;
            };
            let algorithm = written.algorithm.map_or(Algorithm::TokenBucket, |word| word.value.into());
            Quota::new(algorithm, amount.value.0, us, burst)
        }
    };
    match quota {
        Ok(quota) => Some(Rate::Quota(quota)),
        Err(error) => {
            let places = [Some(amount.place), written.burst.as_ref().map(|at| at.place), Some(per.place)];
            let filled = places.into_iter().flatten().any(|place| findings.is_filled(place));
            let message = if filled { "these variables hold no rate".to_owned() } else { error.to_string() };
            findings.blame(node.place, message);
            None
        }
    }
}

schema!(RateText, "rate_text", {
    "type": "string",
    "description": "AMOUNT/PERIOD [burst N] [ALGORITHM], `plan.COLUMN`, `unlimited` or `none`.",
    "pattern": r"^(unlimited|none|plan\..+|[0-9][0-9_]*[kM]? at once|[0-9][0-9_]*[kM]?/([0-9_]*(us|ms|s|sec|min|h|d|w)|day|week|month)( .*)?)$|\$\{",
    "examples": ["60/min", "600/min burst 100", "5/min sliding-log", "10k/day", "plan.api", "unlimited", "none"]
});

/// The text form of a rate, for the schema alone.
struct RateText;

impl JsonSchema for Written {
    fn schema_name() -> Cow<'static, str> {
        "Rate".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (text, object) = (generator.subschema_for::<RateText>(), generator.subschema_for::<RateObject>());
        json_schema!({ "anyOf": [text, object] })
    }
}
