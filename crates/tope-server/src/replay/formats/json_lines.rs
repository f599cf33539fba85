//! A JSON object a line:
//!
//! ```json
//! {"time": 1790000000.123456, "ip": "203.0.113.7", "method": "POST", "path": "/login?x=1", "headers": {"X-Api-Key": "k"}, "status": 200, "took_us": 1200, "charged": {"tokens": 175}, "cost": 3}
//! ```
//!
//! Only `time` must be there, RFC 3339 or Unix seconds. Without `method` it is GET, without `path` it is `/` (the
//! report counts these), without `ip` there is no address. `host` may stand beside the headers. Other names are not
//! looked at.

use std::borrow::Cow;

use http::HeaderMap;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::text::{self, Headers, Text, Units};
use super::{Broken, Line, address};

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    time: Option<&'a RawValue>,
    #[serde(borrow)]
    ip: Option<Text<'a>>,
    #[serde(borrow)]
    method: Option<Text<'a>>,
    #[serde(borrow)]
    path: Option<Text<'a>>,
    #[serde(borrow)]
    host: Option<Text<'a>>,
    #[serde(borrow, default)]
    headers: Headers<'a>,
    status: Option<u16>,
    took_us: Option<u64>,
    #[serde(borrow, default)]
    charged: Units<'a>,
    cost: Option<u32>,
}

/// Reads one line.
///
/// # Errors
/// [`Broken`] says why the line is no request.
pub fn parse<'a>(line: &'a [u8], headers: &mut HeaderMap) -> Result<Line<'a>, Broken> {
    text::object(line)?;
    let request: Request<'a> = serde_json::from_slice(line).map_err(text::broken)?;
    let time = request.time.ok_or_else(|| Broken::new("there is no `time`"))?;
    let address = match request.ip {
        Some(Text(ip)) => Some(address(&ip).ok_or_else(|| Broken::new("`ip` is no address"))?),
        None => None,
    };
    request.headers.add_to(headers)?;
    Ok(Line {
        time_us: text::time_us(time)?,
        address,
        method: request.method.map_or(Cow::Borrowed("GET"), |Text(method)| method),
        target: request.path.map(|Text(path)| path),
        host: request.host.map_or(Cow::Borrowed(""), |Text(host)| host),
        status: request.status,
        took_us: request.took_us,
        charged: request.charged.0,
        cost: request.cost,
        ours: None,
    })
}
