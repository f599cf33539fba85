//! How busy one connection is: what its time limits and its end depend on.

use std::error::Error;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::stall::{Did, Stalled, Still, Timer};

/// The requests of one connection. Only one thread ever touches it; the atomics are there because tasks must be `Send`.
#[derive(Debug, Default)]
pub(crate) struct Load {
    begun: AtomicU32,
    ended: AtomicU32,
    /// The timer of the last answer that had to wait, for the next one.
    timer: Mutex<Option<Timer>>,
}

impl Load {
    /// A request has begun; it ends when the guard is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        self.begun.store(self.begun.load(Relaxed).wrapping_add(1), Relaxed);
        Busy { load: Arc::clone(self), still: None }
    }

    /// Whether no request is being answered.
    pub(crate) fn is_idle(&self) -> bool {
        self.begun.load(Relaxed) == self.ended.load(Relaxed)
    }

    /// Requests begun so far, wrapping.
    pub(crate) fn begun(&self) -> u32 {
        self.begun.load(Relaxed)
    }

    fn timer(&self) -> MutexGuard<'_, Option<Timer>> {
        self.timer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request being answered.
#[derive(Debug)]
pub(crate) struct Busy {
    load: Arc<Load>,
    /// There is one as soon as its answer has had to wait.
    still: Option<Still>,
}

impl Busy {
    /// Its answer moves.
    fn moved(&mut self) {
        if let Some(still) = &mut self.still {
            still.moved();
        }
    }

    /// Its answer stands: ready when it has for `patience`.
    fn poll_still(&mut self, patience: Duration, cx: &mut Context<'_>) -> Poll<()> {
        self.still.get_or_insert_with(|| Still::with_timer(patience, self.load.timer().take())).poll(cx)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.load.ended.store(self.load.ended.load(Relaxed).wrapping_add(1), Relaxed);
        if let Some(timer) = self.still.take().and_then(Still::into_timer) {
            *self.load.timer() = Some(timer);
        }
    }
}

pin_project! {
    /// A body that keeps its request counted until it has ended, and is ended when it stands still.
    pub(crate) struct Counted<B> {
        #[pin]
        body: B,
        busy: Busy,
        patience: Option<Duration>,
    }
}

impl<B> Counted<B> {
    /// Counts a body that may stand still for `patience`, or as long as it likes.
    pub(crate) fn new(body: B, busy: Busy, patience: Option<Duration>) -> Self {
        Did::Gave.tell();
        Self { body, busy, patience }
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
            this.busy.moved();
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        Did::Waited.tell();
        match *this.patience {
            Some(patience) => this.busy.poll_still(patience, cx).map(|()| Some(Err(Stalled.into()))),
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
