//! The bodies of answers: an enum, so that nothing is boxed.

use std::pin::Pin;
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
