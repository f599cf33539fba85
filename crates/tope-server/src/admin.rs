//! The listener for operators: `/healthz`, `/readyz`, `/metrics`. On a loopback address, so whoever asks is on this
//! machine.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::header::{CONTENT_TYPE, HOST};
use axum::http::uri::Authority;
use axum::http::{StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::shutdown::{Phase, Shutdown};
use crate::telemetry::exposition::Metrics;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A listener that is open and not served yet.
#[derive(Debug)]
pub struct Admin {
    listener: TcpListener,
}

impl Admin {
    /// Opens the listener.
    ///
    /// # Errors
    /// When the address is taken or not ours.
    pub fn bind(address: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener })
    }

    /// Where it listens; the port is the real one.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until the program ends; it answers while the gateway drains.
    ///
    /// # Errors
    /// When the listener can't be served.
    pub async fn serve(self, metrics: Arc<Metrics>, shutdown: Shutdown) -> std::io::Result<()> {
        let ready = shutdown.clone();
        let router = Router::new()
            .route("/healthz", get(async || "alive\n"))
            .route("/readyz", get(async move || readiness(ready.phase())))
            .route("/metrics", get(async move || ([(CONTENT_TYPE, OPENMETRICS)], metrics.text())))
            .layer(middleware::from_fn(only_by_own_name));
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        axum::serve(listener, router).with_graceful_shutdown(async move { shutdown.reached(Phase::Ending).await }).await
    }
}

/// A page in a browser on this machine may have its own name resolve to us (DNS rebinding) and read what we answer; the
/// name it asks for is still its own.
async fn only_by_own_name(request: Request, next: Next) -> Response {
    let named = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let host = named.or_else(|| request.uri().authority().map(Authority::as_str));
    if host.is_some_and(is_own) {
        return next.run(request).await;
    }
    (StatusCode::MISDIRECTED_REQUEST, "ask for localhost or for an IP address\n").into_response()
}

/// Whether a host, with or without a port, is a name of the loopback or an IP address.
fn is_own(host: &str) -> bool {
    let Ok(authority) = host.parse::<Uri>() else { return false };
    let Some(name) = authority.host() else { return false };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost") || name.parse::<IpAddr>().is_ok()
}

/// A draining gateway is alive and takes nothing new.
fn readiness(phase: Phase) -> (StatusCode, &'static str) {
    match phase {
        Phase::Running => (StatusCode::OK, "ready\n"),
        Phase::Draining | Phase::Ending => (StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use tower_service::Service;

    use super::*;

    #[tokio::test]
    async fn a_foreign_name_is_misdirected() {
        let mut router = Router::new().route("/", get(async || "x")).layer(middleware::from_fn(only_by_own_name));
        for (host, status) in [
            ("localhost:9901", 200),
            ("LOCALHOST", 200),
            ("tope.localhost", 200),
            ("127.0.0.1:9901", 200),
            ("[::1]:9901", 200),
            ("192.0.2.1", 200),
            ("evil.example", 421),
            ("localhost.evil.example:9901", 421),
            ("127.0.0.1.evil.example", 421),
            ("", 421),
        ] {
            let request = Request::builder().header(HOST, host).body(Body::empty()).unwrap();
            assert_eq!(router.call(request).await.unwrap().status(), status, "{host}");
        }
    }
}
