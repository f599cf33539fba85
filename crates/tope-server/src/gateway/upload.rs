//! The bodies of requests: as the service in front is given them, and on their way to an upstream.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use super::caller::{Frames, Unread, with_ahead};
use super::fields;
use super::progress::Progress;
use crate::lingering;

/// The body of a request.
///
/// A stream of HTTP/2 that is dropped before its end is reset, and some clients (curl 7.88) take that for the answer,
/// whatever the answer said. So it is read on for a moment, as a connection of HTTP/1.1 is by [`lingering`].
#[derive(Debug)]
pub struct Upload {
    body: Option<Incoming>,
    /// What was read of it and put back, which is rare.
    ahead: Option<Box<Frames<hyper::Error>>>,
    linger: bool,
}

impl Upload {
    /// A body as hyper gives it; `linger` for HTTP/2.
    pub(crate) fn new(body: Incoming, linger: bool) -> Self {
        Self { body: Some(body), ahead: None, linger }
    }
}

impl http_body::Body for Upload {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if let Some(frame) = self.ahead.as_mut().and_then(|ahead| ahead.pop_front()) {
            return Poll::Ready(Some(frame));
        }
        self.body.as_mut().map_or(Poll::Ready(None), |body| Pin::new(body).poll_frame(cx))
    }

    fn is_end_stream(&self) -> bool {
        let whole = self.ahead.as_ref().is_none_or(|ahead| ahead.is_empty());
        whole && self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.body.as_ref().map_or(SizeHint::with_exact(0), Incoming::size_hint);
        self.ahead.as_ref().map_or(rest, |ahead| with_ahead(rest, ahead))
    }
}

impl Unread for Upload {
    fn unread(&mut self, frames: Frames<hyper::Error>) {
        self.ahead = Some(Box::new(frames));
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let unread = self.linger && self.body.as_ref().is_some_and(|body| !body.is_end_stream());
        if let (true, Some(body), Ok(runtime)) = (unread, self.body.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move {
                let _ = tokio::time::timeout(lingering::TIME, discard(body)).await;
            });
        }
    }
}

async fn discard(mut body: Incoming) {
    let mut left = lingering::BYTES;
    while let Some(Ok(frame)) = body.frame().await {
        let length = frame.data_ref().map_or(0, Bytes::len);
        left = left.saturating_sub(length);
        if left == 0 {
            // The stream's window is full now: the client can only look up and read.
            std::future::pending::<()>().await;
        }
    }
}

/// A request's body on its way to an upstream.
#[derive(Debug)]
pub(crate) enum Outbound {
    Empty,
    Stream { body: Upload, progress: Arc<Progress> },
}

impl Outbound {
    /// The body of a request, and its progress if there is any to wait for: it moves with every part that is taken.
    pub(crate) fn new(body: Upload) -> (Self, Option<Arc<Progress>>) {
        if body.is_end_stream() {
            return (Self::Empty, None);
        }
        let progress = Arc::<Progress>::default();
        (Self::Stream { body, progress: Arc::clone(&progress) }, Some(progress))
    }
}

impl http_body::Body for Outbound {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Self::Stream { body, progress } = self.get_mut() else { return Poll::Ready(None) };
        let mut frame = ready!(Pin::new(body).poll_frame(cx));
        if let Some(trailers) = frame.as_mut().and_then(|frame| frame.as_mut().ok()?.trailers_mut()) {
            fields::trailers(trailers);
        }
        progress.moved();
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Stream { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Stream { body, .. } => body.size_hint(),
        }
    }
}
