//! What the layer in front knows of a request and the upstream is told: one request extension; and one to keep while a
//! switched connection is in use. And what the layer is told: one extension of an answer that no upstream gave. A body whose beginning it has read is given back to it.
//!
//! Without it the upstream is told nothing about the caller, and what the client says about itself is dropped.

pub use tope::tower::{Caller, Frames, InFlight, Unanswered, Unread, with_ahead};
