//! Connections to one HTTP/1.1 upstream, kept by one worker: the last one used is used first.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::upload::Outbound;

/// Idle connections kept at most.
const KEPT: usize = 512;
/// What hyper may buffer for one connection; also how long the head of an answer may be.
const BUFFER: usize = 64 << 10;
/// Time goes in steps of this; it is read once a step, not once a request.
const STEP: Duration = Duration::from_secs(5);
/// Steps after which an idle connection closes: 50 to 55 s, below the 60 s after which many servers close theirs.
const STEPS: u32 = 11;

/// Idle connections to one upstream.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    idle: Mutex<Vec<Idle>>,
    step: AtomicU32,
}

#[derive(Debug)]
struct Idle {
    sender: SendRequest<Outbound>,
    since: u32,
}

/// A connection in use, and the pool that it goes back to. Dropped, it closes after what it is doing.
#[derive(Debug)]
pub(crate) struct Lease {
    sender: SendRequest<Outbound>,
    pool: Arc<Pool>,
}

impl Pool {
    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An idle connection that is open and ready as far as is known.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Lease> {
        let mut idle = self.idle();
        while let Some(one) = idle.pop() {
            if one.sender.is_ready() && !one.sender.is_closed() {
                return Some(Lease { sender: one.sender, pool: Arc::clone(self) });
            }
        }
        None
    }

    /// A connection made of a fresh stream.
    pub(crate) async fn open(self: &Arc<Self>, stream: TcpStream) -> hyper::Result<Lease> {
        let (sender, connection) =
            http1::Builder::new().max_buf_size(BUFFER).max_header_size(BUFFER).handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection.with_upgrades());
        Ok(Lease { sender, pool: Arc::clone(self) })
    }

    /// Closes what has been idle for too long, as long as the pool is there.
    pub(crate) async fn sweep(pool: Weak<Self>) {
        loop {
            tokio::time::sleep(STEP).await;
            let Some(pool) = pool.upgrade() else { return };
            let now = pool.step.fetch_add(1, Relaxed).wrapping_add(1);
            pool.idle().retain(|one| now.wrapping_sub(one.since) < STEPS && !one.sender.is_closed());
        }
    }
}

impl Lease {
    /// Where requests are given to the connection.
    pub(crate) fn sender(&mut self) -> &mut SendRequest<Outbound> {
        &mut self.sender
    }

    /// Gives the connection back, if it is ready for another request.
    pub(crate) fn give_back(self) {
        if self.sender.is_closed() || !self.sender.is_ready() {
            return;
        }
        let mut idle = self.pool.idle();
        if idle.len() < KEPT {
            idle.push(Idle { sender: self.sender, since: self.pool.step.load(Relaxed) });
        }
    }
}
