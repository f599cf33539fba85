//! The answer to one request, when it comes: a refusal, or the inner service's.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use pin_project_lite::pin_project;

use super::after::After;
use super::answer;
use super::body::Body;
use super::pending::Pending;
use crate::facts::Reply;
use crate::observe::Observe;
use crate::store::Store;

pin_project! {
    /// The answer to one request, when it comes.
    pub struct Answering<T, S, O, B>
    where
        T: tower_service::Service<Request<B>>,
        S: Store,
        O: Observe,
    {
        #[pin]
        step: Step<T, S, B>,
        after: After<S, O>,
    }
}

pin_project! {
    #[project = StepProjection]
    enum Step<T, S, B>
    where
        T: tower_service::Service<Request<B>>,
        S: Store,
    {
        Refused { answer: Option<Response<Bytes>> },
        Passed { #[pin] inner: T::Future },
        Pending { pending: Pending<T, S, B> },
    }
}

impl<T, S, O, B> Answering<T, S, O, B>
where
    T: tower_service::Service<Request<B>>,
    S: Store,
    O: Observe,
{
    pub(super) fn refused(answer: Response<Bytes>, after: After<S, O>) -> Self {
        Self { step: Step::Refused { answer: Some(answer) }, after }
    }

    pub(super) fn passed(inner: T::Future, after: After<S, O>) -> Self {
        Self { step: Step::Passed { inner }, after }
    }

    pub(super) fn pending(pending: Pending<T, S, B>, after: After<S, O>) -> Self {
        Self { step: Step::Pending { pending }, after }
    }
}

impl<T, S, O, B, C> Future for Answering<T, S, O, B>
where
    T: tower_service::Service<Request<B>, Response = Response<C>>,
    S: Store,
    O: Observe,
{
    type Output = Result<Response<Body<C>>, T::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.step.as_mut().project() {
                StepProjection::Refused { answer } => {
                    let answer = answer.take().expect("a future is not polled after its end");
                    let judged_ns = this.after.judged_ns;
                    this.after.record(answer.status().as_u16(), judged_ns);
                    return Poll::Ready(Ok(answer.map(Body::ours)));
                }
                StepProjection::Passed { inner } => {
                    let answer = ready!(inner.poll(cx)).inspect_err(|_| this.after.hear(Reply::Nothing))?;
                    return Poll::Ready(Ok(this.after.answer(answer)));
                }
                StepProjection::Pending { pending } => {
                    let judged = ready!(pending.poll(this.after, cx));
                    // Whoever waited was judged before.
                    if !pending.waited {
                        this.after.judged_ns = this.after.moment.elapsed_ns();
                    }
                    let request = pending.request.take().expect("a request is judged once");
                    match judged {
                        Ok(judgement) if judgement.allowed() => {
                            this.after.judgement = Some(judgement);
                            Step::Passed { inner: pending.inner.call(request) }
                        }
                        Ok(judgement) => {
                            let answer = answer::refusal(&judgement, request.method(), request.headers());
                            this.after.judgement = Some(judgement);
                            Step::Refused { answer: Some(answer) }
                        }
                        Err(_) => {
                            this.after.judgement = None;
                            let answer = answer::store_down(&pending.policy, request.method(), request.headers());
                            Step::Refused { answer: Some(answer) }
                        }
                    }
                }
            };
            this.step.set(next);
        }
    }
}
