//! The proxy of one worker, which a reload can replace.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use arc_swap::ArcSwap;
use http::{Request, Response};
use tower_service::Service;

use crate::gateway::proxy::Answer;
use crate::gateway::{Body, Proxy, Upload};
use crate::settings::Settings;

/// Forwards by the proxy in force; clones are one.
#[derive(Clone, Debug)]
pub(super) struct Forward(Arc<ArcSwap<Proxy>>);

impl Forward {
    pub(super) fn new(settings: &Settings) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(proxy(settings))))
    }

    /// New requests go where these settings say; those under way end where they began.
    pub(super) fn replace(&self, settings: &Settings) {
        self.0.store(Arc::new(proxy(settings)));
    }
}

fn proxy(settings: &Settings) -> Proxy {
    Proxy::new(&settings.upstreams, settings.upstream_timeout)
}

impl Service<Request<Upload>> for Forward {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Upload>) -> Answer {
        Proxy::clone(&self.0.load()).call(request)
    }
}
