//! The common and combined formats of Apache and nginx:
//!
//! ```text
//! 203.0.113.7 - - [17/May/2015:10:05:03 +0000] "GET /a?b HTTP/1.1" 200 512 "https://example.org/" "Mozilla/5.0"
//! ```
//!
//! A third quoted field is taken as X-Forwarded-For, as in the log format that nginx ships. Escapes of both servers
//! (`\"`, `\\`, `\x22`) are undone.

use std::borrow::Cow;
use std::fmt::Write as _;

use http::header::{REFERER, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::{Broken, Line, address, time};

/// Reads one line.
///
/// # Errors
/// [`Broken`] says why the line is no request.
pub fn parse<'a>(line: &'a [u8], headers: &mut HeaderMap) -> Result<Line<'a>, Broken> {
    let mut fields = Fields { line, at: 0 };
    let peer = fields.word()?;
    let Some(peer) = std::str::from_utf8(peer).ok().and_then(address) else {
        return Err(Broken::at(1, "the line does not begin with an address"));
    };
    fields.word()?;
    let time_at = fields.user()?;
    let time_us = time::common(fields.bracketed()?).map_err(|why| Broken::at(time_at + 1, why))?;
    fields.space()?;
    let request_at = fields.at + 1;
    let (method, target) = split(&fields.quoted()?)
        .ok_or_else(|| Broken::at(request_at, "the request is not `METHOD TARGET PROTOCOL`"))?;
    fields.space()?;
    let status_at = fields.at + 1;
    let status = std::str::from_utf8(fields.word()?).ok().and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| Broken::at(status_at, "the status is no number"))?;
    fields.last_word();

    for name in [REFERER, USER_AGENT, HeaderName::from_static("x-forwarded-for")] {
        if fields.at == line.len() {
            break;
        }
        fields.space()?;
        if fields.line.get(fields.at) != Some(&b'"') {
            break;
        }
        let value = fields.quoted()?;
        // What can't stand in a header never was in one that a server accepts.
        if let Ok(value) = HeaderValue::from_bytes(&value)
            && value != "-"
        {
            headers.insert(name, value);
        }
    }
    Ok(Line { time_us, address: Some(peer), method, target: Some(target), status: Some(status), ..Line::default() })
}

/// The fields of a line that are yet to be read.
struct Fields<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    fn rest(&self) -> &'a [u8] {
        &self.line[self.at..]
    }

    fn cut(&self) -> Broken {
        Broken::at(self.line.len() + 1, "the line ends too early")
    }

    /// Up to the next space, which is passed.
    fn word(&mut self) -> Result<&'a [u8], Broken> {
        let length = memchr::memchr(b' ', self.rest()).ok_or_else(|| self.cut())?;
        let word = &self.rest()[..length];
        self.at += length + 1;
        Ok(word)
    }

    /// Up to the next space or the end.
    fn last_word(&mut self) {
        self.at += memchr::memchr(b' ', self.rest()).unwrap_or(self.rest().len());
    }

    fn space(&mut self) -> Result<(), Broken> {
        match self.rest().first() {
            Some(b' ') => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(Broken::at(self.at + 1, "a space is missing")),
            None => Err(self.cut()),
        }
    }

    /// Passes the user's name, which may hold spaces; returns where the time begins.
    fn user(&mut self) -> Result<usize, Broken> {
        if self.rest().starts_with(b"- ") {
            self.at += 2;
        } else {
            self.at += memchr::memmem::find(self.rest(), b" [").ok_or_else(|| self.cut())? + 1;
        }
        Ok(self.at)
    }

    fn bracketed(&mut self) -> Result<&'a [u8], Broken> {
        if self.rest().first() != Some(&b'[') {
            return Err(Broken::at(self.at + 1, "the time is not as in [17/May/2015:10:05:03 +0000]"));
        }
        let end = memchr::memchr(b']', self.rest()).ok_or_else(|| self.cut())?;
        let inner = &self.rest()[1..end];
        self.at += end + 1;
        Ok(inner)
    }

    /// A field in quotes, its escapes undone.
    fn quoted(&mut self) -> Result<Cow<'a, [u8]>, Broken> {
        let begins = self.at + 1;
        if self.rest().first() != Some(&b'"') {
            return Err(Broken::at(begins, "a quoted field is missing"));
        }
        self.at += 1;
        let mut undone: Option<Vec<u8>> = None;
        loop {
            let Some(length) = memchr::memchr2(b'"', b'\\', self.rest()) else {
                return Err(Broken::at(begins, "the line ends inside a quoted field"));
            };
            let plain = &self.rest()[..length];
            let quote = self.rest()[length] == b'"';
            self.at += length + 1;
            match (&mut undone, quote) {
                (None, true) => return Ok(Cow::Borrowed(plain)),
                (Some(bytes), true) => {
                    bytes.extend_from_slice(plain);
                    return Ok(Cow::Owned(undone.unwrap_or_default()));
                }
                (_, false) => {
                    let bytes = undone.get_or_insert_default();
                    bytes.extend_from_slice(plain);
                    self.escape(bytes);
                }
            }
        }
    }

    /// What stands behind a backslash. An escape that is none of ours stays as it is.
    fn escape(&mut self, bytes: &mut Vec<u8>) {
        let hex = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let (byte, length) = match self.rest() {
            [b'x', high, low, ..] => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, 3),
                _ => (b'\\', 0),
            },
            [b'n', ..] => (b'\n', 1),
            [b't', ..] => (b'\t', 1),
            [b'r', ..] => (b'\r', 1),
            [b'b', ..] => (8, 1),
            [b'v', ..] => (11, 1),
            [other @ (b'"' | b'\\'), ..] => (*other, 1),
            _ => (b'\\', 0),
        };
        bytes.push(byte);
        self.at += length;
    }
}

/// `GET /a HTTP/1.1` as method and target. A target may hold spaces in logs that undo percent-encoding.
fn split<'a>(request: &Cow<'a, [u8]>) -> Option<(Cow<'a, str>, Cow<'a, str>)> {
    let method_ends = memchr::memchr(b' ', request)?;
    let protocol = memchr::memrchr(b' ', request).filter(|at| request[at + 1..].starts_with(b"HTTP/"));
    let target_ends = protocol.unwrap_or(request.len());
    let method = &request[..method_ends];
    if method.is_empty() || !method.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.!#$%&'*+^`|~".contains(byte))
    {
        return None;
    }
    let target = request.get(method_ends + 1..target_ends).filter(|target| !target.is_empty())?;
    let sendable = |byte: &u8| byte.is_ascii_graphic();
    match request {
        Cow::Borrowed(bytes) if target.iter().all(sendable) => {
            let bytes: &'a [u8] = bytes;
            let method = std::str::from_utf8(&bytes[..method_ends]).ok()?;
            let target = std::str::from_utf8(&bytes[method_ends + 1..target_ends]).ok()?;
            Some((Cow::Borrowed(method), Cow::Borrowed(target)))
        }
        _ => {
            let method = std::str::from_utf8(method).ok()?.to_owned();
            Some((Cow::Owned(method), Cow::Owned(encoded(target))))
        }
    }
}

/// A target with the bytes that no client can have sent bare percent-encoded.
fn encoded(target: &[u8]) -> String {
    let mut text = String::with_capacity(target.len() + 8);
    for byte in target {
        if byte.is_ascii_graphic() {
            text.push(char::from(*byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}
