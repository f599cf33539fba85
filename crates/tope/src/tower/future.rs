//! What follows a request: the inner answer with our fields, or the refusal; and the record, after either.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use pin_project_lite::pin_project;

use super::answer;
use super::body::Body;
use super::layer::Shared;
use crate::clock::Moment;
use crate::limiter::{Judgement, Judging};
use crate::observe::{Details, Observe, Record};
use crate::policy::Policy;
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

/// A request that waits for the store.
pub(super) struct Pending<T, S: Store, B> {
    pub(super) judging: Judging<S::Charging>,
    pub(super) request: Option<Request<B>>,
    pub(super) inner: T,
    pub(super) policy: Arc<Policy>,
}

/// What is known when the answer is there.
pub(super) struct After<S, O: Observe> {
    shared: Arc<Shared<S, O>>,
    moment: Moment,
    judged_ns: u64,
    judgement: Option<Judgement>,
    details: Option<Box<Details>>,
    recorded: bool,
}

/// The status of a record whose client left before the answer: it was judged and charged, so it is told.
const CLIENT_LEFT: u16 = 499;

impl<S, O: Observe> Drop for After<S, O> {
    fn drop(&mut self) {
        if !self.recorded && self.judgement.is_some() {
            self.record(CLIENT_LEFT, self.moment.elapsed_ns());
        }
    }
}

impl<S, O: Observe> After<S, O> {
    pub(super) fn new(
        shared: Arc<Shared<S, O>>,
        moment: Moment,
        judgement: Option<Judgement>,
        details: Option<Box<Details>>,
    ) -> Self {
        let judged_ns = moment.elapsed_ns();
        Self { shared, moment, judged_ns, judgement, details, recorded: false }
    }

    /// A refusal is answered when it is judged; only an inner answer takes time of its own.
    fn record(&mut self, status: u16, answered_ns: u64) {
        self.recorded = true;
        let mut record = Record::new(self.moment.unix_us, status, self.judgement.as_ref());
        record.judged_ns = self.judged_ns;
        record.answered_ns = answered_ns;
        record.details = self.details.as_deref();
        self.shared.observer.observe(&record);
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
                    let mut answer = ready!(inner.poll(cx))?;
                    if let Some(judgement) = &this.after.judgement {
                        answer::say(judgement, answer.headers_mut());
                    }
                    let answered_ns = this.after.moment.elapsed_ns();
                    this.after.record(answer.status().as_u16(), answered_ns);
                    return Poll::Ready(Ok(answer.map(Body::inner)));
                }
                StepProjection::Pending { pending } => {
                    let judged = ready!(Pin::new(&mut pending.judging).poll(cx));
                    this.after.judged_ns = this.after.moment.elapsed_ns();
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
