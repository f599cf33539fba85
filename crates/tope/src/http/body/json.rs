//! A number at a place in a JSON document (RFC 8259), found as the document passes: nothing of it is kept but how deep it
//! is, so it may be of any length, arrive in any pieces and be cut anywhere.
//!
//! What is no JSON gives no number or a wrong one, in bounded memory and without a panic; whoever sends it could as well
//! have sent another number.

use memchr::memchr2;

use crate::facts::Price;

/// A place in a document: the names that lead to it from the outermost object, as in `usage.total_tokens`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field(Box<[Box<str>]>);

/// The most names that lead to a field.
const DEEPEST: usize = 8;

impl Field {
    /// Reads names with dots between them; `None` when a name is empty, or there are more than eight.
    pub fn parse(text: &str) -> Option<Self> {
        let names: Box<[Box<str>]> = text.split('.').map(Into::into).collect();
        let fits = names.len() <= DEEPEST && names.iter().all(|name| !name.is_empty());
        fits.then_some(Self(names))
    }
}

/// Looks for a field in one document, or in one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Finder {
    /// Objects and arrays that are open.
    depth: u32,
    /// How many of the outermost are the objects that lead to the field. All of them: the next name may lead on.
    on_way: u32,
    /// In such an object: a name comes next, and not a value.
    names: bool,
    /// The last name was the next on the way.
    named: bool,
    at: At,
}

/// Where in the text it is.
#[derive(Clone, Debug, Default)]
enum At {
    #[default]
    Between,
    /// In a string that nobody asks for.
    Skip,
    /// In it, behind a backslash.
    SkipEscape,
    Name(Name),
    /// In the value of the field.
    Value(Price),
}

/// A name of a member, compared as it comes.
#[derive(Clone, Debug)]
struct Name {
    /// How many bytes were equal; `None`: it is another name.
    equal: Option<usize>,
    escape: Escape,
    /// The first half of a surrogate pair.
    high: u16,
}

#[derive(Clone, Debug)]
enum Escape {
    None,
    Backslash,
    Hex(u8, u16),
}

impl Finder {
    /// Looks at the next bytes; `found` hears each value of the field, in their order.
    pub(super) fn feed(&mut self, field: &Field, mut bytes: &[u8], mut found: impl FnMut(Price)) {
        while let Some((&byte, rest)) = bytes.split_first() {
            match &mut self.at {
                At::Between => {
                    if self.between(field, byte) {
                        found(Price::Unreadable);
                    }
                }
                At::SkipEscape => self.at = At::Skip,
                At::Skip => {
                    let Some(end) = memchr2(b'"', b'\\', bytes) else { return };
                    self.at = if bytes[end] == b'"' { At::Between } else { At::SkipEscape };
                    bytes = &bytes[end + 1..];
                    continue;
                }
                At::Name(name) => {
                    let wanted = field.0[self.on_way as usize - 1].as_bytes();
                    if let Some(named) = name.feed(byte, wanted) {
                        self.named = named;
                        self.at = At::Between;
                    }
                }
                At::Value(price) => {
                    if let Some(more) = longer(*price, byte) {
                        *price = more;
                    } else {
                        let price = *price;
                        self.at = At::Between;
                        if price != Price::Unsaid {
                            found(price);
                        }
                        continue; // what ends a number is looked at like any other byte
                    }
                }
            }
            bytes = rest;
        }
    }

    /// The objects that lead to the field are all that is open.
    fn is_on_way(&self) -> bool {
        self.depth > 0 && self.on_way == self.depth
    }

    /// Looks at a byte that is in no string and no value of the field; whether it begins one that is no number.
    fn between(&mut self, field: &Field, byte: u8) -> bool {
        let named = std::mem::take(&mut self.named);
        let leaf = named && self.on_way as usize == field.0.len();
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => self.named = named,
            b':' if self.is_on_way() => {
                self.named = named;
                self.names = false;
            }
            b',' => self.names = true,
            b'{' | b'[' => {
                let leads = byte == b'{' && (self.depth == 0 || named && !leaf);
                self.on_way += u32::from(leads && self.on_way == self.depth);
                self.depth = self.depth.saturating_add(1);
                self.names = true;
            }
            b'}' | b']' => {
                self.on_way -= u32::from(self.is_on_way());
                self.depth = self.depth.saturating_sub(1);
                self.names = false;
            }
            b'"' if self.is_on_way() && self.names => {
                self.at = At::Name(Name { equal: Some(0), escape: Escape::None, high: 0 });
            }
            b'"' => self.at = At::Skip,
            b'0'..=b'9' if leaf => self.at = At::Value(Price::Units(u32::from(byte - b'0'))),
            b'n' if leaf => self.at = At::Value(Price::Unsaid),
            _ if leaf => self.at = At::Value(Price::Unreadable),
            _ => {}
        }
        leaf && matches!(byte, b'{' | b'[' | b'"')
    }
}

/// A value with one more byte; `None` when the byte is behind its end. `null` says nothing; whatever is no whole number
/// of 32 bits can't be read.
fn longer(price: Price, byte: u8) -> Option<Price> {
    match byte {
        b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r' => None,
        b'0'..=b'9' => Some(match price {
            Price::Units(units) => units
                .checked_mul(10)
                .and_then(|units| units.checked_add(u32::from(byte - b'0')))
                .map_or(Price::Unreadable, Price::Units),
            other => other,
        }),
        b'u' | b'l' if price == Price::Unsaid => Some(price),
        _ => Some(Price::Unreadable),
    }
}

impl Name {
    /// Looks at a byte of a string; at its end, whether the name is `wanted`.
    fn feed(&mut self, byte: u8, wanted: &[u8]) -> Option<bool> {
        match self.escape {
            Escape::None if byte == b'"' => return Some(self.equal == Some(wanted.len()) && self.high == 0),
            Escape::None if byte == b'\\' => self.escape = Escape::Backslash,
            Escape::None => self.compare(&[byte], wanted),
            Escape::Backslash => {
                self.escape = Escape::None;
                match byte {
                    b'u' => self.escape = Escape::Hex(0, 0),
                    b'b' => self.compare(b"\x08", wanted),
                    b'f' => self.compare(b"\x0c", wanted),
                    b'n' => self.compare(b"\n", wanted),
                    b'r' => self.compare(b"\r", wanted),
                    b't' => self.compare(b"\t", wanted),
                    other => self.compare(&[other], wanted),
                }
            }
            Escape::Hex(digits, value) => {
                let Some(digit) = char::from(byte).to_digit(16) else {
                    self.equal = None;
                    self.escape = Escape::None;
                    return None;
                };
                let value = value << 4 | u16::try_from(digit).expect("a digit has four bits");
                self.escape = if digits == 3 { Escape::None } else { Escape::Hex(digits + 1, value) };
                if digits == 3 {
                    self.unit(value, wanted);
                }
            }
        }
        None
    }

    /// Half a character or a whole one, of UTF-16.
    fn unit(&mut self, unit: u16, wanted: &[u8]) {
        let high = std::mem::take(&mut self.high);
        if high == 0 && (0xD800..0xDC00).contains(&unit) {
            self.high = unit;
            return;
        }
        let units = [high, unit];
        let units = if high == 0 { &units[1..] } else { &units[..] };
        match char::decode_utf16(units.iter().copied()).next() {
            Some(Ok(char)) => self.compare(char.encode_utf8(&mut [0; 4]).as_bytes(), wanted),
            _ => self.equal = None,
        }
    }

    fn compare(&mut self, bytes: &[u8], wanted: &[u8]) {
        self.equal = self.equal.filter(|_| self.high == 0).and_then(|equal| {
            let end = equal + bytes.len();
            (wanted.get(equal..end)? == bytes).then_some(end)
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(field: &str, text: &[u8], step: usize) -> Vec<Price> {
        let (field, mut finder, mut all) = (Field::parse(field).expect("a field"), Finder::default(), Vec::new());
        for piece in text.chunks(step) {
            finder.feed(&field, piece, |price| all.push(price));
        }
        all
    }

    #[test]
    fn a_number_is_found_where_it_is() {
        use Price::{Units, Unreadable};
        let cases: [(&str, &[Price]); 26] = [
            (r#"{"usage":{"total_tokens":175}}"#, &[Units(175)]),
            (r#"  { "a" : [1, {"usage":{"total_tokens":1}}], "usage" : { "x":2, "total_tokens" : 0 } }"#, &[Units(0)]),
            (r#"{"usage":{"total_tokens":4294967295 }}"#, &[Units(u32::MAX)]),
            (r#"{"usage":{"total_tokens":4294967296}}"#, &[Unreadable]),
            (r#"{"usage":{"total_tokens":-5}}"#, &[Unreadable]),
            (r#"{"usage":{"total_tokens":1e99}}"#, &[Unreadable]),
            (r#"{"usage":{"total_tokens":1.5}}"#, &[Unreadable]),
            (r#"{"usage":{"total_tokens":true}}"#, &[Unreadable]),
            (r#"{"usage":{"total_tokens":null}}"#, &[]),
            (r#"{"usage":null}"#, &[]),
            (r#"{"usage":{"total_tokens":"7"}}"#, &[Unreadable]),
            (r#"{"usage":{"total_tokens":{"total_tokens":7}}}"#, &[Unreadable]),
            (r#"{"usage":{"total_tokens":[7]}}"#, &[Unreadable]),
            (r#"{"usage":{"more":{"total_tokens":7}}}"#, &[]),
            (r#"{"total_tokens":7}"#, &[]),
            (r#"{"x":{"usage":{"total_tokens":7}}}"#, &[]),
            (r#"[{"usage":{"total_tokens":7}}]"#, &[]),
            (r#"{"usage":{"total_tokens_":7,"_total_tokens":8,"total":9}}"#, &[]),
            (r#"{"u\u0073age":{"total\u005Ftokens":7}}"#, &[Units(7)]),
            (r#"{"text":"\"usage\":{\"total_tokens\":1}","usage":{"total_tokens":2}}"#, &[Units(2)]),
            (r#"{"\\":"\\","usage":{"total_tokens":3}}"#, &[Units(3)]),
            (r#"{"usage":{"total_tokens":1},"usage":{"total_tokens":2}}"#, &[Units(1), Units(2)]),
            (r#"{"usage":{"total_tokens":1}} {"usage":{"total_tokens":2}}"#, &[Units(1), Units(2)]),
            (r#"{"usage":{"total_tokens":17"#, &[]),
            (r#"{"usage":{"total_tokens":17,"#, &[Units(17)]),
            (r#"{"a":"usage","total_tokens":1,"usage":"total_tokens","b":7}"#, &[]),
        ];
        for (text, expected) in cases {
            for step in [1, 2, 3, 1000] {
                assert_eq!(all("usage.total_tokens", text.as_bytes(), step), expected, "{text} by {step}");
            }
        }
        assert_eq!(all("\u{e9}\u{1F600}", br#"{"\u00e9\uD83D\ude00":1,"\ud83d\u00e9":2,"\ud83d":3}"#, 1), [Units(1)]);
        assert_eq!(all("n", br#"{"n":1}"#, 1), [Units(1)]);
    }

    #[test]
    fn a_field_has_names() {
        for text in ["", ".", "a.", ".a", "a..b", "a.b.c.d.e.f.g.h.i"] {
            assert_eq!(Field::parse(text), None, "{text}");
        }
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let name = prop_oneof![3 => "[ab]", 1 => any::<String>()];
        let leaf = prop_oneof![
            any::<u32>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<String>().prop_map(Into::into),
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 40, 6, move |inner| {
            let members = prop::collection::vec((name.clone(), inner.clone()), 0..6);
            prop_oneof![
                3 => members.prop_map(|members| members.into_iter().collect::<serde_json::Map<_, _>>().into()),
                1 => prop::collection::vec(inner, 0..4).prop_map(serde_json::Value::Array),
            ]
        })
    }

    proptest! {
        /// What a reader of whole documents finds is what is found in pieces.
        #[test]
        fn as_a_reader_of_whole_documents_does(value in json(), pretty: bool, step in 1..50_usize) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let text = text.expect("a document");
            for (field, pointer) in [("a", "/a"), ("a.b", "/a/b"), ("a.b.a", "/a/b/a")] {
                let expected = match value.pointer(pointer) {
                    Some(serde_json::Value::Number(number)) => {
                        let units = number.as_u64().and_then(|units| u32::try_from(units).ok());
                        vec![units.map_or(Price::Unreadable, Price::Units)]
                    }
                    Some(serde_json::Value::Null) | None => vec![],
                    Some(_) => vec![Price::Unreadable],
                };
                prop_assert_eq!(all(field, text.as_bytes(), step), expected, "{} in {}", field, text);
            }
        }

        #[test]
        fn any_bytes_are_looked_at(bytes: Vec<u8>, pieces in prop::collection::vec("[\\[\\]{}:,\"\\\\u0-9abd ]{0,6}", 0..30)) {
            all("a.b", &bytes, 3);
            all("a", pieces.concat().as_bytes(), 2);
        }
    }
}
