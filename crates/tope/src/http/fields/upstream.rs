//! What becomes of an upstream's own fields of our names: a gateway may only make a message stricter.

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::header::Entry;
use http::{HeaderMap, HeaderName, HeaderValue};

/// Base64 as readers of structured fields take it, RFC 9651 section 4.2.7: without padding and with any pad bits.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Whether an upstream says, in the field `remaining`, that less is left than `ours`. What is no single number says
/// nothing.
pub(super) fn is_tighter(headers: &HeaderMap, remaining: &HeaderName, ours: u64) -> bool {
    let mut lines = headers.get_all(remaining).iter();
    let (Some(only), None) = (lines.next(), lines.next()) else { return false };
    let digits = only.as_bytes();
    let number = digits.iter().try_fold(0_u64, |number, digit| match digit {
        b'0'..=b'9' => number.checked_mul(10)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    });
    !digits.is_empty() && number.is_some_and(|theirs| theirs < ours)
}

/// Sets a list field, with the upstream's items behind ours. Lines of the upstream that are no list go, or they would
/// make the whole field unreadable: revision 7 of the draft wrote a dictionary under the same name.
pub(super) fn put_before(headers: &mut HeaderMap, name: &HeaderName, ours: Option<HeaderValue>) {
    let Some(ours) = ours else { return };
    match headers.try_entry(name) {
        Ok(Entry::Vacant(place)) => drop(place.try_insert(ours)),
        Ok(Entry::Occupied(mut place)) => {
            let theirs: Vec<HeaderValue> = place.iter().filter(|line| is_list(line.as_bytes())).cloned().collect();
            place.insert(ours);
            for line in theirs {
                place.append(line);
            }
        }
        Err(_) => {}
    }
}

/// Whether this is a List of Items with parameters, RFC 9651 section 4.2.1 (inner lists are not ours).
fn is_list(line: &[u8]) -> bool {
    let mut rest = line.trim_ascii();
    loop {
        let Some(after) = item(rest) else { return false };
        match after.trim_ascii_start() {
            [] => return true,
            [b',', more @ ..] => rest = more.trim_ascii_start(),
            _ => return false,
        }
    }
}

/// What follows an item and its parameters.
fn item(text: &[u8]) -> Option<&[u8]> {
    let mut rest = bare_item(text)?;
    while let [b';', more @ ..] = rest {
        rest = match key(more.trim_ascii_start())? {
            [b'=', value @ ..] => bare_item(value)?,
            after => after,
        };
    }
    Some(rest)
}

fn key(text: &[u8]) -> Option<&[u8]> {
    matches!(text.first()?, b'a'..=b'z' | b'*').then_some(())?;
    Some(after_all(text, |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'*')))
}

fn bare_item(text: &[u8]) -> Option<&[u8]> {
    let (first, rest) = text.split_first()?;
    match first {
        b'"' => string(rest),
        b':' => {
            let end = rest.iter().position(|byte| *byte == b':')?;
            LENIENT.decode(&rest[..end]).is_ok().then(|| &rest[end + 1..])
        }
        b'?' => matches!(rest.first()?, b'0' | b'1').then(|| &rest[1..]),
        b'-' => number(rest),
        b'0'..=b'9' => number(text),
        b'A'..=b'Z' | b'a'..=b'z' | b'*' => {
            Some(after_all(rest, |byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte)))
        }
        _ => None,
    }
}

fn string(mut rest: &[u8]) -> Option<&[u8]> {
    loop {
        rest = match rest {
            [b'"', after @ ..] => return Some(after),
            [b'\\', b'"' | b'\\', after @ ..] | [b' '..=b'!' | b'#'..=b'[' | b']'..=b'~', after @ ..] => after,
            _ => return None,
        };
    }
}

/// An Integer of at most 15 digits, or a Decimal of at most 12 and 3.
fn number(text: &[u8]) -> Option<&[u8]> {
    let after = after_all(text, |byte| byte.is_ascii_digit());
    let (whole, fraction) = (text.len() - after.len(), after.strip_prefix(b"."));
    let Some(fraction) = fraction else { return (1..=15).contains(&whole).then_some(after) };
    let end = after_all(fraction, |byte| byte.is_ascii_digit());
    ((1..=12).contains(&whole) && (1..=3).contains(&(fraction.len() - end.len()))).then_some(end)
}

fn after_all(text: &[u8], belongs: impl Fn(u8) -> bool) -> &[u8] {
    let end = text.iter().position(|byte| !belongs(*byte)).unwrap_or(text.len());
    &text[end..]
}
