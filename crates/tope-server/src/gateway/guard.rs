//! A second look at the frame of every HTTP/1.1 request, stricter than the parser.
//!
//! hyper accepts a few spellings that another program on the way may read in another way, and two readings of one
//! message are how requests are smuggled: lines that end in a bare LF, `Content-Length` beside `Transfer-Encoding`,
//! `Content-Length` twice. The guard follows the bytes of a connection through heads, bodies and chunks, and spoils
//! the first byte that offends, so that the parser behind it answers 400 and closes. It costs about 100 ns a request.

use memchr::memchr;

/// What a line is remembered by when it arrives in pieces; no line that matters is longer.
const CARRY: usize = 96;
/// What a spoiled head is ended with, so that the parser looks at it at once.
const END: &[u8] = b"\r\n\r\n";

/// Where a client is in its stream of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// Between two requests.
    Boundary,
    /// A head has begun and has not ended.
    Head,
    /// A body has begun and has not ended.
    Body,
    /// The bytes are not HTTP/1.1, or no longer.
    Opaque,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Head,
    Fixed(u64),
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailer,
    Opaque,
    Spoiled { ended: bool },
}

/// Follows the requests of one connection. See the module.
#[derive(Debug)]
pub(crate) struct Guard {
    state: State,
    /// The beginning of a line whose end has not been read, and its whole length.
    carry: [u8; CARRY],
    carried: usize,
    last: u8,
    /// Lines seen of the present head.
    lines: usize,
    length: Option<u64>,
    chunked: bool,
    upgrade: bool,
}

impl Guard {
    /// A guard at the start of a connection; `http1` says whether there is anything to look at.
    pub(crate) fn new(http1: bool) -> Self {
        let state = if http1 { State::Head } else { State::Opaque };
        Self { state, carry: [0; CARRY], carried: 0, last: 0, lines: 0, length: None, chunked: false, upgrade: false }
    }

    /// Where the client is.
    pub(crate) fn at(&self) -> At {
        match self.state {
            State::Head if self.lines == 0 && self.carried == 0 => At::Boundary,
            State::Head | State::Spoiled { .. } => At::Head,
            State::Opaque => At::Opaque,
            _ => At::Body,
        }
    }

    /// What is to be read instead of the connection once a byte was spoiled: the end of the head, then nothing.
    pub(crate) fn substitute(&mut self) -> Option<&'static [u8]> {
        let State::Spoiled { ended } = &mut self.state else { return None };
        Some(if std::mem::replace(ended, true) { &[] } else { END })
    }

    /// Looks at what is sent to the client: after a 101 the stream is no longer HTTP.
    pub(crate) fn answered(&mut self, bytes: &[u8]) {
        if self.upgrade && bytes.starts_with(b"HTTP/1.1 101") {
            self.state = State::Opaque;
        }
    }

    /// Looks at bytes just read; returns how many of them to keep. The last kept one may have been spoiled.
    pub(crate) fn watch(&mut self, bytes: &mut [u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match self.state {
                State::Opaque => return bytes.len(),
                State::Spoiled { .. } => return at,
                State::Fixed(left) => at += self.skip(left, rest.len(), State::Head, State::Fixed),
                State::Chunk(left) => at += self.skip(left, rest.len(), State::ChunkEnd, State::Chunk),
                State::Head | State::ChunkSize | State::ChunkEnd | State::Trailer => match memchr(b'\n', rest) {
                    None => {
                        self.keep(rest);
                        return bytes.len();
                    }
                    Some(end) => {
                        let good = self.line(&rest[..end]);
                        at += end + 1;
                        if !good {
                            bytes[at - 1] = 0;
                            self.state = State::Spoiled { ended: false };
                            return at;
                        }
                    }
                },
            }
        }
        at
    }

    fn skip(&mut self, left: u64, here: usize, then: State, more: fn(u64) -> State) -> usize {
        let step = usize::try_from(left).unwrap_or(usize::MAX).min(here);
        let left = left - step as u64;
        self.state = if left == 0 { then } else { more(left) };
        step
    }

    fn keep(&mut self, part: &[u8]) {
        let from = self.carried.min(CARRY);
        let room = part.len().min(CARRY - from);
        self.carry[from..from + room].copy_from_slice(&part[..room]);
        self.carried += part.len();
        self.last = part.last().copied().unwrap_or(self.last);
    }

    /// Judges one line, given without its LF.
    fn line(&mut self, end: &[u8]) -> bool {
        if self.carried == 0 {
            return end.split_last().is_some_and(|(&last, line)| last == b'\r' && self.whole(line, line.len()));
        }
        self.keep(end);
        let (length, carry) = (self.carried, self.carry);
        self.carried = 0;
        self.last == b'\r' && self.whole(&carry[..(length - 1).min(CARRY)], length - 1)
    }

    /// Judges one whole line, given without its CRLF and perhaps cut short; `length` is what it was.
    fn whole(&mut self, line: &[u8], length: usize) -> bool {
        match self.state {
            State::Head if length == 0 => self.lines == 0 || self.body(),
            State::Head => {
                self.lines += 1;
                if self.lines == 1 {
                    self.upgrade = false;
                    return true;
                }
                self.field(line, length)
            }
            // Both together or neither is seen: a size is not judged by its beginning.
            State::ChunkSize if length > CARRY => false,
            State::ChunkSize => match chunk_size(line) {
                Some(0) => self.to(State::Trailer),
                Some(size) => self.to(State::Chunk(size)),
                None => false,
            },
            State::ChunkEnd => length == 0 && self.to(State::ChunkSize),
            State::Trailer if length == 0 => self.to(State::Head),
            _ => true,
        }
    }

    fn to(&mut self, state: State) -> bool {
        self.state = state;
        true
    }

    /// The head is whole: what follows it?
    fn body(&mut self) -> bool {
        self.lines = 0;
        let (length, chunked) = (self.length.take(), std::mem::take(&mut self.chunked));
        self.state = match length {
            Some(_) if chunked => return false,
            Some(left) if left > 0 => State::Fixed(left),
            None if chunked => State::ChunkSize,
            _ => State::Head,
        };
        true
    }

    /// Notes the fields that frame the message.
    fn field(&mut self, line: &[u8], length: usize) -> bool {
        match line.first() {
            Some(b' ' | b'\t') => false,
            Some(b'c' | b'C') => match after(line, b"content-length:") {
                None => true,
                Some(_) if length > line.len() || self.length.is_some() => false,
                Some(value) => {
                    self.length = digits(value);
                    self.length.is_some()
                }
            },
            Some(b't' | b'T') => match after(line, b"transfer-encoding:") {
                None => true,
                Some(_) if length > line.len() || self.chunked => false,
                Some(coding) => {
                    self.chunked = coding.trim_ascii().eq_ignore_ascii_case(b"chunked");
                    self.chunked
                }
            },
            Some(b'u' | b'U') => {
                self.upgrade |= after(line, b"upgrade:").is_some();
                true
            }
            _ => true,
        }
    }
}

fn after<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (head, tail) = line.split_at_checked(name.len())?;
    head.eq_ignore_ascii_case(name).then_some(tail)
}

fn digits(value: &[u8]) -> Option<u64> {
    let text = value.trim_ascii();
    let plain = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| plain)?.parse().ok()
}

fn chunk_size(line: &[u8]) -> Option<u64> {
    let end = line.iter().position(|b| !b.is_ascii_hexdigit()).unwrap_or(line.len());
    let extension = line[end..].trim_ascii_start();
    let clean = extension.is_empty() || extension[0] == b';';
    let text = std::str::from_utf8(&line[..end]).ok().filter(|_| clean && end <= 16)?;
    u64::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds a stream in every cut of two, and byte by byte; says how much was kept and where the guard stood.
    fn outcome(stream: &[u8]) -> Option<At> {
        let whole = run(&[stream]);
        for cut in 1..stream.len() {
            assert_eq!(whole, run(&[&stream[..cut], &stream[cut..]]), "cut at {cut} of {}", stream.escape_ascii());
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(whole, run(&bytes), "byte by byte");
        whole
    }

    fn run(parts: &[&[u8]]) -> Option<At> {
        let mut guard = Guard::new(true);
        for part in parts {
            let mut bytes = part.to_vec();
            let kept = guard.watch(&mut bytes);
            if let Some(end) = guard.substitute() {
                assert_eq!(bytes[kept - 1], 0);
                assert_eq!(end, END);
                return None;
            }
            assert_eq!(kept, bytes.len());
        }
        Some(guard.at())
    }

    #[test]
    fn follows_good_requests_through_bodies_and_chunks() {
        assert_eq!(outcome(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"), Some(At::Boundary));
        assert_eq!(outcome(b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n"), Some(At::Head));
        assert_eq!(outcome(b"PUT / HTTP/1.1\r\ncontent-LENGTH:  3 \r\n\r\nabc"), Some(At::Boundary));
        assert_eq!(outcome(b"PUT / HTTP/1.1\r\nContent-Length: 3\r\n\r\na\n"), Some(At::Body));
        let chunked = b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\na\nb\r\n0\r\nX: y\r\n\r\n";
        assert_eq!(outcome(chunked), Some(At::Boundary));
        assert_eq!(outcome(&[&chunked[..], b"GET / HTTP/1.1\r\n"].concat()), Some(At::Head));
        let long = format!("GET /{} HTTP/1.1\r\nCookie: {}\r\n\r\n", "a".repeat(300), "b".repeat(300));
        assert_eq!(outcome(long.as_bytes()), Some(At::Boundary));
    }

    #[test]
    fn spoils_what_two_programs_could_read_in_two_ways() {
        for bad in [
            &b"GET / HTTP/1.1\nHost: a\r\n\r\n"[..],
            b"GET / HTTP/1.1\r\nHost: a\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\n\n",
            b"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: +3\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: 3,3\r\n\r\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: identity\r\n\r\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n00000000000000003\r\nabc\r\n",
        ] {
            assert_eq!(outcome(bad), None, "{}", bad.escape_ascii());
        }
        for size in [format!("{:0>120}", 3), format!("3;{}", "x".repeat(100))] {
            let bad = format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{size}\r\nabc\r\n");
            assert_eq!(outcome(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_switch_of_protocols_ends_the_watch() {
        let mut guard = Guard::new(true);
        guard.watch(&mut b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n".to_vec());
        guard.answered(b"HTTP/1.1 200 OK\r\n");
        assert_eq!(guard.at(), At::Boundary);
        guard.watch(&mut b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec());
        guard.answered(b"HTTP/1.1 101 Switching Protocols\r\n");
        assert_eq!(guard.at(), At::Boundary, "it is not this request that asked to switch");
        guard.watch(&mut b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n".to_vec());
        guard.answered(b"HTTP/1.1 101 Switching Protocols\r\n");
        assert_eq!((guard.at(), guard.watch(&mut b"\n\n\n".to_vec())), (At::Opaque, 3));
    }
}
