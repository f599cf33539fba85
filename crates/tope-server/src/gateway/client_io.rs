//! The client's side of a connection: its bytes, guarded, and its time, limited.
//!
//! hyper has one time-out for a head and for the pause before it; a gateway needs two, and needs to notice a client
//! that stops in the middle of a body or no longer reads. All four are judged here, where the bytes pass, with one
//! timer a connection that is set again only when it has gone off.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep};

use super::guard::{At, Guard};
use super::load::Load;
use crate::lingering::Lingering;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const TOO_SLOW: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
/// Read at once to tell the protocols apart; most heads fit.
const FIRST: usize = 2048;

/// How long a client may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// For a head, from its first byte to its last; also for the first byte of a connection.
    pub(crate) header: Duration,
    /// For the pause between requests, and for any stop while a body passes.
    pub(crate) idle: Duration,
}

/// A client's connection. See the module.
#[derive(Debug)]
pub(crate) struct ClientIo {
    socket: Lingering,
    first: Vec<u8>,
    first_read: usize,
    guard: Guard,
    load: Arc<Load>,
    patience: Patience,
    /// Until when the present head may take.
    head_until: Option<Instant>,
    /// Until when anything must have moved.
    until: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
    given_up: bool,
    ended: bool,
    /// Its place among the connections of its worker, kept by what it may become: a tunnel is one too.
    _place: OwnedSemaphorePermit,
}

impl ClientIo {
    /// Waits for the first bytes and tells by them whether the client speaks HTTP/2; `None` when it left or said nothing.
    pub(crate) async fn accept(
        stream: TcpStream,
        load: Arc<Load>,
        patience: Patience,
        place: OwnedSemaphorePermit,
    ) -> Option<(Self, bool)> {
        let mut first = Vec::with_capacity(FIRST);
        let read = async {
            loop {
                stream.readable().await?;
                match stream.try_read_buf(&mut first) {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(_) if first.len() >= PREFACE.len() || !PREFACE.starts_with(&first) => return Ok(()),
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
        };
        tokio::time::timeout(patience.header, read).await.ok()?.ok()?;
        let http2 = first.starts_with(PREFACE);
        let socket = Lingering::new(stream);
        let guard = Guard::new(!http2);
        let (head_until, until, timer) = (None, None, None);
        let (first_read, given_up, ended) = (0, false, false);
        let io = Self {
            socket,
            first,
            first_read,
            guard,
            load,
            patience,
            head_until,
            until,
            timer,
            given_up,
            ended,
            _place: place,
        };
        Some((io, http2))
    }

    fn fill(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.first.is_empty() {
            return self.socket.stream_mut().poll_read(cx, buf);
        }
        let rest = &self.first[self.first_read..];
        let step = rest.len().min(buf.remaining());
        buf.put_slice(&rest[..step]);
        self.first_read += step;
        if self.first_read == self.first.len() {
            self.first = Vec::new();
        }
        Poll::Ready(Ok(()))
    }

    /// What a client that says nothing is waited for, and from when.
    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self.guard.at() {
            At::Head => {
                let until = *self.head_until.get_or_insert_with(|| Instant::now() + self.patience.header);
                self.poll_until(cx, until)
            }
            At::Boundary if self.load.is_idle() => self.poll_still(cx),
            At::Body => self.poll_still(cx),
            At::Boundary | At::Opaque => Poll::Pending,
        }
    }

    fn poll_still(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let until = *self.until.get_or_insert_with(|| Instant::now() + self.patience.idle);
        self.poll_until(cx, until)
    }

    fn poll_until(&mut self, cx: &mut Context<'_>, until: Instant) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        if timer.deadline() > until {
            timer.as_mut().reset(until);
        }
        while timer.as_mut().poll(cx).is_ready() {
            if timer.deadline() >= until {
                return Poll::Ready(());
            }
            timer.as_mut().reset(until);
        }
        Poll::Pending
    }

    fn give_up(&mut self) {
        self.given_up = true;
        if self.guard.at() == At::Head && self.load.is_idle() {
            // Only a courtesy: whoever does not take it sees the connection close.
            let _ = self.socket.stream().try_write(TOO_SLOW);
        }
    }

    fn wrote(&mut self, cx: &mut Context<'_>, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if result.is_ready() {
            self.until = None;
        } else if self.guard.at() != At::Opaque && self.poll_still(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        result
    }
}

impl AsyncRead for ClientIo {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.given_up {
            return Poll::Ready(Ok(()));
        }
        if let Some(bytes) = this.guard.substitute() {
            buf.put_slice(&bytes[..bytes.len().min(buf.remaining())]);
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        let result = this.fill(cx, buf);
        match result {
            Poll::Pending => {
                if this.poll_silence(cx).is_pending() {
                    return Poll::Pending;
                }
                this.give_up();
                return Poll::Ready(Ok(()));
            }
            Poll::Ready(Ok(())) => {
                let new = &mut buf.filled_mut()[before..];
                this.ended = new.is_empty();
                let kept = this.guard.watch(new);
                buf.set_filled(before + kept);
                this.until = None;
                if this.guard.at() != At::Head {
                    this.head_until = None;
                }
            }
            Poll::Ready(Err(_)) => this.ended = true,
        }
        result
    }
}

impl AsyncWrite for ClientIo {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.guard.answered(bytes);
        let result = this.socket.stream_mut().poll_write(cx, bytes);
        this.wrote(cx, result)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if let Some(first) = parts.first() {
            this.guard.answered(first);
        }
        let result = this.socket.stream_mut().poll_write_vectored(cx, parts);
        this.wrote(cx, result)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.guard.at() == At::Boundary && this.load.is_idle() {
            // The answer is out and hyper waits for a read that it has asked for before: the pause begins here.
            // When it has been too long, this task is woken and that read says so.
            let _ = this.poll_still(cx);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let unread = !this.ended && this.guard.at() != At::Boundary;
        this.socket.poll_close(cx, unread)
    }
}
