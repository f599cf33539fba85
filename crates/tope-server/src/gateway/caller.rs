//! What the layer in front knows of a request and the upstream is told: one request extension; and one to keep while a
//! switched connection is in use. And what the layer is told: one extension of an answer that no upstream gave.
//!
//! Without it the upstream is told nothing about the caller, and what the client says about itself is dropped.

pub use tope::tower::{Caller, InFlight, Unanswered};
