//! The data of an event stream (WHATWG HTML section 9.2.6), line by line, as it passes.

/// Finds the bytes of `data` fields, whatever the pieces they arrive in; nothing is kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    at: At,
    /// The last byte was a carriage return, so a line feed belongs to it.
    after_return: bool,
}

#[derive(Clone, Copy, Debug)]
enum At {
    /// Within the name of a field, of which so many bytes are those of `data:`.
    Name(usize),
    /// Behind the colon.
    Data,
    /// In a line that is none of data.
    Other,
}

impl Default for At {
    fn default() -> Self {
        Self::Name(0)
    }
}

/// What a stream is made of.
pub(super) enum Part<'a> {
    /// Some bytes of the data of an event.
    Data(&'a [u8]),
    /// A line of data has ended: data that goes on is on a line of its own.
    LineEnd,
    /// An event has ended.
    EventEnd,
}

const NAME: &[u8] = b"data:";

impl Lines {
    /// Looks at the next bytes.
    pub(super) fn feed(&mut self, mut bytes: &[u8], mut part: impl FnMut(Part<'_>)) {
        while let Some((&byte, rest)) = bytes.split_first() {
            if std::mem::take(&mut self.after_return) && byte == b'\n' {
                bytes = rest;
                continue;
            }
            if matches!(byte, b'\r' | b'\n') {
                self.after_return = byte == b'\r';
                part(if matches!(self.at, At::Name(0)) { Part::EventEnd } else { Part::LineEnd });
                self.at = At::Name(0);
                bytes = rest;
                continue;
            }
            match self.at {
                At::Name(same) if NAME[same] == byte => {
                    self.at = if same + 1 == NAME.len() { At::Data } else { At::Name(same + 1) };
                    bytes = rest;
                }
                At::Name(_) => self.at = At::Other,
                At::Data | At::Other => {
                    let end = memchr::memchr2(b'\r', b'\n', bytes).unwrap_or(bytes.len());
                    if let At::Data = self.at {
                        part(Part::Data(&bytes[..end]));
                    }
                    bytes = &bytes[end..];
                }
            }
        }
    }
}
