//! What follows a request's admission: settled when its answer is known, told, and recorded.

use std::sync::Arc;

use http::{HeaderMap, Response, StatusCode};
use smallvec::SmallVec;

use super::answer;
use super::body::{Body, InFlight, Watch};
use super::layer::Shared;
use crate::clock::Moment;
use crate::facts::{Price, Reply};
use crate::http::body::Reader;
use crate::limiter::Judgement;
use crate::observe::{CLIENT_LEFT, Details, Observe, Record};
use crate::store::Store;

/// What is known when the answer is there.
pub(super) struct After<S: Store, O: Observe> {
    pub(super) shared: Arc<Shared<S, O>>,
    pub(super) moment: Moment,
    pub(super) judged_ns: u64,
    pub(super) judgement: Option<Judgement>,
    details: Option<Box<Details>>,
    /// Where the request asks for a switch of protocols.
    in_flight: Option<InFlight>,
    recorded: bool,
}

/// An extension by which the inner service says that an answer is its own, because whoever should have given one did
/// not: no limit takes it for what it waits for.
#[derive(Clone, Copy, Debug)]
pub struct Unanswered;

impl<S: Store, O: Observe> Drop for After<S, O> {
    fn drop(&mut self) {
        self.hear(Reply::Left);
        if !self.recorded && self.judgement.is_some() {
            self.record(CLIENT_LEFT, self.moment.elapsed_ns());
        }
    }
}

impl<S: Store, O: Observe> After<S, O> {
    pub(super) fn new(
        shared: Arc<Shared<S, O>>,
        moment: Moment,
        judgement: Option<Judgement>,
        details: Option<Box<Details>>,
    ) -> Self {
        let judged_ns = moment.elapsed_ns();
        Self { shared, moment, judged_ns, judgement, details, in_flight: None, recorded: false }
    }

    /// A switched connection is in use until the last clone of this is dropped.
    pub(super) fn until(mut self, in_flight: Option<InFlight>) -> Self {
        self.in_flight = in_flight;
        self
    }

    /// Settles what an answer decides of what the request holds.
    pub(super) fn hear(&mut self, reply: Reply<'_>) {
        if let Some(judgement) = &mut self.judgement {
            self.shared.settle(judgement, reply);
        }
    }

    /// Makes the inner service's answer ours: our fields on it, what is for us alone off it, and whoever waits for its end.
    pub(super) fn answer<C>(&mut self, mut answer: Response<C>) -> Response<Body<C>> {
        self.hear(match answer.extensions().get::<Unanswered>() {
            Some(Unanswered) => Reply::Nothing,
            None => Reply::Head { status: answer.status(), headers: answer.headers() },
        });
        let ending = self.judgement.take_if(|judgement| judgement.is_open()).map(|judgement| {
            let readers = readers(&judgement, answer.headers());
            Box::new(Ending { shared: Arc::clone(&self.shared), judgement, readers, late: None })
        });
        let judgement = ending.as_ref().map(|ending| &ending.judgement).or(self.judgement.as_ref());
        if let Some(judgement) = judgement {
            for name in judgement.policy().hidden() {
                answer.headers_mut().remove(name);
            }
            answer::say(judgement, answer.headers_mut());
        }
        let (status, answered_ns) = (answer.status(), self.moment.elapsed_ns());
        let Some(mut ending) = ending else {
            self.record(status.as_u16(), answered_ns);
            return answer.map(Body::inner);
        };
        self.recorded = true;
        let late = Late {
            moment: self.moment,
            judged_ns: self.judged_ns,
            answered_ns,
            status: status.as_u16(),
            details: self.details.take(),
        };
        if ending.readers.is_empty() {
            late.record(&self.shared.observer, Some(&ending.judgement));
        } else {
            ending.late = Some(late);
        }
        let mut watch: Option<Box<dyn Watch>> = Some(ending);
        if let (StatusCode::SWITCHING_PROTOCOLS, Some(in_flight)) = (status, &self.in_flight) {
            in_flight.keep(watch.take());
        }
        answer.map(|body| Body::watched(body, watch))
    }

    /// A refusal is answered when it is judged; only an inner answer takes time of its own.
    pub(super) fn record(&mut self, status: u16, answered_ns: u64) {
        self.recorded = true;
        let (moment, judged_ns, details) = (self.moment, self.judged_ns, self.details.take());
        let late = Late { moment, judged_ns, answered_ns, status, details };
        late.record(&self.shared.observer, self.judgement.as_ref());
    }
}

/// A record that is made.
struct Late {
    moment: Moment,
    judged_ns: u64,
    answered_ns: u64,
    status: u16,
    details: Option<Box<Details>>,
}

impl Late {
    fn record(&self, observer: &impl Observe, judgement: Option<&Judgement>) {
        let mut record = Record::new(self.moment.unix_us, self.status, judgement);
        record.judged_ns = self.judged_ns;
        record.answered_ns = self.answered_ns;
        record.details = self.details.as_deref();
        observer.observe(&record);
    }
}

/// Fields of an answer's body that say prices, by their places in the policy.
type Readers = SmallVec<[(u16, Reader); 1]>;

/// Readers for what the limits of a judgement want of the body of an answer with this head.
fn readers(judgement: &Judgement, headers: &HeaderMap) -> Readers {
    let policy = judgement.policy();
    let mut readers = Readers::new();
    if policy.body_fields().is_empty() {
        return readers;
    }
    for (budget, _) in judgement.rows() {
        if let Some(field) = policy.body_field(*budget).filter(|_| judgement.holds(*budget))
            && readers.iter().all(|(other, _)| *other != field)
        {
            readers.push((field, Reader::new(headers)));
        }
    }
    readers
}

/// An answer under way, for whose end some of its limits wait.
struct Ending<S: Store, O: Observe> {
    shared: Arc<Shared<S, O>>,
    judgement: Judgement,
    readers: Readers,
    /// The record, where it waits for what the body says.
    late: Option<Late>,
}

impl<S: Store, O: Observe> Ending<S, O> {
    fn end(&mut self, trailers: Option<&HeaderMap>) {
        if self.judgement.is_open() {
            let prices: SmallVec<[(u16, Price); 1]> =
                self.readers.iter().map(|(field, reader)| (*field, reader.price())).collect();
            self.shared.settle(&mut self.judgement, Reply::End { trailers, prices: &prices });
        }
    }
}

impl<S: Store, O: Observe> std::fmt::Debug for Ending<S, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ending").finish_non_exhaustive()
    }
}

impl<S: Store, O: Observe> Watch for Ending<S, O> {
    fn data(&mut self, data: &[u8]) {
        let fields = self.judgement.policy().body_fields();
        for (field, reader) in &mut self.readers {
            reader.feed(&fields[usize::from(*field)], data);
        }
    }

    fn trailers(&mut self, trailers: &HeaderMap) {
        self.end(Some(trailers));
    }
}

impl<S: Store, O: Observe> Drop for Ending<S, O> {
    fn drop(&mut self) {
        self.end(None);
        if let Some(late) = &self.late {
            late.record(&self.shared.observer, Some(&self.judgement));
        }
    }
}
