//! The wire format of protocol buffers, version 3, as far as three messages need it: varints and bytes.

/// A message that is being written. What is empty or 0 is the default and is left out.
#[derive(Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    pub(super) fn number(mut self, field: u8, value: u64) -> Self {
        if value > 0 {
            self.varint(u64::from(field) << 3);
            self.varint(value);
        }
        self
    }

    pub(super) fn text(self, field: u8, text: &str) -> Self {
        if text.is_empty() { self } else { self.bytes(field, text.as_bytes()) }
    }

    /// An empty message is told too: it is there.
    pub(super) fn message(self, field: u8, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }

    pub(super) fn end(self) -> Vec<u8> {
        self.0
    }

    fn bytes(mut self, field: u8, bytes: &[u8]) -> Self {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn varint(&mut self, mut value: u64) {
        loop {
            let low = value.to_le_bytes()[0] & 0x7F;
            value >>= 7;
            if value == 0 {
                return self.0.push(low);
            }
            self.0.push(low | 0x80);
        }
    }
}
