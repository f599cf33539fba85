//! Percent-encoding: RFC 3986 sections 2.1 to 2.4.

use std::borrow::Cow;

use super::{BadPath, EncodedSlash};

/// Decodes the escapes of unreserved characters and writes the others in upper case, exactly once: `%25` stays, so
/// `%252e` never becomes a dot. Borrows when nothing had to change.
pub(super) fn decode(path: &str, slash: EncodedSlash) -> Result<Cow<'_, str>, BadPath> {
    let bytes = path.as_bytes();
    let mut out: Option<String> = None;
    let (mut at, mut kept) = (0, 0);
    while at < bytes.len() {
        let (value, length) = match bytes[at] {
            b'%' => (escaped(bytes, at)?, 3),
            b'\\' => (b'\\', 1),
            b'#' => return Err(BadPath::Fragment),
            b'?' | ..=b' ' | 0x7F.. => return Err(BadPath::Byte),
            _ => {
                at += 1;
                continue;
            }
        };
        if matches!(value, b'/' | b'\\') && slash == EncodedSlash::Reject {
            return Err(BadPath::EncodedSlash);
        }
        let canonical = length == 3 && !unreserved(value) && !path[at..at + 3].bytes().any(|b| b.is_ascii_lowercase());
        if !canonical {
            let out = out.get_or_insert_with(|| String::with_capacity(path.len() + 8));
            out.push_str(&path[kept..at]);
            push(out, value);
            kept = at + length;
        }
        at += length;
    }
    Ok(match out {
        Some(mut out) => {
            out.push_str(&path[kept..]);
            Cow::Owned(out)
        }
        None => Cow::Borrowed(path),
    })
}

/// The other reading of a decoded path: encoded slashes and backslashes are slashes. `None` when there are none.
pub(super) fn slashes(decoded: &str) -> Option<String> {
    let has_any = decoded.contains("%2F") || decoded.contains("%5C");
    has_any.then(|| decoded.replace("%2F", "/").replace("%5C", "/"))
}

/// Decodes what no server takes for structure: the reserved characters that only have a meaning to the application,
/// as in `/v1/models%3Agenerate`. `%`, `/`, `\`, `;`, `?`, `#`, blanks and bytes beyond ASCII stay encoded.
pub(super) fn decode_harmless(path: &str) -> Cow<'_, str> {
    let bytes = path.as_bytes();
    let harmless = |at: usize| match (bytes[at], escaped(bytes, at)) {
        (b'%', Ok(value)) => {
            (value.is_ascii_graphic() && !matches!(value, b'%' | b'/' | b'\\' | b';' | b'?' | b'#')).then_some(value)
        }
        _ => None,
    };
    let Some(first) = (0..bytes.len()).find(|at| bytes[*at] == b'%' && harmless(*at).is_some()) else {
        return Cow::Borrowed(path);
    };
    let mut out = String::with_capacity(path.len());
    out.push_str(&path[..first]);
    let mut at = first;
    while at < bytes.len() {
        if let Some(value) = harmless(at) {
            out.push(char::from(value));
            at += 3;
        } else {
            out.push(char::from(bytes[at]));
            at += 1;
        }
    }
    Cow::Owned(out)
}

/// The byte that the escape at `at` stands for.
fn escaped(bytes: &[u8], at: usize) -> Result<u8, BadPath> {
    let digit = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let (Some(high), Some(low)) = (digit(at + 1), digit(at + 2)) else { return Err(BadPath::Escape) };
    match u8::try_from(high * 16 + low) {
        Ok(0) | Err(_) => Err(BadPath::Escape),
        Ok(value) => Ok(value),
    }
}

fn push(out: &mut String, value: u8) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    if unreserved(value) {
        out.push(char::from(value));
    } else {
        out.push('%');
        out.push(char::from(HEX[usize::from(value >> 4)]));
        out.push(char::from(HEX[usize::from(value & 15)]));
    }
}

/// RFC 3986 section 2.3.
const fn unreserved(byte: u8) -> bool {
    matches!(byte, b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~')
}
