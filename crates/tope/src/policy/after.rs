//! What a limit waits for: whether the answer to a request counts.

use std::ops::RangeInclusive;

use ::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use crate::facts::Reply;

/// Which answers count: units are held while nobody knows, and given back when the answer is another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    /// One of them is enough.
    any: Vec<Condition>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Condition {
    not: bool,
    of: Of,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Of {
    Status(Vec<RangeInclusive<u16>>),
    /// The status of a call, which is in the trailers of its answer, or in the head of one that is nothing else.
    Grpc(Vec<RangeInclusive<u16>>),
    Header(HeaderName, HeaderValue),
}

/// What is wrong with a condition, and what to write.
pub(super) type Blame = (String, &'static str);

const FORM: &str = "write `status 401, 403`, `not status 2xx`, `grpc 16` or `header X = V`";

impl Count {
    /// Adds a condition as a limit writes it.
    pub(super) fn add(&mut self, text: &str) -> Result<(), Blame> {
        let text = text.trim();
        let (not, rest) = match text.strip_prefix("not ") {
            Some(rest) => (true, rest.trim_start()),
            None => (false, text),
        };
        let (kind, value) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let of = match kind {
            "status" => Of::Status(ranges(value, status)?),
            "grpc" => Of::Grpc(ranges(value, grpc)?),
            "header" => header_is(value)?,
            _ => return Err((format!("`{kind}` is nothing that an answer has"), FORM)),
        };
        self.any.push(Condition { not, of });
        Ok(())
    }

    /// Whether the head of every answer says it.
    pub(super) fn is_in_the_head(&self) -> bool {
        !self.any.iter().any(|condition| matches!(condition.of, Of::Grpc(_)))
    }

    /// Whether the answer counts, as far as it is known; `None`: not known yet.
    pub(super) fn counts(&self, reply: Reply<'_>) -> Option<bool> {
        if let Reply::Logged { status: None, .. } = reply {
            return Some(true);
        }
        let mut all_known = true;
        for condition in &self.any {
            match condition.holds(reply) {
                Some(true) => return Some(true),
                Some(false) => {}
                None => all_known = false,
            }
        }
        all_known.then_some(false)
    }
}

impl Condition {
    fn holds(&self, reply: Reply<'_>) -> Option<bool> {
        let holds = match (&self.of, reply) {
            (Of::Status(ranges), Reply::Head { status, .. } | Reply::Logged { status: Some(status), .. }) => {
                within(ranges, status.as_u16())
            }
            (Of::Header(name, value), Reply::Head { headers, .. }) => {
                headers.get_all(name).iter().any(|other| other == value)
            }
            (Of::Grpc(ranges), Reply::Head { headers, .. }) if is_grpc(headers) => {
                within(ranges, call_status(headers)?)
            }
            (Of::Grpc(ranges), Reply::End { trailers: Some(trailers), .. }) => match call_status(trailers) {
                Some(status) => within(ranges, status),
                None => return Some(false),
            },
            // What is no call has no such status. What the head could say was said by the head, and it was no. A call that
            // was cut before its status had no answer, and without one nothing counts, also not what is not something.
            _ => return Some(false),
        };
        Some(holds != self.not)
    }
}

fn within(ranges: &[RangeInclusive<u16>], value: u16) -> bool {
    ranges.iter().any(|range| range.contains(&value))
}

fn is_grpc(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

fn call_status(fields: &HeaderMap) -> Option<u16> {
    fields.get("grpc-status")?.to_str().ok()?.parse().ok()
}

/// `401, 403`, `4xx`, `500-503`, each part read by `one`.
fn ranges(text: &str, one: fn(&str) -> Result<RangeInclusive<u16>, Blame>) -> Result<Vec<RangeInclusive<u16>>, Blame> {
    text.split(',').map(|part| one(part.trim())).collect()
}

fn status(text: &str) -> Result<RangeInclusive<u16>, Blame> {
    const HINT: &str = "write `status 401`, `status 401, 403`, `status 4xx` or `status 500-503`";
    let none = || (format!("`{text}` is no status"), HINT);
    if let Some(class) = text.strip_suffix("xx") {
        let class: u16 = class.parse().ok().filter(|class| (1..=5).contains(class)).ok_or_else(none)?;
        return Ok(class * 100..=class * 100 + 99);
    }
    let code = |text: &str| {
        let code = Some(text).filter(|text| text.len() == 3).and_then(|text| text.parse().ok());
        code.and_then(|code| StatusCode::from_u16(code).ok()).filter(|code| code.as_u16() < 600)
    };
    between(text, |text| code(text).map(|code| code.as_u16()), none)
}

fn grpc(text: &str) -> Result<RangeInclusive<u16>, Blame> {
    let none = || (format!("`{text}` is no status of a call"), "they are the numbers 0 to 16, as in `grpc 16`");
    between(text, |text| text.parse().ok().filter(|code| *code <= 16), none)
}

fn between(
    text: &str,
    code: impl Fn(&str) -> Option<u16>,
    none: impl Fn() -> Blame,
) -> Result<RangeInclusive<u16>, Blame> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (code(first.trim()), code(last.trim())) {
        (Some(first), Some(last)) if first <= last => Ok(first..=last),
        _ => Err(none()),
    }
}

fn header_is(text: &str) -> Result<Of, Blame> {
    let (name, value) =
        text.split_once('=').ok_or(("a condition on a field has a value".to_owned(), "write `header X = V`"))?;
    let name = name.trim().parse().map_err(|_| ("this is no name of a header".to_owned(), "write `header X = V`"))?;
    let value =
        value.trim().parse().map_err(|_| ("this can't be the value of a header".to_owned(), "write `header X = V`"))?;
    Ok(Of::Header(name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> Count {
        let mut count = Count::default();
        count.add(text).expect("it is a condition");
        count
    }

    fn head(count: &Count, status: u16, fields: &[(&'static str, &'static str)]) -> Option<bool> {
        let fields =
            fields.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let headers: HeaderMap = fields.collect();
        count.counts(Reply::Head { status: StatusCode::from_u16(status).expect("a status"), headers: &headers })
    }

    #[test]
    fn a_head_says_what_it_can() {
        let cases = [
            ("status 401, 403", 401, true),
            ("status 401, 403", 403, true),
            ("status 401, 403", 402, false),
            ("status 4xx", 499, true),
            ("status 4xx", 500, false),
            ("status 500-503", 503, true),
            ("status 500-503", 504, false),
            ("not status 2xx", 204, false),
            ("not status 2xx", 302, true),
            ("not grpc 0", 200, false),
            ("grpc 0", 200, false),
        ];
        for (text, status, counts) in cases {
            assert_eq!(head(&count(text), status, &[]), Some(counts), "{text}: {status}");
        }
        let failed = count("header x-auth = failed");
        assert_eq!(head(&failed, 200, &[("x-auth", "failed")]), Some(true));
        assert_eq!(head(&failed, 200, &[("x-auth", "fine")]), Some(false));
    }

    #[test]
    fn a_call_says_it_at_its_end() {
        let (denied, failed) = (count("grpc 7, 16"), count("not grpc 0"));
        let call = [("content-type", "application/grpc+proto")];
        assert_eq!((head(&denied, 200, &call), head(&failed, 200, &call)), (None, None));
        let only = [("content-type", "application/grpc"), ("grpc-status", "16")];
        assert_eq!((head(&denied, 200, &only), head(&failed, 200, &only)), (Some(true), Some(true)));
        let trailers =
            |value| HeaderMap::from_iter([(HeaderName::from_static("grpc-status"), HeaderValue::from(value))]);
        for (status, said) in [(0_u16, (false, false)), (7, (true, true)), (3, (false, true))] {
            let trailers = trailers(status);
            let end = Reply::End { trailers: Some(&trailers), prices: &[] };
            assert_eq!((denied.counts(end), failed.counts(end)), (Some(said.0), Some(said.1)), "{status}");
        }
        for cut in [Reply::End { trailers: None, prices: &[] }, Reply::Nothing, Reply::Left] {
            assert_eq!((denied.counts(cut), failed.counts(cut)), (Some(false), Some(false)));
        }
    }

    #[test]
    fn any_of_several_is_enough() {
        let mut several = count("status 401");
        several.add("grpc 16").expect("it is a condition");
        let call = [("content-type", "application/grpc")];
        assert_eq!(head(&several, 401, &call), Some(true));
        assert_eq!(head(&several, 200, &call), None);
        assert_eq!(several.counts(Reply::End { trailers: None, prices: &[] }), Some(false));
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        for text in [
            "",
            "401",
            "status",
            "status 6xx",
            "status 99",
            "status 503-500",
            "status 401,",
            "status +01",
            "grpc 17",
            "grpc",
            "grpc x",
            "header X",
            "header = V",
            "header X = \u{7f}",
            "never",
            "not",
            "notstatus 401",
        ] {
            assert!(Count::default().add(text).is_err(), "{text}");
        }
    }
}
