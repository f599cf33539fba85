//! The access log: one JSON line a request, written by hand, never a key and never a query string.
//!
//! [`Line`] is what is written, [`Writer`] and [`Log`] are how it gets out.

mod writer;

use std::io::Write as _;
use std::net::IpAddr;

pub use writer::{Log, Writer};

/// Bytes of one text that are written; what is longer is cut and ends in an ellipsis.
pub const TEXT: usize = 2048;

/// What was decided of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// Within every limit.
    Allow,
    /// Refused by a limit, for now.
    Deny,
    /// Refused by a limit, whenever it is tried.
    Never,
    /// No limit applied.
    None,
}

/// One request, as the log tells it.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// When it was decided, in Unix microseconds.
    pub time: u64,
    /// Which request of the process it was.
    pub seq: u64,
    /// Its method.
    pub method: &'a str,
    /// Its path; a query string is cut off here in any case.
    pub path: &'a str,
    /// The host that it asked for.
    pub host: &'a str,
    /// The status of its answer.
    pub status: u16,
    /// The address that it is counted by.
    pub address: IpAddr,
    /// The name of the client, never its key.
    pub client: Option<&'a str>,
    /// The client's plan.
    pub plan: Option<&'a str>,
    /// Whether it was a CORS preflight.
    pub preflight: bool,
    /// What was decided.
    pub verdict: Said,
    /// The limit that refused it.
    pub refused_by: Option<&'a str>,
    /// The limits in shadow mode that would have refused it.
    pub shadow_refused: &'a [&'a str],
    /// What limits have charged that charge what the answer says, by their names.
    pub charged: &'a [(&'a str, u32)],
    /// Microseconds from the head of the request to the head of the answer.
    pub took_us: u64,
}

impl Line<'_> {
    /// Appends the line, with its LF.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"time\":\"");
        time(out, self.time);
        number(out, "\",\"seq\":", self.seq);
        text(out, ",\"method\":", Some(self.method));
        text(out, ",\"path\":", self.path.split('?').next());
        text(out, ",\"host\":", Some(self.host));
        number(out, ",\"status\":", u64::from(self.status));
        out.extend_from_slice(b",\"address\":\"");
        address(out, self.address);
        text(out, "\",\"client\":", self.client);
        text(out, ",\"plan\":", self.plan);
        if self.preflight {
            out.extend_from_slice(b",\"preflight\":true");
        }
        out.extend_from_slice(match self.verdict {
            Said::Allow => b",\"verdict\":\"allow\"",
            Said::Deny => b",\"verdict\":\"deny\"",
            Said::Never => b",\"verdict\":\"never\"",
            Said::None => b",\"verdict\":\"none\"",
        });
        text(out, ",\"refused_by\":", self.refused_by);
        for (number, limit) in self.shadow_refused.iter().enumerate() {
            text(out, if number == 0 { ",\"shadow_refused\":[" } else { "," }, Some(limit));
        }
        if !self.shadow_refused.is_empty() {
            out.push(b']');
        }
        for (number_of, (limit, units)) in self.charged.iter().enumerate() {
            text(out, if number_of == 0 { ",\"charged\":{" } else { "," }, Some(limit));
            number(out, ":", u64::from(*units));
        }
        if !self.charged.is_empty() {
            out.push(b'}');
        }
        number(out, ",\"took_us\":", self.took_us);
        out.extend_from_slice(b"}\n");
    }
}

fn number(out: &mut Vec<u8>, name: &str, value: u64) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn address(out: &mut Vec<u8>, value: IpAddr) {
    // A Vec takes whatever is written to it.
    let _ = write!(out, "{}", value.to_canonical());
}

fn text(out: &mut Vec<u8>, name: &str, value: Option<&str>) {
    out.extend_from_slice(name.as_bytes());
    let Some(value) = value else { return out.extend_from_slice(b"null") };
    let cut = value.len() > TEXT;
    let value = &value[..value.floor_char_boundary(TEXT)];
    out.push(b'"');
    let mut plain = 0;
    for (at, &byte) in value.as_bytes().iter().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' && byte != 0x7f {
            continue;
        }
        out.extend_from_slice(&value.as_bytes()[plain..at]);
        plain = at + 1;
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            _ => out.extend_from_slice(&[b'\\', b'u', b'0', b'0', hex(byte >> 4), hex(byte & 15)]),
        }
    }
    out.extend_from_slice(&value.as_bytes()[plain..]);
    out.extend_from_slice(if cut { "…\"".as_bytes() } else { b"\"" });
}

fn hex(digit: u8) -> u8 {
    b"0123456789abcdef"[usize::from(digit)]
}

/// RFC 3339 in UTC with six decimals; days to a date as in Howard Hinnant's `civil_from_days`.
fn time(out: &mut Vec<u8>, micros: u64) {
    let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    digits::<4>(out, year, b'-');
    digits::<2>(out, month, b'-');
    digits::<2>(out, day, b'T');
    digits::<2>(out, second / 3600, b':');
    digits::<2>(out, second / 60 % 60, b':');
    digits::<2>(out, second % 60, b'.');
    digits::<6>(out, micros, b'Z');
}

fn digits<const N: usize>(out: &mut Vec<u8>, mut value: u64, end: u8) {
    let mut text = [0; N];
    for place in text.iter_mut().rev() {
        *place = b'0' + u8::try_from(value % 10).unwrap_or_default();
        value /= 10;
    }
    out.extend_from_slice(&text);
    out.push(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const PLAIN: Line<'_> = Line {
        time: 1_796_150_096_000_123,
        seq: 7,
        method: "GET",
        path: "/api/x?key=secret",
        host: "a.example",
        status: 429,
        address: IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)),
        client: None,
        plan: Some("free"),
        preflight: false,
        verdict: Said::Deny,
        refused_by: Some("api"),
        shadow_refused: &[],
        charged: &[],
        took_us: 12,
    };

    fn written(line: &Line<'_>) -> String {
        let mut out = Vec::new();
        line.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_is_this() {
        let expected = r#"{"time":"2026-12-01T18:34:56.000123Z","seq":7,"method":"GET","path":"/api/x","host":"a.example","status":429,"address":"192.0.2.1","client":null,"plan":"free","verdict":"deny","refused_by":"api","took_us":12}"#;
        assert_eq!(written(&PLAIN), format!("{expected}\n"));
    }

    #[test]
    fn any_text_is_json_and_bounded() {
        let nasty = format!("/\"\\\u{1}\n\u{7f}é{}", "ü".repeat(3000));
        let line = Line {
            path: &nasty,
            preflight: true,
            shadow_refused: &["a\"", "b"],
            charged: &[("tokens", 175), ("cost", 0)],
            address: "::ffff:192.0.2.1".parse().unwrap(),
            ..PLAIN
        };
        let text = written(&line);
        assert_eq!(text.matches('\n').count(), 1);
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let path = json["path"].as_str().unwrap();
        assert!(path.len() <= TEXT + 3 && path.ends_with('…'), "{}", path.len());
        assert!(nasty.starts_with(path.trim_end_matches('…')));
        assert_eq!(json["shadow_refused"], serde_json::json!(["a\"", "b"]));
        assert_eq!(json["charged"], serde_json::json!({ "tokens": 175, "cost": 0 }));
        assert_eq!((&json["preflight"], &json["address"]), (&true.into(), &"192.0.2.1".into()));
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for micros in [0, 951_782_400_000_000, 951_868_799_999_999, 4_107_542_399_000_001, 1_709_164_800_500_000] {
            let expected = jiff::Timestamp::from_microsecond(i64::try_from(micros).unwrap()).unwrap();
            let line = written(&Line { time: micros, ..PLAIN });
            assert_eq!(line[9..36], format!("{expected:.6}"), "{micros}");
        }
    }
}
