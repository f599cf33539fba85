//! How busy one connection is: what its time limits and its end depend on.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::stall::{Did, Stalled, Still};

/// The requests of one connection. Only one thread ever touches it; the atomics are there because tasks must be `Send`.
#[derive(Debug, Default)]
pub(crate) struct Load {
    begun: AtomicU32,
    ended: AtomicU32,
}

impl Load {
    /// A request has begun; it ends when the guard is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        self.begun.store(self.begun.load(Relaxed).wrapping_add(1), Relaxed);
        Busy(Arc::clone(self))
    }

    /// Whether no request is being answered.
    pub(crate) fn is_idle(&self) -> bool {
        self.begun.load(Relaxed) == self.ended.load(Relaxed)
    }

    /// Requests begun so far, wrapping.
    pub(crate) fn begun(&self) -> u32 {
        self.begun.load(Relaxed)
    }
}

/// One request being answered.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Load>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.ended.store(self.0.ended.load(Relaxed).wrapping_add(1), Relaxed);
    }
}

pin_project! {
    /// A body that keeps its request counted until it has ended, and is ended when it stands still.
    pub(crate) struct Counted<B> {
        #[pin]
        body: B,
        busy: Busy,
        still: Option<Still>,
    }
}

impl<B> Counted<B> {
    /// Counts a body that may stand still for `patience`, or as long as it likes.
    pub(crate) fn new(body: B, busy: Busy, patience: Option<Duration>) -> Self {
        Did::Gave.tell();
        Self { body, busy, still: patience.map(Still::new) }
    }
}

type Broken = Box<dyn Error + Send + Sync>;

impl<B: Body> Body for Counted<B>
where
    B::Error: Into<Broken>,
{
    type Data = B::Data;
    type Error = Broken;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, Broken>>> {
        let this = self.project();
        if let Poll::Ready(frame) = this.body.poll_frame(cx) {
            Did::Gave.tell();
            if let Some(still) = this.still {
                still.moved();
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        Did::Waited.tell();
        match this.still {
            Some(still) => still.poll(cx).map(|()| Some(Err(Stalled.into()))),
            None => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
