//! The data plane against real parts: nginx and curl from the system, upstreams that misbehave, clients that do.
//!
//! `support` starts and stops them; `streams` is what passes, `hops` what changes on the way, `upstreams` what goes
//! wrong behind us, `clients` what goes wrong in front of us, `end` how it stops.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::disallowed_methods, reason = "sockets are waited for in real time")]

mod clients;
mod end;
mod hops;
mod streams;
mod support;
mod upstreams;
