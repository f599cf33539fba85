//! What a body says of a price, read as it passes: nothing is kept back from whoever it is for.
//!
//! | room | what is in it |
//! |---|---|
//! | `json` | a number at a place in a JSON document |
//! | `events` | the data of an event stream |

mod events;
mod json;

use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};

use self::events::{Lines, Part};
pub use self::json::Field;
use self::json::Finder;
use crate::facts::Price;

/// Reads one field of one answer.
#[derive(Debug)]
pub struct Reader {
    form: Form,
    last: Price,
}

#[derive(Debug)]
enum Form {
    Json(Finder),
    /// Each event has a document of its own; the last that has the field says it.
    Events(Lines, Finder),
    /// A form that can't be read.
    Other,
}

impl Reader {
    /// A reader for an answer with this head: `application/json` and its like, or `text/event-stream`, uncompressed.
    pub fn new(headers: &HeaderMap) -> Self {
        let encoded =
            headers.get(CONTENT_ENCODING).is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"));
        if encoded {
            return Self { form: Form::Other, last: Price::Unreadable };
        }
        let form = match media_type(headers) {
            Some(kind) if kind.eq_ignore_ascii_case("text/event-stream") => {
                Form::Events(Lines::default(), Finder::default())
            }
            Some(kind) if is_json(kind) => Form::Json(Finder::default()),
            _ => Form::Other,
        };
        Self { form, last: Price::Unsaid }
    }

    /// Looks at the next bytes of the body.
    pub fn feed(&mut self, field: &Field, bytes: &[u8]) {
        let Self { form, last } = self;
        match form {
            Form::Json(finder) => finder.feed(field, bytes, |price| *last = price),
            Form::Events(lines, finder) => lines.feed(bytes, |part| match part {
                Part::Data(data) => finder.feed(field, data, |price| *last = price),
                Part::LineEnd => finder.feed(field, b"\n", |price| *last = price),
                Part::EventEnd => *finder = Finder::default(),
            }),
            Form::Other => {}
        }
    }

    /// What was said last.
    pub fn price(&self) -> Price {
        self.last
    }
}

/// Whether a request's body is a JSON document that can be read.
pub fn is_json_body(headers: &HeaderMap) -> bool {
    !headers.contains_key(CONTENT_ENCODING) && media_type(headers).is_some_and(is_json)
}

/// The largest number of a field in the beginning of a document: a name that stands twice is read by some as the first
/// and by others as the last. `None` where there is none of 32 bits.
pub fn largest(field: &Field, beginning: &[u8]) -> Option<u32> {
    let (mut finder, mut largest) = (Finder::default(), None);
    finder.feed(field, beginning, |price| {
        if let Price::Units(units) = price {
            largest = largest.max(Some(units));
        }
    });
    largest
}

fn media_type(headers: &HeaderMap) -> Option<&str> {
    let kind = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    Some(kind.split(';').next()?.trim())
}

fn is_json(kind: &str) -> bool {
    let ends = |suffix: &str| {
        kind.len()
            .checked_sub(suffix.len())
            .and_then(|at| kind.get(at..))
            .is_some_and(|end| end.eq_ignore_ascii_case(suffix))
    };
    ends("/json") || ends("+json") || ends("/x-ndjson")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: &'static str, text: &str, step: usize) -> Price {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, http::HeaderValue::from_static(kind))]);
        let (field, mut reader) = (Field::parse("usage.total").expect("a field"), Reader::new(&headers));
        text.as_bytes().chunks(step).for_each(|piece| reader.feed(&field, piece));
        reader.price()
    }

    #[test]
    fn the_last_event_that_has_it_says_it() {
        use Price::{Units, Unreadable, Unsaid};
        let cases = [
            ("data: {\"usage\":{\"total\":5}}\n\n", Units(5)),
            ("data:{\"usage\":{\"total\":5}}\r\rdata: {\"usage\":null}\r\r", Units(5)),
            ("data: {\"usage\":{\"total\":5}}\n\ndata: {\"usage\":{\"total\":-1}}\n\n", Unreadable),
            // An event may have several lines of data.
            ("data: {\"usage\":\r\ndata: {\"total\":5}}\r\n\r\n", Units(5)),
            ("id: 1\ndata: {\"usage\":\nevent: x\ndata: {\"total\":5}}\n\n", Units(5)),
            // What one event leaves open is not the next one's.
            ("data: {\"usage\":\n\ndata: {\"total\":5}}\n\n", Unsaid),
            ("data: {\"text\":\"\n\ndata: {\"usage\":{\"total\":6}}\n\n", Units(6)),
            ("data: {\"usage\":{\"total\":1\n\ndata: 7}}\n\n", Units(1)),
            ("date: {\"usage\":{\"total\":5}}\n\n", Unsaid),
            ("data {\"usage\":{\"total\":5}}\n\n", Unsaid),
            (":data: {\"usage\":{\"total\":5}}\n\n", Unsaid),
            (" data: {\"usage\":{\"total\":5}}\n\n", Unsaid),
            // Cut before the end of the event, and behind the end of the number.
            ("data: {\"usage\":{\"total\":5}", Units(5)),
            ("data: {\"usage\":{\"total\":5", Unsaid),
            ("", Unsaid),
        ];
        for (text, price) in cases {
            for step in [1, 2, 5, 1000] {
                assert_eq!(read("text/event-stream", text, step), price, "{text:?} by {step}");
            }
        }
    }

    #[test]
    fn what_it_is_is_said_by_its_type() {
        let text = "{\"usage\":{\"total\":5}}";
        for kind in
            ["application/json", "Application/JSON; charset=utf-8", "application/problem+json", "application/x-ndjson"]
        {
            assert_eq!(read(kind, text, 3), Price::Units(5), "{kind}");
        }
        for kind in ["text/plain", "application/jsonp", "json", "", "text/event-stream"] {
            assert_eq!(read(kind, text, 3), Price::Unsaid, "{kind}");
        }
    }
}
