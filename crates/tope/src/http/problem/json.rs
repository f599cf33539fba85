//! A JSON object, RFC 8259, one member after the other.

use bytes::Bytes;
use http::StatusCode;
use tope_core::wire::text::write_digits;

/// An object that is being written.
pub(super) struct Object(String);

impl Object {
    /// Begins with the members that every problem has, RFC 9457 section 3.1.
    pub(super) fn new(status: StatusCode, kind: &str, title: &str, detail: &str) -> Self {
        let mut object = Self(String::with_capacity(512));
        object.string("type", kind);
        object.string("title", title);
        object.number("status", u64::from(status.as_u16()));
        object.string("detail", detail);
        object
    }

    pub(super) fn string(&mut self, name: &str, value: &str) {
        self.name(name);
        self.quote(value);
    }

    pub(super) fn number(&mut self, name: &str, value: u64) {
        self.name(name);
        write_digits(&mut self.0, value).expect("a string takes all");
    }

    pub(super) fn list<'a>(&mut self, name: &str, values: impl Iterator<Item = &'a str>) {
        self.name(name);
        self.0.push('[');
        for (place, value) in values.enumerate() {
            if place > 0 {
                self.0.push(',');
            }
            self.quote(value);
        }
        self.0.push(']');
    }

    pub(super) fn end(mut self) -> Bytes {
        self.0.push('}');
        Bytes::from(self.0)
    }

    /// Names are ours and need no escape.
    fn name(&mut self, name: &str) {
        self.0.push_str(if self.0.is_empty() { "{\"" } else { ",\"" });
        self.0.push_str(name);
        self.0.push_str("\":");
    }

    /// Escapes what a string can't hold, and what a page that shows it could take for markup.
    fn quote(&mut self, text: &str) {
        const HEX: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
        self.0.push('"');
        if text.bytes().all(|byte| matches!(byte, b' '..=b'~') && !b"\"\\<>&".contains(&byte)) {
            self.0.push_str(text);
            self.0.push('"');
            return;
        }
        for char in text.chars() {
            match char {
                '"' | '\\' => self.0.extend(['\\', char]),
                '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{7f}' => {
                    let code = u32::from(char) as usize;
                    self.0.extend(['\\', 'u', '0', '0', HEX[code >> 4], HEX[code & 15]]);
                }
                '\u{2028}' => self.0.push_str("\\u2028"),
                '\u{2029}' => self.0.push_str("\\u2029"),
                _ => self.0.push(char),
            }
        }
        self.0.push('"');
    }
}
