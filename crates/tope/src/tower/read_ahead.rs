//! The beginning of a request's body, read before the request is judged: a limit may hold what the body asks for.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use pin_project_lite::pin_project;

use super::body::Body;
use super::future::Answering;
use super::service::Limited;
use crate::observe::Observe;
use crate::store::Store;

/// The most bytes of a body that are read before the request is judged.
pub const MOST_AHEAD: usize = 64 << 10;

/// The beginning of a request's body, as a request extension: what limits reserve is looked for in it.
#[derive(Clone, Debug)]
pub struct BodyHead(pub Bytes);

/// Frames of a body, or how it broke.
pub type Frames<E> = VecDeque<Result<Frame<Bytes>, E>>;

/// A request's body whose beginning can be read and put back.
pub trait Unread: http_body::Body<Data = Bytes> + Unpin {
    /// Puts back what was read, all of it and in its order: it is what the body gives next.
    fn unread(&mut self, frames: Frames<Self::Error>);
}

/// A body that can be unread, made of any other.
#[derive(Debug)]
pub struct Peeked<B: http_body::Body> {
    ahead: Frames<B::Error>,
    body: B,
}

impl<B: http_body::Body<Data = Bytes>> Peeked<B> {
    /// Makes a body one that can be unread.
    pub const fn new(body: B) -> Self {
        Self { ahead: VecDeque::new(), body }
    }
}

impl<B: http_body::Body<Data = Bytes> + Unpin> http_body::Body for Peeked<B>
where
    B::Error: Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.ahead.pop_front() {
            Some(frame) => Poll::Ready(Some(frame)),
            None => Pin::new(&mut self.body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ahead.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        with_ahead(self.body.size_hint(), &self.ahead)
    }
}

impl<B: http_body::Body<Data = Bytes> + Unpin> Unread for Peeked<B>
where
    B::Error: Unpin,
{
    fn unread(&mut self, frames: Frames<B::Error>) {
        self.ahead = frames;
    }
}

/// The size of a body of which this was read and put back.
pub fn with_ahead<E>(rest: http_body::SizeHint, ahead: &Frames<E>) -> http_body::SizeHint {
    let bytes =
        ahead.iter().filter_map(|frame| frame.as_ref().ok()?.data_ref()).map(|data| data.len() as u64).sum::<u64>();
    let mut hint = rest;
    // The upper bound first: the lower may not be above it.
    if let Some(upper) = rest.upper() {
        hint.set_upper(upper.saturating_add(bytes));
    }
    hint.set_lower(rest.lower().saturating_add(bytes));
    hint
}

/// A service behind a limiter that may hold what the body of a request asks for: where it does, up to [`MOST_AHEAD`]
/// bytes of the body are read before the request is judged. Others pass as they are.
#[derive(Debug)]
pub struct ReadAhead<T, S, O = ()>(Limited<T, S, O>);

impl<T, S, O> ReadAhead<T, S, O> {
    pub(super) const fn new(limited: Limited<T, S, O>) -> Self {
        Self(limited)
    }
}

impl<T: Clone, S, O> Clone for ReadAhead<T, S, O> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T, S, O, B, C> tower_service::Service<Request<B>> for ReadAhead<T, S, O>
where
    T: tower_service::Service<Request<B>, Response = Response<C>> + Clone,
    S: Store,
    O: Observe,
    B: Unread,
    C: http_body::Body<Data = Bytes>,
{
    type Response = Response<Body<C>>;
    type Error = T::Error;
    type Future = ReadingAhead<T, S, O, B>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), T::Error>> {
        tower_service::Service::<Request<B>>::poll_ready(&mut self.0, cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if !self.0.asks_body(&request) {
            return ReadingAhead { step: Step::Answering { answering: self.0.call(request) } };
        }
        // The service that was found ready is the one to call; its clone waits in its place.
        let clone = self.0.clone();
        let limited = std::mem::replace(&mut self.0, clone);
        ReadingAhead { step: Step::Reading { reading: Box::new(Reading::new(request)), limited } }
    }
}

pin_project! {
    /// The answer to a request of which the beginning of the body may have to be read first.
    pub struct ReadingAhead<T, S, O, B>
    where
        T: tower_service::Service<Request<B>>,
        S: Store,
        O: Observe,
        B: Unread,
    {
        #[pin]
        step: Step<T, S, O, B>,
    }
}

pin_project! {
    #[project = StepProjection]
    enum Step<T, S, O, B>
    where
        T: tower_service::Service<Request<B>>,
        S: Store,
        O: Observe,
        B: Unread,
    {
        Reading { reading: Box<Reading<B>>, limited: Limited<T, S, O> },
        Answering { #[pin] answering: Answering<T, S, O, B> },
    }
}

impl<T, S, O, B, C> Future for ReadingAhead<T, S, O, B>
where
    T: tower_service::Service<Request<B>, Response = Response<C>> + Clone,
    S: Store,
    O: Observe,
    B: Unread,
    C: http_body::Body<Data = Bytes>,
{
    type Output = Result<Response<Body<C>>, T::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.step.as_mut().project() {
                StepProjection::Reading { reading, limited } => {
                    let request = ready!(reading.poll(cx));
                    Step::Answering { answering: tower_service::Service::call(limited, request) }
                }
                StepProjection::Answering { answering } => return answering.poll(cx),
            };
            this.step.set(next);
        }
    }
}

/// Reads the beginning of a request's body into an extension of the request.
#[derive(Debug)]
struct Reading<B: Unread> {
    request: Option<Request<B>>,
    frames: Frames<B::Error>,
    /// What they take, at least.
    bytes: usize,
}

impl<B: Unread> Reading<B> {
    fn new(request: Request<B>) -> Self {
        Self { request: Some(request), frames: VecDeque::new(), bytes: 0 }
    }

    /// The request, whose body is whole again.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Request<B>> {
        let request = self.request.as_mut().expect("a future is not polled after its end");
        while self.bytes < MOST_AHEAD && !request.body().is_end_stream() {
            let Some(frame) = ready!(Pin::new(request.body_mut()).poll_frame(cx)) else { break };
            let length = frame.as_ref().ok().map(|frame| frame.data_ref().map_or(0, Bytes::len));
            self.frames.push_back(frame);
            match length {
                // An empty frame costs memory too.
                Some(length) => self.bytes += length.max(64),
                None => break,
            }
        }
        let mut head = Vec::with_capacity(self.bytes.min(MOST_AHEAD));
        for data in self.frames.iter().filter_map(|frame| frame.as_ref().ok()?.data_ref()) {
            head.extend_from_slice(&data[..data.len().min(MOST_AHEAD - head.len())]);
        }
        let mut request = self.request.take().expect("it was there");
        request.body_mut().unread(std::mem::take(&mut self.frames));
        request.extensions_mut().insert(BodyHead(head.into()));
        Poll::Ready(request)
    }
}
