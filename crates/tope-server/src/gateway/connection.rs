//! One connection from a client: HTTP/1.1 or HTTP/2, until it ends by itself or is asked to.

use std::cell::RefCell;
use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use http::{Request, Response, Version};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use pin_project_lite::pin_project;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use super::Upload;
use super::client_io::{ClientIo, Patience};
use super::load::{Busy, Counted, Load};
use super::serve::Settings;
use super::stall::{Streams, may_pause};
use crate::shutdown::{Phase, Shutdown};

/// Streams that one HTTP/2 connection may have open.
const STREAMS: u32 = 100;
/// Streams that a client may have opened and reset before they were looked at, and made us reset: rapid reset is bounded.
const RESETS: usize = 20;
const FAULTS: usize = 1024;
/// How long a client that has connected before the end may take to begin a request.
const LAST_CALL: Duration = Duration::from_secs(1);
/// What hyper may buffer for one connection.
const BUFFER: usize = 64 << 10;
/// What hyper may buffer for one stream of HTTP/2.
const STREAM_BUFFER: usize = 32 << 10;

/// How connections are served: the same for all of a worker.
#[derive(Debug)]
pub(crate) struct Protocols {
    http1: http1::Builder,
    http2: http2::Builder<Streams>,
    patience: Patience,
}

impl Protocols {
    pub(crate) fn new(settings: &Settings) -> Self {
        let mut http1 = http1::Builder::new();
        http1.max_header_size(settings.header_bytes).max_buf_size(BUFFER.max(settings.header_bytes));
        http1.header_read_timeout(None);
        let mut http2 = http2::Builder::new(Streams { idle: settings.idle });
        http2
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS)
            .max_send_buf_size(STREAM_BUFFER)
            .max_header_list_size(u32::try_from(settings.header_bytes).unwrap_or(u32::MAX))
            .max_pending_accept_reset_streams(RESETS)
            .max_local_error_reset_streams(FAULTS)
            .keep_alive_interval(settings.idle / 3)
            .keep_alive_timeout(settings.header);
        Self { http1, http2, patience: Patience { header: settings.header, idle: settings.idle } }
    }

    /// Serves one client with one service.
    pub(crate) async fn serve<S, B>(
        &self,
        stream: TcpStream,
        place: OwnedSemaphorePermit,
        service: S,
        shutdown: &Shutdown,
    ) where
        S: tower_service::Service<Request<Upload>, Response = Response<B>, Error = Infallible> + Send + 'static,
        S::Future: Send + 'static,
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let load = Arc::<Load>::default();
        let mut accepting = pin!(ClientIo::accept(stream, Arc::clone(&load), self.patience, place));
        let accepted = tokio::select! {
            biased;
            accepted = accepting.as_mut() => accepted,
            // What has been sent before the end may still be on its way, and a close would reset it.
            () = shutdown.reached(Phase::Draining) => {
                tokio::time::timeout(LAST_CALL.min(self.patience.header), accepting).await.ok().flatten()
            }
        };
        let Some((io, is_http2)) = accepted else { return };
        let io = TokioIo::new(io);
        let service = Adapter { service: RefCell::new(service), load: Arc::clone(&load), idle: self.patience.idle };
        if is_http2 {
            let connection = self.http2.serve_connection(io, service);
            let idle = Some((self.patience.idle, load));
            drive(pin!(connection), http2::Connection::graceful_shutdown, shutdown, idle).await;
        } else {
            let connection = self.http1.serve_connection(io, service).with_upgrades();
            drive(pin!(connection), http1::UpgradeableConnection::graceful_shutdown, shutdown, None).await;
        }
    }
}

/// Runs a connection to its end; asks it to end when the program does, or when it has been `idle` for that long.
async fn drive<C: Future>(
    mut connection: Pin<&mut C>,
    finish: fn(Pin<&mut C>),
    shutdown: &Shutdown,
    idle: Option<(Duration, Arc<Load>)>,
) {
    // The task's waker is the same at every poll, so waiting for the end is told to it once: no cost a request.
    let mut ending = pin!(shutdown.reached(Phase::Draining));
    let mut turn = pin!(tokio::task::yield_now());
    let mut begun = 0;
    let mut timer = idle.map(|(period, load)| (Box::pin(tokio::time::sleep(period)), period, load));
    let (mut told, mut asked) = (false, false);
    std::future::poll_fn(|cx| {
        if !told {
            told = true;
            let _ = ending.as_mut().poll(cx);
        }
        let mut end = shutdown.phase() > Phase::Running;
        if let Some((sleep, period, load)) = &mut timer {
            while sleep.as_mut().poll(cx).is_ready() {
                let idle = load.is_idle() && load.begun() == begun;
                if idle && asked {
                    // Everything has been said and is not taken.
                    return Poll::Ready(());
                }
                end |= idle;
                begun = load.begun();
                sleep.as_mut().reset(tokio::time::Instant::now() + *period);
            }
        }
        // An error is the client's: it broke off or it spoke something else, and has been told what can be told.
        let ended = connection.as_mut().poll(cx).map(drop);
        // What came with the news of the end is in the socket, and is seen after one turn of the runtime.
        if end && !asked && ended.is_pending() && turn.as_mut().poll(cx).is_ready() {
            asked = true;
            // Only now: asked before it has looked at what it was sent, it would close and reset it.
            finish(connection.as_mut());
            return connection.as_mut().poll(cx).map(drop);
        }
        ended
    })
    .await;
}

/// A tower service as hyper calls it.
struct Adapter<S> {
    service: RefCell<S>,
    load: Arc<Load>,
    idle: Duration,
}

impl<S, B> hyper::service::Service<Request<Incoming>> for Adapter<S>
where
    S: tower_service::Service<Request<Upload>, Response = Response<B>, Error = Infallible>,
{
    type Response = Response<Counted<B>>;
    type Error = NotReady;
    type Future = Answering<S::Future>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let mut service = self.service.borrow_mut();
        let Poll::Ready(Ok(())) = service.poll_ready(&mut Context::from_waker(Waker::noop())) else {
            return Answering::NotReady;
        };
        let linger = request.version() == Version::HTTP_2;
        let request = request.map(|body| Upload::new(body, linger));
        Answering::Running { future: service.call(request), busy: Some(self.load.begin()), idle: self.idle }
    }
}

/// A service that has to be waited for before it may be called; a connection to one ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NotReady;

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the service was not ready")
    }
}

impl Error for NotReady {}

pin_project! {
    /// A service's future whose request counts until its answer's body has ended.
    #[project = Answered]
    pub(crate) enum Answering<F> {
        Running { #[pin] future: F, busy: Option<Busy>, idle: Duration },
        NotReady,
    }
}

impl<F, B> Future for Answering<F>
where
    F: Future<Output = Result<Response<B>, Infallible>>,
{
    type Output = Result<Response<Counted<B>>, NotReady>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Answered::Running { future, busy, idle } = self.project() else { return Poll::Ready(Err(NotReady)) };
        let Ok(response) = ready!(future.poll(cx));
        let busy = busy.take().expect("polled once after it was ready");
        let patience = (!may_pause(response.headers())).then_some(*idle);
        Poll::Ready(Ok(response.map(|body| Counted::new(body, busy, patience))))
    }
}
