//! The body of an answer: the inner service's, or ours.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// The body of an answer: the inner service's, or a short one of ours.
    #[derive(Debug)]
    pub struct Body<B> {
        #[pin]
        whose: Whose<B>,
    }
}

pin_project! {
    #[derive(Debug)]
    #[project = WhoseProjection]
    enum Whose<B> {
        Inner { #[pin] body: B },
        Ours { bytes: Bytes },
    }
}

impl<B> Body<B> {
    /// A body of the inner service.
    pub fn inner(body: B) -> Self {
        Self { whose: Whose::Inner { body } }
    }

    /// A body of ours.
    pub fn ours(bytes: Bytes) -> Self {
        Self { whose: Whose::Ours { bytes } }
    }
}

impl<B: http_body::Body<Data = Bytes>> http_body::Body for Body<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().whose.project() {
            WhoseProjection::Inner { body } => body.poll_frame(cx),
            WhoseProjection::Ours { bytes } if bytes.is_empty() => Poll::Ready(None),
            WhoseProjection::Ours { bytes } => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.whose {
            Whose::Inner { body } => body.is_end_stream(),
            Whose::Ours { bytes } => bytes.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.whose {
            Whose::Inner { body } => body.size_hint(),
            Whose::Ours { bytes } => SizeHint::with_exact(bytes.len() as u64),
        }
    }
}
