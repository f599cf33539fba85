//! Strings and headers of a JSON line, borrowed from it where they have no escapes.

use std::borrow::Cow;
use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Broken, time};

/// A string.
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Word;
        impl<'de> Visitor<'de> for Word {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Word)
    }
}

/// Header fields: an object of strings, or of lists of them.
#[derive(Default)]
pub(super) struct Headers<'a>(Vec<(Text<'a>, Vec<Text<'a>>)>);

impl<'de: 'a, 'a> Deserialize<'de> for Headers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Headers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of header fields")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some((name, Values(values))) = map.next_entry()? {
                    fields.push((name, values));
                }
                Ok(Headers(fields))
            }

            fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
                Ok(Headers::default())
            }
        }
        deserializer.deserialize_any(Fields)
    }
}

/// Units by the names of limits.
#[derive(Default)]
pub(super) struct Units<'a>(pub(super) Vec<(Cow<'a, str>, u32)>);

impl<'de: 'a, 'a> Deserialize<'de> for Units<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ByName;
        impl<'de> Visitor<'de> for ByName {
            type Value = Units<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of units by the names of limits")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut units = Vec::new();
                while let Some((Text(name), number)) = map.next_entry()? {
                    units.push((name, number));
                }
                Ok(Units(units))
            }

            fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
                Ok(Units::default())
            }
        }
        deserializer.deserialize_any(ByName)
    }
}

struct Values<'a>(Vec<Text<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Values<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMore;
        impl<'de> Visitor<'de> for OneOrMore {
            type Value = Values<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of strings")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Values(vec![Text(Cow::Borrowed(text))]))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Values(vec![Text(Cow::Owned(text.to_owned()))]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = list.next_element()? {
                    values.push(value);
                }
                Ok(Values(values))
            }

            fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
                Ok(Values(Vec::new()))
            }
        }
        deserializer.deserialize_any(OneOrMore)
    }
}

impl Headers<'_> {
    /// Adds the fields to `headers`.
    pub(super) fn add_to(&self, headers: &mut HeaderMap) -> Result<(), Broken> {
        for (Text(name), values) in &self.0 {
            let Ok(field) = HeaderName::from_bytes(name.as_bytes()) else {
                return Err(Broken::new("a header's name is no field name"));
            };
            for Text(value) in values {
                let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) else {
                    // The value is not shown: it may be a key.
                    return Err(Broken::new(format!("the value of header `{field}` can't stand in a header")));
                };
                headers.append(&field, value);
            }
        }
        Ok(())
    }
}

/// A time: a number as it was written, or a string of RFC 3339 or Unix seconds.
pub(super) fn time_us(raw: &RawValue) -> Result<u64, Broken> {
    let text = raw.get();
    let Some(quoted) = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return time::unix(text.as_bytes()).map_err(Broken::new);
    };
    let dashed = quoted.len() > 4 && quoted.as_bytes()[4] == b'-';
    let read = if dashed { time::rfc3339(quoted.as_bytes()) } else { time::unix(quoted.as_bytes()) };
    read.map_err(Broken::new)
}

/// Why a line is no JSON of the wanted form.
#[expect(clippy::needless_pass_by_value, reason = "what `map_err` hands over")]
pub(super) fn broken(error: serde_json::Error) -> Broken {
    let said = error.to_string();
    let why = said.split(" at line ").next().unwrap_or_default().to_owned();
    if error.column() == 0 { Broken::new(why) } else { Broken::at(error.column(), why) }
}

/// A line holds one object and nothing else.
pub(super) fn object(line: &[u8]) -> Result<(), Broken> {
    if line.trim_ascii_start().starts_with(b"{") { Ok(()) } else { Err(Broken::at(1, "not a JSON object")) }
}
