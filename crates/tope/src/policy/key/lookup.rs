//! Finding a word in a request without copying more than the word.

use ::http::{HeaderMap, HeaderName, header::COOKIE};

use super::Bytes;

/// Appends the value of a header; several lines are joined by commas, as HTTP reads them.
pub(in crate::policy) fn header(headers: &HeaderMap, name: &HeaderName, out: &mut Bytes) {
    for (number, line) in headers.get_all(name).iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        out.extend_from_slice(line.as_bytes().trim_ascii());
    }
}

/// Appends the value of the first cookie of this name.
pub(in crate::policy) fn cookie(headers: &HeaderMap, name: &str, out: &mut Bytes) {
    let pairs = headers.get_all(COOKIE).iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    for pair in pairs {
        let pair = pair.trim_ascii();
        let Some(value) = pair.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"=")) else { continue };
        let unquoted = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
        out.extend_from_slice(unquoted.unwrap_or(value));
        return;
    }
}

/// Appends the decoded value of the first query parameter of this name, however the name is spelt.
pub(in crate::policy) fn parameter(query: Option<&str>, name: &str, out: &mut Bytes) {
    for pair in query.unwrap_or_default().as_bytes().split(|byte| *byte == b'&') {
        let mut parts = pair.splitn(2, |byte| *byte == b'=');
        let (own, value) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        if Decoded(own).eq(name.bytes()) {
            out.extend(Decoded(value));
            return;
        }
    }
}

/// The bytes of a form-encoded text.
struct Decoded<'a>(&'a [u8]);

impl Iterator for Decoded<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let (byte, rest) = match self.0 {
            [b'%', high, low, rest @ ..] => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, rest),
                _ => (b'%', &self.0[1..]),
            },
            [b'+', rest @ ..] => (b' ', rest),
            [byte, rest @ ..] => (*byte, rest),
            [] => return None,
        };
        self.0 = rest;
        Some(byte)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that unwraps nothing fails")]
mod tests {
    use super::*;

    fn found(find: impl FnOnce(&mut Bytes)) -> String {
        let mut out = Bytes::new();
        find(&mut out);
        String::from_utf8(out.to_vec()).expect("test values are text")
    }

    #[test]
    fn a_parameter_is_found_however_it_is_spelt() {
        let of = |query| found(|out| parameter(Some(query), "key", out));
        assert_eq!(of("key=a"), "a");
        assert_eq!(of("x=1&k%65y=a%20b+c&key=d"), "a b c");
        assert_eq!(of("%6bey=%zz%"), "%zz%");
        for none in ["", "keys=a", "xkey=a", "key", "KEY=a", "a=key=b"] {
            assert_eq!(of(none), "", "{none}");
        }
        assert_eq!(found(|out| parameter(None, "key", out)), "");
    }

    #[test]
    fn a_cookie_is_found_in_any_line() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, "a=1; sid2=x".parse().unwrap());
        headers.append(COOKIE, " sid=\"secret\" ;sid=other".parse().unwrap());
        assert_eq!(found(|out| cookie(&headers, "sid", out)), "secret");
        assert_eq!(found(|out| cookie(&headers, "si", out)), "");
    }

    #[test]
    fn lines_of_one_header_are_one_value() {
        let mut headers = HeaderMap::new();
        headers.append("x-user", " a ".parse().unwrap());
        headers.append("x-user", "b".parse().unwrap());
        assert_eq!(found(|out| header(&headers, &HeaderName::from_static("x-user"), out)), "a,b");
    }
}
