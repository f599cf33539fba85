//! An API behind the gateway that counts what reaches it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Connections, requests and bytes, whatever they were.
#[derive(Debug, Default)]
struct Counts {
    connections: AtomicUsize,
    requests: AtomicUsize,
    bytes: AtomicUsize,
}

pub(crate) struct Upstream {
    address: SocketAddr,
    counts: Arc<Counts>,
}

impl Upstream {
    /// Answers every request with 200, these header lines (each with its CRLF) and the head that it was sent.
    pub(crate) fn saying(fields: &'static str) -> Self {
        Self::start(move |_| fields.to_owned())
    }

    /// The header lines are a function of the head of the request.
    pub(crate) fn start(fields: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self::answering(move |head| (200, fields(head)))
    }

    /// The status and the header lines are a function of the head of the request, which may take its time.
    pub(crate) fn answering(answer: impl Fn(&str) -> (u16, String) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, counts) = (listener.local_addr().unwrap(), Arc::<Counts>::default());
        let (answer, counted) = (Arc::new(answer), Arc::clone(&counts));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                counted.connections.fetch_add(1, SeqCst);
                let (answer, counted) = (Arc::clone(&answer), Arc::clone(&counted));
                let thread = std::thread::Builder::new().stack_size(128 << 10);
                thread.spawn(move || serve(stream, &*answer, &counted)).unwrap();
            }
        });
        Self { address, counts }
    }

    /// The line of a policy that names it.
    pub(crate) fn line(&self) -> String {
        format!("upstream: http://{}\n", self.address)
    }

    /// Connections, requests and bytes that it was sent.
    pub(crate) fn seen(&self) -> (usize, usize, usize) {
        let Counts { connections, requests, bytes } = &*self.counts;
        (connections.load(SeqCst), requests.load(SeqCst), bytes.load(SeqCst))
    }

    pub(crate) fn requests(&self) -> usize {
        self.seen().1
    }
}

fn serve(stream: TcpStream, answer: &dyn Fn(&str) -> (u16, String), counts: &Counts) {
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            match reader.read_line(&mut head) {
                Ok(read) if read > 0 => counts.bytes.fetch_add(read, SeqCst),
                _ => return,
            };
        }
        let length = head.lines().filter_map(|line| line.split_once(':'));
        let length = length.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        let length: u64 = length.into_iter().next_back().map_or(0, |(_, value)| value.trim().parse().unwrap());
        let read = std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink()).unwrap();
        counts.bytes.fetch_add(usize::try_from(read).unwrap(), SeqCst);
        counts.requests.fetch_add(1, SeqCst);
        let (status, extra) = answer(&head);
        let body = if head.starts_with("HEAD ") { "" } else { &head };
        let answer = format!("HTTP/1.1 {status} Answer\r\n{extra}Content-Length: {}\r\n\r\n{body}", head.len());
        if reader.get_mut().write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}
