//! The listener for operators: `/healthz`, `/readyz`, `/metrics`. On a loopback address, so whoever asks is on this
//! machine.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
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
            .route("/metrics", get(async move || ([(CONTENT_TYPE, OPENMETRICS)], metrics.text())));
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        axum::serve(listener, router).with_graceful_shutdown(async move { shutdown.reached(Phase::Ending).await }).await
    }
}

/// A draining gateway is alive and takes nothing new.
fn readiness(phase: Phase) -> (StatusCode, &'static str) {
    match phase {
        Phase::Running => (StatusCode::OK, "ready\n"),
        Phase::Draining | Phase::Ending => (StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
    }
}
