//! The body of an answer: the inner service's, or ours; and whoever waits for its end.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// The body of an answer: the inner service's, or a short one of ours.
    #[derive(Debug)]
    pub struct Body<B> {
        #[pin]
        whose: Whose<B>,
        // It learns of the end by being dropped.
        watch: Option<Box<dyn Watch>>,
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

/// Whoever looks at an answer as it passes. Dropped when the answer has ended, wherever.
pub(super) trait Watch: Send + fmt::Debug {
    /// The next bytes of its body.
    fn data(&mut self, data: &[u8]);
    /// The trailers, which end it.
    fn trailers(&mut self, trailers: &HeaderMap);
}

/// A request extension for a service that switches protocols (RFC 9110 section 7.8): the answer has no body then, and
/// what follows it is not seen by the limiter. Whoever keeps a clone as long as that lasts keeps the request in flight;
/// a limit of `N at once` has its place back when the last clone is dropped.
#[derive(Clone, Debug, Default)]
pub struct InFlight(Arc<Mutex<Option<Box<dyn Watch>>>>);

impl InFlight {
    /// Whoever waits for the end waits for the last clone.
    pub(super) fn keep(&self, watch: Option<Box<dyn Watch>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = watch;
    }
}

impl<B> Body<B> {
    /// A body of the inner service.
    pub fn inner(body: B) -> Self {
        Self { whose: Whose::Inner { body }, watch: None }
    }

    /// A body of the inner service whose end somebody waits for.
    pub(super) fn watched(body: B, watch: Option<Box<dyn Watch>>) -> Self {
        Self { whose: Whose::Inner { body }, watch }
    }

    /// A body of ours.
    pub fn ours(bytes: Bytes) -> Self {
        Self { whose: Whose::Ours { bytes }, watch: None }
    }
}

impl<B: http_body::Body<Data = Bytes>> http_body::Body for Body<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        match this.whose.project() {
            WhoseProjection::Inner { body } => {
                let frame = ready!(body.poll_frame(cx));
                if let Some(watch) = this.watch {
                    match &frame {
                        Some(Ok(frame)) => {
                            if let Some(data) = frame.data_ref() {
                                watch.data(data);
                            } else if let Some(trailers) = frame.trailers_ref() {
                                watch.trailers(trailers);
                            }
                        }
                        Some(Err(_)) | None => *this.watch = None,
                    }
                }
                Poll::Ready(frame)
            }
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
