//! The limiter to embed: a policy, a store, and the one pass between them.
//!
//! ```text
//! a door reads the request once and takes `now` once
//!   -> Facts -> policy.charges(facts) -> store.charge(charges, now): all or nothing -> Judgement
//!   -> the same door writes the answer: header fields and a problem body, or a gRPC message
//!   -> store.settle(receipt, +-units) where a limit waits for what the answer says
//! ```
//!
//! | room | what is in it |
//! |---|---|
//! | [`facts`] | what a limit may ask of a request and its answer |
//! | [`charge`] | a budget, and a cost to take from one bucket of it |
//! | [`policy`] | all limits of one file, compiled; names no store |
//! | [`store`] | where buckets live; names no policy |
//! | [`limiter`] | the one pass: facts, charges, store, judgement |
//! | [`http`] | what HTTP makes of a judgement |
//! | [`tower`] | the pass as a layer |
//! | [`observe`] | one record per judgement |
//! | [`clock`] | Unix microseconds that never run backwards |

pub mod charge;
pub mod clock;
pub mod facts;
pub mod http;
pub mod limiter;
pub mod observe;
pub mod policy;
pub mod store;
#[cfg(feature = "tower")]
pub mod tower;

pub use charge::{Budget, Charge};
pub use facts::Facts;
pub use limiter::{Judgement, Limiter};
pub use policy::Policy;
pub use tope_core as core;
