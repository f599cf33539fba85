//! A small HTTP/1.1 client that sends what it is told, byte for byte, from any address of this machine.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};

use socket2::{Domain, Socket, Type};

use crate::support::LONG;

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    method: String,
    target: String,
    fields: String,
    body: Vec<u8>,
}

pub(crate) fn ask(method: &str, target: &str) -> Ask {
    Ask { method: method.into(), target: target.into(), fields: String::new(), body: Vec::new() }
}

pub(crate) fn get(target: &str) -> Ask {
    ask("GET", target)
}

pub(crate) fn post(target: &str) -> Ask {
    ask("POST", target)
}

impl Ask {
    /// With one more header field.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        let _ = write!(self.fields, "{name}: {value}\r\n");
        self
    }

    pub(crate) fn body(mut self, body: &[u8]) -> Self {
        self.body = body.to_vec();
        self.with("Content-Length", &body.len().to_string())
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let Self { method, target, fields, body } = self;
        let mut bytes = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n").into_bytes();
        bytes.extend_from_slice(body);
        bytes
    }

    fn is_head(&self) -> bool {
        self.method == "HEAD"
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The value of a field that must not stand twice.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let all = self.all(name);
        assert!(all.len() < 2, "{name} stands twice: {all:?}");
        all.first().copied()
    }

    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let named = self.fields.iter().filter(|(one, _)| one.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str()).collect()
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.field(name).map(|value| value.parse().unwrap())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The names of all fields about limits, in lower case.
    pub(crate) fn limit_fields(&self) -> Vec<String> {
        let names = self.fields.iter().map(|(name, _)| name.to_ascii_lowercase());
        let mut names: Vec<_> = names.filter(|name| name.contains("ratelimit") || name == "retry-after").collect();
        names.sort();
        names
    }
}

/// A connection.
pub(crate) struct Caller {
    reader: BufReader<TcpStream>,
}

impl Caller {
    pub(crate) fn connect(to: SocketAddr) -> Self {
        Self::new(TcpStream::connect(to).unwrap())
    }

    pub(crate) fn connect_from(from: &str, to: SocketAddr) -> Self {
        let from = SocketAddr::new(from.parse::<IpAddr>().unwrap(), 0);
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, None).unwrap();
        socket.bind(&from.into()).unwrap();
        socket.connect(&to.into()).unwrap();
        Self::new(socket.into())
    }

    fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_write_timeout(Some(LONG)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { reader: BufReader::with_capacity(64 << 10, stream) }
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    pub(crate) fn ask(&mut self, ask: &Ask) -> Answer {
        self.send(&ask.bytes());
        self.answer(ask.is_head())
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.reader.get_mut().write_all(bytes).unwrap();
    }

    /// The next answer, which after HEAD has no body.
    pub(crate) fn answer(&mut self, to_head: bool) -> Answer {
        let first = self.line();
        let status = first.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no answer but {first:?}"));
        let mut answer = Answer { status, fields: Vec::new(), body: Vec::new() };
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(':') else { break };
            answer.fields.push((name.to_owned(), value.trim().to_owned()));
        }
        if to_head || status < 200 || status == 204 {
            return answer;
        }
        if answer.field("transfer-encoding").is_some() {
            loop {
                let size = usize::from_str_radix(&self.line(), 16).unwrap();
                let chunk = self.bytes(size);
                answer.body.extend(chunk);
                assert_eq!(self.line(), "");
                if size == 0 {
                    return answer;
                }
            }
        }
        let length = answer.number("content-length").unwrap_or(0);
        answer.body = self.bytes(usize::try_from(length).unwrap());
        answer
    }

    /// Reads the answers to so many HEAD requests; how many were not 200.
    pub(crate) fn heads(&mut self, count: usize) -> usize {
        let mut others = 0;
        for _ in 0..count {
            others += usize::from(!self.line().contains(" 200 "));
            while !self.line().is_empty() {}
        }
        others
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        line.truncate(line.trim_end().len());
        line
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.reader.read_exact(&mut bytes).unwrap();
        bytes
    }
}
