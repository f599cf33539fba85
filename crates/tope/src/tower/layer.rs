//! What is shared by all services that a layer wraps.

use std::net::IpAddr;
use std::sync::Arc;

use super::service::Limited;
use crate::clock::Clock;
use crate::limiter::Limiter;
use crate::observe::Observe;

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
        Self { shared: Arc::new(Shared { limiter, clock, observer }) }
    }

    /// Wraps the service of one connection, whose peer is known.
    pub fn for_peer<T>(&self, peer: IpAddr, inner: T) -> Limited<T, S, O> {
        Limited::new(inner, Arc::clone(&self.shared), Some(peer.to_canonical()))
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
