//! The pass as a layer: the same code in front of an axum, hyper or tonic service and in the gateway.
//!
//! | room | what is in it |
//! |---|---|
//! | [`layer`](Layer) | what is shared by all services that it wraps |
//! | [`service`](Limited) | one request: read it once, judge it, answer or pass it on |
//! | [`future`](Answering) | its answer, when it comes |
//! | `pending` | what it waits for before it is let in or refused |
//! | `after` | what follows: the inner answer with our fields, what it settles, and the record |
//! | `answer` | a refusal in HTTP or gRPC |
//! | [`body`](Body) | the body of either, and whoever waits for its end |
//! | [`read_ahead`](ReadAhead) | the beginning of a request's body, where a limit holds what it asks for |
//!
//! ```
//! use std::sync::Arc;
//! use http_body_util::{BodyExt, Full};
//! use tope::{Limiter, policy, store::memory::Memory, tower};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let policy = policy::read("upstream: demo\nlimits: { api: { by: ip, rate: 1/min } }", "here", &()).unwrap();
//! let limiter = Arc::new(Limiter::new(Memory::new(1_000).unwrap(), policy).unwrap());
//! let layer = tower::Layer::new(limiter);
//!
//! let hello = ::tower::service_fn(|_: http::Request<()>| async {
//!     Ok::<_, std::convert::Infallible>(http::Response::new(Full::<bytes::Bytes>::from("hello")))
//! });
//! let service = layer.for_peer([203, 0, 113, 7].into(), hello);
//! let ask = || ::tower::ServiceExt::oneshot(service.clone(), http::Request::get("/").body(()).unwrap());
//! assert_eq!(ask().await.unwrap().status(), 200);
//! let refused = ask().await.unwrap();
//! assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (429, &http::HeaderValue::from(60)));
//! # }
//! ```

mod after;
mod answer;
mod body;
mod future;
mod layer;
mod pending;
mod read_ahead;
mod service;

pub use after::Unanswered;
pub use body::{Body, InFlight};
pub use future::Answering;
pub use layer::{Layer, Peer, Sleep, Timer};
pub use read_ahead::{BodyHead, Frames, MOST_AHEAD, Peeked, ReadAhead, ReadingAhead, Unread, with_ahead};
pub use service::{Caller, Limited};
