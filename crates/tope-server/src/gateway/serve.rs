//! The server: one thread, one runtime and one listener a worker, and no other thread ever touches their connections.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::{Request, Response};
use http_body::Body;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::Upload;
use super::connection::Protocols;
use crate::shutdown::{Phase, Shutdown};
use crate::{listen, talk};

/// How long accepting pauses when the system has no more to give (file descriptors, memory).
const PAUSE: Duration = Duration::from_millis(50);
/// How often a worker says so at most.
const SAY_EVERY: Duration = Duration::from_mins(1);
/// What to do about it.
const SHORTAGE: &str = "allow the process more open files (`ulimit -n`, `LimitNOFILE=`) or fewer connections";

/// How clients are served.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// Threads, each with a listener and a service of its own; as many as there are cores unless set.
    pub workers: usize,
    /// How long a head may take, and the first byte of a connection.
    pub header: Duration,
    /// How long a connection may be idle, or stand still in the middle of a body.
    pub idle: Duration,
    /// How long a head may be, in bytes. (At most 100 fields in any case.)
    pub header_bytes: usize,
    /// Connections a worker has open at most; above it new ones wait to be accepted.
    pub connections: u32,
    /// How long what is in flight may take at the end.
    pub drain: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            header: Duration::from_secs(10),
            idle: Duration::from_mins(1),
            header_bytes: 32 << 10,
            connections: 10_000,
            drain: Duration::from_secs(30),
        }
    }
}

/// Listeners that are open and not served yet.
#[derive(Debug)]
pub struct Server {
    listeners: Vec<StdListener>,
    address: SocketAddr,
    settings: Settings,
}

impl Server {
    /// Opens the listeners of all workers, so that connections wait from now on.
    ///
    /// # Errors
    ///
    /// When the address is taken or not ours.
    pub fn bind(address: SocketAddr, settings: Settings) -> io::Result<Self> {
        let listeners = listen::listeners(address, settings.workers.max(1))?;
        let address = listeners[0].local_addr()?;
        Ok(Self { listeners, address, settings })
    }

    /// Where it listens; the port is the real one.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` says otherwise; returns when all connections have ended, or the time for that is over.
    ///
    /// `ready` is called once, when every worker has all that it needs to serve; never when one can't have it.
    /// `make_worker` is called once on each worker's runtime with its number. What it returns makes the service of
    /// each connection, given the client's address; that service must always be ready.
    ///
    /// # Errors
    ///
    /// When a thread, a runtime or a listener can't be had.
    pub fn run<R, W, M, S, B>(self, shutdown: &Shutdown, ready: R, make_worker: W) -> io::Result<()>
    where
        R: FnOnce(),
        W: Fn(usize) -> M + Sync,
        M: FnMut(SocketAddr) -> S,
        S: tower_service::Service<Request<Upload>, Response = Response<B>, Error = Infallible> + Send + 'static,
        S::Future: Send + 'static,
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let (settings, make_worker) = (&self.settings, &make_worker);
        let (begun, begins) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let spawn = |(number, listener)| {
                let (name, begun) = (format!("gateway-{number}"), begun.clone());
                std::thread::Builder::new().name(name).spawn_scoped(scope, move || {
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                    let done = runtime.block_on(async {
                        let (listener, make) = (TcpListener::from_std(listener)?, make_worker(number));
                        let _ = begun.send(());
                        drop(begun);
                        work(listener, settings, shutdown, make).await;
                        Ok(())
                    });
                    runtime.shutdown_background();
                    done
                })
            };
            let workers: Vec<_> = self.listeners.into_iter().enumerate().map(spawn).collect();
            drop(begun);
            if begins.iter().count() == workers.len() {
                ready();
            } else {
                shutdown.drain();
            }
            let mut result = Ok(());
            for worker in workers {
                let panicked = |_| Err(io::Error::other("a worker panicked"));
                let ended = worker.and_then(|thread| thread.join().unwrap_or_else(panicked));
                if ended.is_err() {
                    shutdown.drain();
                }
                result = result.and(ended);
            }
            result
        })
    }
}

async fn work<M, S, B>(listener: TcpListener, settings: &Settings, shutdown: &Shutdown, mut make: M)
where
    M: FnMut(SocketAddr) -> S,
    S: tower_service::Service<Request<Upload>, Response = Response<B>, Error = Infallible> + Send + 'static,
    S::Future: Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let protocols = Arc::new(Protocols::new(settings));
    let places = Arc::new(Semaphore::new(settings.connections as usize));
    let mut welcome = |stream: TcpStream, peer, place| {
        let (protocols, service, shutdown) = (Arc::clone(&protocols), make(peer), shutdown.clone());
        // Without it small answers may wait for an acknowledgement; a socket that refuses is closing anyway.
        let _ = stream.set_nodelay(true);
        tokio::spawn(async move {
            protocols.serve(stream, place, service, &shutdown).await;
        });
    };
    let accepting = async {
        let mut said: Option<Instant> = None;
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, peer)) => welcome(stream, peer, place),
                Err(error) if is_shortage(&error) => {
                    if said.is_none_or(|at| at.elapsed() >= SAY_EVERY) {
                        said = Some(Instant::now());
                        talk::say(&format!("warning: new connections wait: {error}\nhint: {SHORTAGE}\n"));
                    }
                    tokio::time::sleep(PAUSE).await;
                }
                // The client has gone again.
                Err(_) => {}
            }
        }
    };
    tokio::select! {
        biased;
        () = accepting => {}
        () = shutdown.reached(Phase::Draining) => {}
    }
    // Who has connected before the end is not reset: the kernel has told them yes.
    while let Ok(place) = Arc::clone(&places).try_acquire_owned() {
        let accepted = std::future::poll_fn(|cx| Poll::Ready(listener.poll_accept(cx)));
        // All of them: tokio would say after 128 that there is none.
        match tokio::task::unconstrained(accepted).await {
            Poll::Ready(Ok((stream, peer))) => welcome(stream, peer, place),
            Poll::Ready(Err(_)) | Poll::Pending => break,
        }
    }
    drop(listener);
    tokio::select! {
        _ = places.acquire_many(settings.connections) => {}
        () = tokio::time::sleep(settings.drain) => {}
        () = shutdown.reached(Phase::Ending) => {}
    }
}

fn is_shortage(error: &io::Error) -> bool {
    // EMFILE, ENFILE, ENOBUFS, ENOMEM
    matches!(error.raw_os_error(), Some(24 | 23 | 105 | 12))
}
