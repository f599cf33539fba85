//! A socket that closes so that its last words arrive.
//!
//! Who closes a socket with unread bytes in it sends a reset, and the reset may overtake the answer: a client that is
//! still uploading would see "connection reset" where it was told 429. So the end is in two steps: stop writing, then
//! read and discard what still comes, at most [`BYTES`], and leave it unread from there on: a client that can send no more
//! looks up and reads. After [`TIME`] it is over in any case.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// How long an ending connection is read for.
pub const TIME: Duration = Duration::from_secs(1);
/// How much is read from an ending connection.
pub const BYTES: usize = 1 << 20;

/// A TCP stream with a patient end. See the module.
#[derive(Debug)]
pub struct Lingering {
    stream: TcpStream,
    end: End,
}

#[derive(Debug)]
enum End {
    Open,
    Reading { left: usize, until: Pin<Box<Sleep>> },
    Closed,
}

impl Lingering {
    /// Takes a connected stream.
    pub fn new(stream: TcpStream) -> Self {
        Self { stream, end: End::Open }
    }

    /// The stream itself.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// The stream itself, to read from and write to.
    pub fn stream_mut(&mut self) -> Pin<&mut TcpStream> {
        Pin::new(&mut self.stream)
    }

    /// Ends the connection; with `unread` it waits until the client has heard it.
    ///
    /// # Errors
    ///
    /// What the operating system says to the end of writing.
    pub fn poll_close(&mut self, cx: &mut Context<'_>, unread: bool) -> Poll<io::Result<()>> {
        if matches!(self.end, End::Open) {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            self.end = if unread {
                End::Reading { left: BYTES, until: Box::pin(tokio::time::sleep(TIME)) }
            } else {
                End::Closed
            };
        }
        let mut scratch = [0; 16 * 1024];
        while let End::Reading { left, until } = &mut self.end {
            let mut room = ReadBuf::new(&mut scratch);
            let read = if *left == 0 { Poll::Pending } else { Pin::new(&mut self.stream).poll_read(cx, &mut room) };
            match read {
                Poll::Ready(Ok(())) if !room.filled().is_empty() => {
                    *left = left.saturating_sub(room.filled().len());
                    continue;
                }
                Poll::Ready(_) => {}
                Poll::Pending => ready!(until.as_mut().poll(cx)),
            }
            self.end = End::Closed;
        }
        Poll::Ready(Ok(()))
    }
}
