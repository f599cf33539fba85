//! Bytes to lines, without an allocation a line and without ever holding a line that is too long.

use std::io::{self, Read};

/// A line beyond this many bytes is broken; it is passed over, not read whole.
pub const LONGEST: usize = 1 << 20;

const CHUNK: usize = 1 << 16;

/// One line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Raw<'a> {
    /// Its bytes.
    Bytes(&'a [u8]),
    /// It is longer than [`LONGEST`].
    TooLong,
}

/// The lines of a reader.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    /// What is read and not yet given away: `buffer[from..to]`.
    from: usize,
    to: usize,
    ended: bool,
}

impl<R: Read> Lines<R> {
    /// The lines of `reader`.
    pub fn new(reader: R) -> Self {
        Self { reader, buffer: vec![0; 2 * CHUNK], from: 0, to: 0, ended: false }
    }

    /// The next line; `None` at the end. A last line without an end is a line.
    ///
    /// # Errors
    /// What the reader says.
    pub fn read(&mut self) -> io::Result<Option<Raw<'_>>> {
        let mut seen = 0;
        let mut too_long = false;
        loop {
            let unread = &self.buffer[self.from..self.to];
            if let Some(end) = memchr::memchr(b'\n', &unread[seen..]) {
                let line = self.from..self.from + seen + end;
                self.from = line.end + 1;
                let too_long = too_long || line.len() > LONGEST;
                return Ok(Some(if too_long { Raw::TooLong } else { Raw::Bytes(trimmed(&self.buffer[line])) }));
            }
            seen = unread.len();
            if seen > LONGEST {
                too_long = true;
                self.from = self.to;
                seen = 0;
            }
            if self.ended {
                let line = self.from..self.to;
                if line.is_empty() && !too_long {
                    return Ok(None);
                }
                self.from = self.to;
                return Ok(Some(if too_long { Raw::TooLong } else { Raw::Bytes(trimmed(&self.buffer[line])) }));
            }
            self.fill()?;
        }
    }

    /// Reads more behind what is unread.
    fn fill(&mut self) -> io::Result<()> {
        if self.from > 0 {
            self.buffer.copy_within(self.from..self.to, 0);
            self.to -= self.from;
            self.from = 0;
        }
        if self.buffer.len() - self.to < CHUNK {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        loop {
            match self.reader.read(&mut self.buffer[self.to..]) {
                Ok(read) => {
                    self.to += read;
                    self.ended = read == 0;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Without the carriage return of other systems.
fn trimmed(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time, or as many as said.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let length = self.0.len().min(self.1).min(into.len());
            into[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    fn all(bytes: &[u8], step: usize) -> Vec<Option<Vec<u8>>> {
        let mut lines = Lines::new(Slow(bytes, step));
        let mut found = Vec::new();
        while let Some(raw) = lines.read().expect("memory can be read") {
            found.push(match raw {
                Raw::Bytes(bytes) => Some(bytes.to_vec()),
                Raw::TooLong => None,
            });
        }
        found
    }

    #[test]
    fn lines_are_the_same_however_they_arrive() {
        let text = b"one\r\n\ntwo\nlast";
        let expected: Vec<_> = [&b"one"[..], b"", b"two", b"last"].iter().map(|line| Some(line.to_vec())).collect();
        for step in [1, 2, 3, 7, 100] {
            assert_eq!(all(text, step), expected, "{step} bytes at a time");
        }
        assert_eq!(all(b"", 1), []);
        assert_eq!(all(b"\n", 1), [Some(Vec::new())]);
    }

    #[test]
    fn a_line_may_be_a_mebibyte_and_not_a_byte_more() {
        for (length, kept) in [(LONGEST, true), (LONGEST + 1, false), (5 * LONGEST, false)] {
            for end in [&b"\n"[..], b"\nnext\n", b""] {
                let mut text = vec![b'x'; length];
                text.extend_from_slice(end);
                let found = all(&text, 1 << 15);
                assert_eq!(found[0].is_some(), kept, "{length} bytes");
                assert_eq!(found.get(1).cloned().flatten().as_deref(), (end.len() > 1).then_some(&b"next"[..]));
            }
        }
    }

    #[test]
    fn long_lines_do_not_grow_the_buffer_without_bound() {
        let mut lines = Lines::new(io::repeat(b'x').take(64 << 20));
        assert_eq!(lines.read().expect("memory can be read"), Some(Raw::TooLong));
        assert_eq!(lines.read().expect("memory can be read"), None);
        assert!(lines.buffer.len() <= 4 * LONGEST, "{} bytes", lines.buffer.len());
    }
}
