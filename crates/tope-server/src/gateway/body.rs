//! The bodies that pass: of answers to clients, and of requests to upstreams. Enums, so that nothing is boxed.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;

use super::pool::Lease;

/// The body of an answer.
#[derive(Debug)]
pub struct Body(Kind);

#[derive(Debug)]
enum Kind {
    Empty,
    Full(Bytes),
    Upstream { body: Incoming, lease: Option<Lease> },
}

impl Body {
    /// No body.
    pub fn empty() -> Self {
        Self(Kind::Empty)
    }

    /// A body of these bytes.
    pub fn full(bytes: Bytes) -> Self {
        if bytes.is_empty() { Self::empty() } else { Self(Kind::Full(bytes)) }
    }

    /// What an upstream sends; the connection goes back to its pool when the body has ended, and closes when it is
    /// dropped before.
    pub(crate) fn upstream(body: Incoming, lease: Option<Lease>) -> Self {
        if !http_body::Body::is_end_stream(&body) {
            return Self(Kind::Upstream { body, lease });
        }
        if let Some(lease) = lease {
            lease.give_back();
        }
        Self(Kind::Upstream { body, lease: None })
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::empty()
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::full(bytes)
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut self.0 {
            Kind::Empty => Poll::Ready(None),
            Kind::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                self.0 = Kind::Empty;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Kind::Upstream { body, lease } => {
                let frame = ready!(Pin::new(&mut *body).poll_frame(cx));
                let ended = frame.is_none() || (matches!(frame, Some(Ok(_))) && body.is_end_stream());
                if let Some(lease) = lease.take_if(|_| ended) {
                    lease.give_back();
                }
                Poll::Ready(frame)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Empty => true,
            Kind::Full(_) => false,
            Kind::Upstream { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Upstream { body, .. } => body.size_hint(),
        }
    }
}

/// The body of a request on its way to an upstream.
#[derive(Debug)]
pub(crate) enum Outbound {
    Empty,
    Stream { body: Incoming, progress: Arc<Progress> },
}

/// How far a request's body has got: what the wait for its answer depends on.
#[derive(Debug, Default)]
pub(crate) struct Progress(AtomicU32);

impl Progress {
    /// A number that changes with every part that was taken.
    pub(crate) fn seen(&self) -> u32 {
        self.0.load(Relaxed)
    }
}

impl Outbound {
    /// The body of a request, and its progress if there is any to wait for.
    pub(crate) fn new(body: Incoming) -> (Self, Option<Arc<Progress>>) {
        if http_body::Body::is_end_stream(&body) {
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
        let frame = ready!(Pin::new(body).poll_frame(cx));
        progress.0.store(progress.seen().wrapping_add(1), Relaxed);
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
