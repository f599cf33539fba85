//! Waiting politely: what a client makes of `Retry-After` and of the `RateLimit` fields of every dialect.
//!
//! It is a crate of its own, which needs no other of ours, because whoever calls a limited API rarely limits one.
//! It is at its beginning and holds no code yet.
