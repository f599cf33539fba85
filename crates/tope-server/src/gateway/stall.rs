//! Answers that stand still: an upstream that says no more after its head, a client that takes no more of its stream.
//!
//! A client over HTTP/1.1 that does not read is noticed where its bytes pass (`client_io`). Over HTTP/2 only the stream
//! stands, and hyper waits for its window without asking the body again, so the task of the stream is what is limited:
//! [`Streams`] spawns it, and a body leaves word of what it did last. Neither costs an answer that is there at once
//! anything but that word.

use std::cell::Cell;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use hyper::rt::Executor;
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep};

/// A time limit that begins when something first stands still. Its timer is made once and set again only when it has
/// gone off.
#[derive(Debug)]
pub(crate) struct Still {
    limit: Duration,
    until: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Still {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, until: None, timer: None }
    }

    /// It moves.
    pub(crate) fn moved(&mut self) {
        self.until = None;
    }

    /// It stands: ready when it has for too long.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let until = *self.until.get_or_insert_with(|| Instant::now() + self.limit);
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        loop {
            ready!(timer.as_mut().poll(cx));
            if timer.deadline() >= until {
                return Poll::Ready(());
            }
            timer.as_mut().reset(until);
        }
    }
}

/// Whether an answer says by its type that it may pause for as long as it likes.
pub(crate) fn may_pause(fields: &HeaderMap) -> bool {
    let kind = fields.get(CONTENT_TYPE).map_or(&[][..], |kind| kind.as_bytes());
    let is = |name: &[u8]| kind.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    is(b"text/event-stream") || is(b"application/grpc")
}

/// The end of an answer whose upstream said nothing for too long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stalled;

impl fmt::Display for Stalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the answer stood still for too long")
    }
}

impl Error for Stalled {}

/// What the body of an answer did last while its task was polled.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Did {
    #[default]
    Nothing,
    /// It began or gave something away: what is next is the client's to say.
    Gave,
    /// It waits for its upstream.
    Waited,
}

thread_local! {
    static DID: Cell<Did> = const { Cell::new(Did::Nothing) };
}

impl Did {
    /// Leaves word for the task that is being polled.
    pub(crate) fn tell(self) {
        DID.set(self);
    }
}

/// Spawns the streams of HTTP/2 connections and ends those whose client takes nothing for too long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Streams {
    pub(crate) idle: Duration,
}

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        tokio::spawn(Stream { task: stream, still: Still::new(self.idle), taken: true });
    }
}

pin_project! {
    struct Stream<F> {
        #[pin]
        task: F,
        still: Still,
        // Whether it is not the client that is waited for.
        taken: bool,
    }
}

impl<F: Future<Output = ()>> Future for Stream<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        Did::Nothing.tell();
        if this.task.poll(cx).is_ready() {
            return Poll::Ready(());
        }
        match DID.take() {
            Did::Nothing => {}
            Did::Gave => {
                this.still.moved();
                *this.taken = false;
            }
            Did::Waited => *this.taken = true,
        }
        // Dropped before its end, the stream is reset.
        if *this.taken { Poll::Pending } else { this.still.poll(cx) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_events_and_calls_may_pause() {
        let may = |kind: &str| may_pause(&[(CONTENT_TYPE, kind.parse().unwrap())].into_iter().collect());
        assert!(may("text/event-stream") && may("Text/Event-Stream; charset=utf-8") && may("application/grpc+proto"));
        assert!(!may("text/plain") && !may("text") && !may_pause(&HeaderMap::new()));
    }
}
