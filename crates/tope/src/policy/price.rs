//! What a limit charges when the price of a request is known only afterwards: what is held meanwhile, and where the
//! answer says what it was.

use ::http::{HeaderMap, HeaderName};
use tope_core::rate::parse_amount;

use super::after::Blame;
use crate::facts::{Facts, Price, Reply};
use crate::http::body::{self, Field};

/// Where an answer says what its request has cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pricing {
    /// In a field of its head.
    Header {
        name: HeaderName,
        /// Whether the client sees it.
        kept: bool,
    },
    /// In its body: the place among the policy's fields.
    Body(u16),
}

/// Where a request says what it may cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Header(HeaderName),
    Body(Field),
}

const CHARGE: &str = "write `header X-Cost`, `header X-Cost, kept` or `json usage.total_tokens`";
const RESERVE: &str = "write a number, `json max_tokens or 1000` or `header X-Cost or 1`";

impl Pricing {
    /// Reads what stands in `charge`; `fields` are those of all limits.
    pub(super) fn parse(text: &str, fields: &mut Vec<Field>) -> Result<Self, Blame> {
        let (kind, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
        match kind {
            "header" => {
                let (name, kept) = match rest.split_once(',') {
                    Some((name, word)) if word.trim() == "kept" => (name, true),
                    _ => (rest, false),
                };
                Ok(Self::Header { name: header(name, CHARGE)?, kept })
            }
            "json" => {
                let field = field(rest, CHARGE)?;
                let place = fields.iter().position(|other| *other == field).unwrap_or_else(|| {
                    fields.push(field);
                    fields.len() - 1
                });
                u16::try_from(place).map(Self::Body).map_err(|_| ("there are too many such fields".to_owned(), CHARGE))
            }
            _ => Err((format!("`{kind}` is nothing that says a price"), CHARGE)),
        }
    }

    /// What the answer says, as far as it is known; `None`: not known yet. Without an answer nothing is due; when nobody
    /// waited for it, it may be dear all the same, and nobody says how much.
    pub(super) fn price(&self, limit: &str, reply: Reply<'_>) -> Option<Price> {
        match (self, reply) {
            (_, Reply::Nothing) => Some(Price::Units(0)),
            (_, Reply::Logged { charged, .. }) => {
                let own = charged.iter().find(|(name, _)| name == limit);
                Some(own.map_or(Price::Unsaid, |(_, units)| Price::Units(*units)))
            }
            (Self::Header { name, .. }, Reply::Head { headers, .. }) => Some(in_header(headers, name)),
            (Self::Body(_), Reply::Head { .. }) => None,
            (Self::Body(place), Reply::End { prices, .. }) => {
                let own = prices.iter().find(|(field, _)| field == place);
                Some(own.map_or(Price::Unsaid, |(_, price)| *price))
            }
            (_, Reply::Left | Reply::End { .. }) => Some(Price::Unsaid),
        }
    }

    /// The place of its field among the policy's, where it is in the body.
    pub(super) fn body_field(&self) -> Option<u16> {
        match self {
            Self::Header { .. } => None,
            Self::Body(place) => Some(*place),
        }
    }
}

impl Asked {
    /// Reads what stands in `reserve`: where the request says it, and what is held where it doesn't.
    pub(super) fn parse(text: &str) -> Result<(Option<Self>, u32), Blame> {
        let text = text.trim();
        let (place, units) = match text.split_once(" or ") {
            Some((place, units)) => (Some(place.trim()), units.trim()),
            None if text.starts_with(|c: char| c.is_ascii_digit()) => (None, text),
            None => (Some(text), "1"),
        };
        let units = parse_amount(units).and_then(|units| u32::try_from(units).ok()).filter(|units| *units > 0);
        let units = units.ok_or(("what is held is 1 or more, and below 2^32".to_owned(), RESERVE))?;
        let Some(place) = place else { return Ok((None, units)) };
        let asked = match place.split_once(char::is_whitespace) {
            Some(("header", name)) => Self::Header(header(name, RESERVE)?),
            Some(("json", path)) => Self::Body(field(path, RESERVE)?),
            _ => return Err((format!("`{place}` is nothing that a request asks for"), RESERVE)),
        };
        Ok((Some(asked), units))
    }

    /// What the request asks for, at least 1; `None` where it doesn't, or not in a whole number below 2^32.
    pub(super) fn of(&self, facts: &Facts<'_>) -> Option<u32> {
        let units = match self {
            Self::Header(name) => match in_header(facts.headers, name) {
                Price::Units(units) => Some(units),
                Price::Unsaid | Price::Unreadable => None,
            },
            Self::Body(field) => body::largest(field, facts.body?),
        };
        units.map(|units| units.max(1))
    }
}

/// A number in a field that stands there once.
fn in_header(headers: &HeaderMap, name: &HeaderName) -> Price {
    let mut values = headers.get_all(name).iter();
    let (Some(value), more) = (values.next(), values.next()) else { return Price::Unsaid };
    let digits = value.to_str().ok().map(str::trim).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let units = digits.filter(|_| more.is_none()).and_then(|digits| digits.parse().ok());
    units.map_or(Price::Unreadable, Price::Units)
}

fn header(name: &str, hint: &'static str) -> Result<HeaderName, Blame> {
    name.trim().parse().map_err(|_| ("this is no name of a header".to_owned(), hint))
}

fn field(path: &str, hint: &'static str) -> Result<Field, Blame> {
    let path = path.trim();
    let plain = Some(path).filter(|path| !path.contains(char::is_whitespace));
    plain.and_then(Field::parse).ok_or(("a field is one to eight names with dots between them".to_owned(), hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_written_is_read() {
        let mut fields = Vec::new();
        let mut charge = |text| Pricing::parse(text, &mut fields);
        let name = HeaderName::from_static("x-cost");
        assert_eq!(charge("header X-Cost"), Ok(Pricing::Header { name: name.clone(), kept: false }));
        assert_eq!(charge("header X-Cost, kept"), Ok(Pricing::Header { name: name.clone(), kept: true }));
        assert_eq!(charge("json usage.total_tokens"), Ok(Pricing::Body(0)));
        assert_eq!(charge("json usage.output_tokens"), Ok(Pricing::Body(1)));
        assert_eq!(charge("json  usage.total_tokens "), Ok(Pricing::Body(0)));
        for wrong in ["", "json", "json a b", "json a..b", "header", "header X Y", "header X, keep", "cost", "5"] {
            assert!(charge(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Asked::parse("1k"), Ok((None, 1000)));
        assert_eq!(Asked::parse("header X-Cost"), Ok((Some(Asked::Header(name.clone())), 1)));
        assert_eq!(Asked::parse("header X-Cost or 20"), Ok((Some(Asked::Header(name)), 20)));
        let field = Field::parse("max_tokens").expect("a field");
        assert_eq!(Asked::parse("json max_tokens or 1000"), Ok((Some(Asked::Body(field)), 1000)));
        for wrong in ["", "0", "-1", "5G", "json a or 0", "json a or b", "json or 5", "max_tokens", "json a orr 5"] {
            assert!(Asked::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn liars_are_not_believed() {
        let name = HeaderName::from_static("x-cost");
        let said = |values: &[&'static str]| {
            let fields = values.iter().map(|value| (name.clone(), ::http::HeaderValue::from_static(value)));
            in_header(&fields.collect(), &name)
        };
        assert_eq!(said(&["175"]), Price::Units(175));
        assert_eq!(said(&["0"]), Price::Units(0));
        assert_eq!(said(&[]), Price::Unsaid);
        for wrong in ["", "-5", "+5", "1e99", "text", "5 5", "0x5", "5.0", "4294967296"] {
            assert_eq!(said(&[wrong]), Price::Unreadable, "{wrong}");
        }
        assert_eq!(said(&["5", "6"]), Price::Unreadable);
    }
}
