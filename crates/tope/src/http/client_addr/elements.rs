//! One hop as text: RFC 7239 section 4 and 6, and the looser habits of `X-Forwarded-For`.

use std::net::{IpAddr, Ipv6Addr};

use http::HeaderValue;
use http::header::GetAll;

/// Beyond so many hops and bytes from the right nobody is asked.
const MOST_HOPS: usize = 32;
const MOST_BYTES: usize = 4096;

/// The hops of a field from the right, all lines joined; `None` is garbage, and nobody reads on beyond it. Empty
/// elements are nothing.
pub(super) fn from_right(
    lines: GetAll<'_, HeaderValue>,
    read: fn(&str) -> Option<IpAddr>,
) -> impl Iterator<Item = Option<IpAddr>> {
    // A comma within quotes splits too. Then both halves are garbage, which stops the walk: nothing can hide in quotes.
    let elements = lines.into_iter().rev().flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
    let (mut bytes, mut hops) = (0, 0);
    elements.filter_map(move |element| {
        bytes += element.len() + 1;
        if bytes > MOST_BYTES {
            return Some(None);
        }
        let text = std::str::from_utf8(element).map(|text| text.trim_matches([' ', '\t']));
        if text == Ok("") {
            return None;
        }
        hops += 1;
        Some(text.ok().filter(|_| hops <= MOST_HOPS).and_then(read))
    })
}

/// A hop of `X-Forwarded-For`: an address, perhaps with a port, brackets or quotes.
pub(super) fn plain(text: &str) -> Option<IpAddr> {
    node(text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text))
}

/// The `for` of a `forwarded-element`. Strict: one pair that is none makes the element garbage.
pub(super) fn forwarded(text: &str) -> Option<IpAddr> {
    let mut rest = text;
    let mut address = None;
    loop {
        rest = rest.trim_start_matches([' ', '\t']);
        if let Some(after) = rest.strip_prefix(';') {
            rest = after;
            continue;
        }
        if rest.is_empty() {
            return address;
        }
        let (name, value) = rest.split_once('=')?;
        let (value, after) = match value.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').filter(|(value, _)| !value.contains('\\'))?,
            None => value.split_at(value.find([';', ' ', '\t']).unwrap_or(value.len())),
        };
        let quoted = rest[name.len() + 1..].starts_with('"');
        if !token(name) || !(quoted || token(value)) {
            return None;
        }
        if name.eq_ignore_ascii_case("for") && address.replace(node(value)?).is_some() {
            return None;
        }
        rest = after.trim_start_matches([' ', '\t']);
        if !rest.is_empty() && !rest.starts_with(';') {
            return None;
        }
    }
}

/// `1.2.3.4`, `1.2.3.4:port`, an IPv6 address, `[…]`, `[…]:port`. Leading zeros, zones and short forms are garbage.
fn node(text: &str) -> Option<IpAddr> {
    let (address, port): (IpAddr, _) = if let Some(bracketed) = text.strip_prefix('[') {
        let (address, port) = bracketed.split_once(']')?;
        (address.parse::<Ipv6Addr>().ok()?.into(), port)
    } else if let Some((address, port)) = text.split_once(':').filter(|(_, port)| !port.contains(':')) {
        (address.parse().ok()?, &text[text.len() - port.len() - 1..])
    } else {
        (text.parse().ok()?, "")
    };
    let port_is_one = match port.strip_prefix(':') {
        None => port.is_empty(),
        Some(hidden) if hidden.starts_with('_') => token(hidden),
        Some(digits) => (1..=5).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit()),
    };
    port_is_one.then(|| address.to_canonical())
}

/// RFC 9110 section 5.6.2.
fn token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}
