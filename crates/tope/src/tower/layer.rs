//! What is shared by all services that a layer wraps.

use std::fmt;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::read_ahead::ReadAhead;
use super::service::Limited;
use crate::clock::Clock;
use crate::facts::Reply;
use crate::limiter::{Judgement, Limiter};
use crate::observe::Observe;
use crate::store::Store;

/// The address of a request's peer, as a request extension, where the service was not made for one peer.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub IpAddr);

/// Puts a limiter in front of services.
#[derive(Debug)]
pub struct Layer<S, O = ()> {
    shared: Arc<Shared<S, O>>,
}

#[derive(Debug)]
pub(super) struct Shared<S, O> {
    pub(super) limiter: Arc<Limiter<S>>,
    pub(super) clock: Arc<Clock>,
    pub(super) observer: O,
    pub(super) timer: Option<Timer>,
}

/// What a timer gives: ready when the time has passed.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Makes a request wait: `|time| Box::pin(tokio::time::sleep(time))`.
#[derive(Clone)]
pub struct Timer(Arc<dyn Fn(Duration) -> Sleep + Send + Sync>);

impl Timer {
    /// A timer of some runtime.
    pub fn new(sleep: impl Fn(Duration) -> Sleep + Send + Sync + 'static) -> Self {
        Self(Arc::new(sleep))
    }

    pub(super) fn sleep_us(&self, us: u64) -> Sleep {
        (self.0)(Duration::from_micros(us))
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Timer")
    }
}

impl<S: Store, O: Observe> Shared<S, O> {
    /// Settles what an answer decides of what its request holds.
    pub(super) fn settle(&self, judgement: &mut Judgement, reply: Reply<'_>) {
        if !judgement.is_open() {
            return;
        }
        for (budget, price) in self.limiter.hear(judgement, reply, self.clock.now_us()) {
            self.observer.unpriced(judgement.policy(), budget, price);
        }
    }
}

impl<S> Layer<S> {
    /// A layer that nobody observes, with a clock of its own.
    pub fn new(limiter: Arc<Limiter<S>>) -> Self {
        Self::observed(limiter, Arc::new(Clock::new()), ())
    }
}

impl<S, O: Observe> Layer<S, O> {
    /// A layer with an observer and a shared clock.
    pub fn observed(limiter: Arc<Limiter<S>>, clock: Arc<Clock>, observer: O) -> Self {
        Self { shared: Arc::new(Shared { limiter, clock, observer, timer: None }) }
    }

    /// The same with a timer, which limits with `wait` need: without one nobody waits, and whoever would is refused at
    /// once.
    pub fn timed(limiter: Arc<Limiter<S>>, clock: Arc<Clock>, observer: O, timer: Timer) -> Self {
        Self { shared: Arc::new(Shared { limiter, clock, observer, timer: Some(timer) }) }
    }

    /// Wraps the service of one connection, whose peer is known.
    pub fn for_peer<T>(&self, peer: IpAddr, inner: T) -> Limited<T, S, O> {
        Limited::new(inner, Arc::clone(&self.shared), Some(peer.to_canonical()))
    }

    /// The same, and reads the beginning of a request's body where the policy holds what it asks for.
    pub fn for_peer_reading<T>(&self, peer: IpAddr, inner: T) -> ReadAhead<T, S, O> {
        ReadAhead::new(self.for_peer(peer, inner))
    }
}

impl<S, O> Clone for Layer<S, O> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

/// Wraps a service whose requests carry a [`Peer`] extension; one without is judged as if it came from `0.0.0.0`, so
/// that all such requests share one budget.
impl<T, S, O: Observe> tower_layer::Layer<T> for Layer<S, O> {
    type Service = Limited<T, S, O>;

    fn layer(&self, inner: T) -> Self::Service {
        Limited::new(inner, Arc::clone(&self.shared), None)
    }
}
