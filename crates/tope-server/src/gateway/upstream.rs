//! The upstreams of one worker: which one is next, and connections to it.

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Once};
use std::time::Duration;

use http::uri::Authority;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::link::Link;
use super::pool::Pool;
use super::shared::Shared;
use crate::settings::upstream::Upstream as Target;

/// How long making a connection may take, name included.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an upstream that could not be reached is passed over while there are others.
const PASSED_OVER_MS: u64 = 2_000;

/// All upstreams, taken in turn.
#[derive(Debug)]
pub(crate) struct Upstreams {
    all: Box<[Upstream]>,
    turn: AtomicUsize,
    started: Instant,
}

/// One upstream.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) authority: Authority,
    pub(crate) kind: Kind,
    /// Milliseconds after the start until which it is passed over.
    until: AtomicU64,
}

/// What an upstream speaks, and the connections to it.
#[derive(Debug)]
pub(crate) enum Kind {
    Http1 { pool: Arc<Pool>, swept: Once },
    Http2(Shared),
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum ConnectError {
    Io,
    Http,
}

impl From<io::Error> for ConnectError {
    fn from(_: io::Error) -> Self {
        Self::Io
    }
}

impl From<hyper::Error> for ConnectError {
    fn from(_: hyper::Error) -> Self {
        Self::Http
    }
}

impl Upstreams {
    /// The upstreams among the targets; none when the sample answers.
    pub(crate) fn new(targets: &[Target]) -> Self {
        let one = |target: &Target| {
            let (authority, kind) = match target {
                Target::Http1(authority) => (authority, Kind::Http1 { pool: Arc::default(), swept: Once::new() }),
                Target::Http2(authority) => (authority, Kind::Http2(Shared::default())),
                Target::Demo => return None,
            };
            Some(Upstream { authority: authority.clone(), kind, until: AtomicU64::new(0) })
        };
        let all = targets.iter().filter_map(one).collect();
        Self { all, turn: AtomicUsize::new(0), started: Instant::now() }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// A connection to the next upstream that takes one; `fresh` when a kept one has just failed.
    pub(crate) async fn link(&self, fresh: bool) -> Option<Link<'_>> {
        for _ in 0..self.all.len() {
            let upstream = self.next();
            if let Some(link) = (!fresh).then(|| Link::kept(upstream)).flatten() {
                return Some(link);
            }
            match Box::pin(Link::open(upstream, fresh)).await {
                Ok(link) => return Some(link),
                Err(_) => self.pass_over(upstream),
            }
        }
        None
    }

    /// The next upstream in turn that is not passed over, or else the next in turn.
    fn next(&self) -> &Upstream {
        let turn = self.turn.load(Relaxed);
        self.turn.store(turn.wrapping_add(1), Relaxed);
        let from = turn % self.all.len();
        if self.all.len() == 1 {
            return &self.all[0];
        }
        let order = self.all[from..].iter().chain(&self.all[..from]);
        let now = self.now();
        order.clone().find(|one| one.until.load(Relaxed) <= now).unwrap_or(&self.all[from])
    }

    /// Passes an upstream over for a while.
    fn pass_over(&self, upstream: &Upstream) {
        upstream.until.store(self.now() + PASSED_OVER_MS, Relaxed);
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Upstream {
    /// A new connection, to the first address of the name that takes it.
    pub(crate) async fn connect(&self) -> Result<TcpStream, ConnectError> {
        let host = self.authority.host().trim_start_matches('[').trim_end_matches(']');
        let port = self.authority.port_u16().unwrap_or(80);
        let stream = timeout(CONNECT, TcpStream::connect((host, port))).await.map_err(|_| ConnectError::Io)??;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}
