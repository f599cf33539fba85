//! The connection to one HTTP/2 upstream that all requests of a worker share.

use std::time::Duration;

use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::Mutex;

use super::upload::Outbound;

/// How often an upstream is asked whether it is there, and how long it may take to say so.
const PING: Duration = Duration::from_secs(20);
/// What one answer may have sent before it is read on.
const STREAM_WINDOW: u32 = 256 << 10;
/// What all answers together may have sent: no limit, because an answer that nobody reads must not use up the share of
/// the others (hyper's adaptive window is one for both).
const CONNECTION_WINDOW: u32 = (1 << 31) - 1;

/// One connection, made again when it has closed.
#[derive(Debug, Default)]
pub(crate) struct Shared(Mutex<Option<SendRequest<Outbound>>>);

impl Shared {
    /// The connection, opened with `connect` if there is none; with `fresh` a new one in any case.
    pub(crate) async fn take<E: From<hyper::Error>>(
        &self,
        fresh: bool,
        connect: impl Future<Output = Result<TcpStream, E>>,
    ) -> Result<SendRequest<Outbound>, E> {
        let mut held = self.0.lock().await;
        if let Some(sender) = held.as_ref().filter(|sender| !fresh && !sender.is_closed()) {
            return Ok(sender.clone());
        }
        let stream = connect.await?;
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.timer(TokioTimer::new()).keep_alive_interval(PING).keep_alive_timeout(PING);
        builder.initial_stream_window_size(STREAM_WINDOW).initial_connection_window_size(CONNECTION_WINDOW);
        builder.max_header_list_size(64 << 10);
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        *held = Some(sender.clone());
        Ok(sender)
    }
}
