//! A service that is asked and answers when the test says so, in front of it a layer.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::Full;
use tokio::sync::oneshot;
use tope::store::memory::Memory;
use tope::tower::Layer;
use tope::{Limiter, policy};
use tower::{ServiceExt as _, service_fn};

pub(crate) type Answer = Response<Full<Bytes>>;
pub(crate) type Open = oneshot::Sender<Result<Answer, ()>>;
pub(crate) type Asking<E> = Pin<Box<dyn Future<Output = Result<Response<tope::tower::Body<Full<Bytes>>>, E>>>>;

pub(crate) fn layer(policy: &str) -> Layer<Memory> {
    let policy = policy::read(policy, "here", &()).unwrap();
    Layer::new(Arc::new(Limiter::new(Memory::new(1_000).unwrap(), policy).unwrap()))
}

pub(crate) fn status(status: u16) -> Answer {
    Response::builder().status(status).body(Full::default()).unwrap()
}

pub(crate) fn poll<F: Future + ?Sized>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// A body of these parts.
pub(crate) struct Frames(pub(crate) VecDeque<Frame<Bytes>>);

impl http_body::Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(Ok))
    }
}

/// A service whose answers are given one by one, in the order in which requests reached it.
#[derive(Clone, Default)]
pub(crate) struct Desk {
    pub(crate) open: Arc<Mutex<VecDeque<Open>>>,
    reached: Arc<AtomicUsize>,
}

impl Desk {
    pub(crate) fn ask(&self, layer: &Layer<Memory>) -> Asking<()> {
        self.ask_from(layer, [203, 0, 113, 7])
    }

    pub(crate) fn ask_from(&self, layer: &Layer<Memory>, from: [u8; 4]) -> Asking<()> {
        let desk = self.clone();
        let service = service_fn(move |_: Request<()>| {
            let (answer, answered) = oneshot::channel();
            desk.open.lock().unwrap().push_back(answer);
            desk.reached.fetch_add(1, Ordering::Relaxed);
            async { answered.await.unwrap() }
        });
        let service = layer.for_peer(from.into(), service);
        Box::pin(service.oneshot(Request::post("/login").body(()).unwrap()))
    }

    pub(crate) fn answer(&self, answer: Result<Answer, ()>) {
        let first = self.open.lock().unwrap().pop_front().unwrap();
        first.send(answer).unwrap();
    }

    pub(crate) fn reached(&self) -> usize {
        self.reached.load(Ordering::Relaxed)
    }
}

/// The statuses of those that are done, which are taken out.
pub(crate) fn done(all: &mut Vec<Asking<()>>) -> Vec<u16> {
    let mut statuses = Vec::new();
    // Somebody's end may be what another waits for.
    for _ in 0..2 {
        all.retain_mut(|asking| match poll(asking) {
            Poll::Ready(Ok(answer)) => {
                statuses.push(answer.status().as_u16());
                false
            }
            Poll::Ready(Err(())) => false,
            Poll::Pending => true,
        });
    }
    statuses
}
