//! The gateway's own access log, a JSON object a line. A line is written when its answer begins, so lines are out of
//! order: `seq` is the place of the request among all that the store judged.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::text::{self, Text, Units};
use super::{Broken, Line, Ours, address};

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    time: &'a RawValue,
    seq: u64,
    #[serde(borrow)]
    method: Text<'a>,
    #[serde(borrow)]
    path: Text<'a>,
    #[serde(borrow)]
    host: Option<Text<'a>>,
    status: Option<u16>,
    #[serde(borrow)]
    address: Option<Text<'a>>,
    #[serde(borrow)]
    client: Option<Text<'a>>,
    #[serde(borrow)]
    plan: Option<Text<'a>>,
    #[serde(default)]
    preflight: bool,
    #[serde(borrow)]
    verdict: Option<Text<'a>>,
    #[serde(borrow)]
    refused_by: Option<Text<'a>>,
    took_us: Option<u64>,
    #[serde(borrow, default)]
    charged: Units<'a>,
}

/// Reads one line.
///
/// # Errors
/// [`Broken`] says why the line is no request.
pub fn parse(line: &[u8]) -> Result<Line<'_>, Broken> {
    text::object(line)?;
    let record: Record<'_> = serde_json::from_slice(line).map_err(text::broken)?;
    let address = match record.address {
        Some(Text(ip)) => Some(address(&ip).ok_or_else(|| Broken::new("`address` is no address"))?),
        None => None,
    };
    Ok(Line {
        time_us: text::time_us(record.time)?,
        address,
        method: record.method.0,
        target: Some(record.path.0),
        host: record.host.map_or(Cow::Borrowed(""), |Text(host)| host),
        status: record.status,
        took_us: record.took_us,
        charged: record.charged.0,
        cost: None,
        ours: Some(Ours {
            seq: record.seq,
            client: record.client.map(|Text(word)| word),
            plan: record.plan.map(|Text(word)| word),
            preflight: record.preflight,
            verdict: record.verdict.map(|Text(word)| word),
            refused_by: record.refused_by.map(|Text(word)| word),
        }),
    })
}
