//! The built program between real parts from Debian: curl and h2load in front of it, nginx behind it.
//!
//! | room | what is in it |
//! |---|---|
//! | `support` | starts and stops them, by pid, in temporary folders, on free ports |
//! | `bodies` | large bodies both ways, streamed |
//! | `http2` | h2load: counts to the unit, also while the policy is read again |
//! | `upstreams` | killed and back, standing still, two in turn |
//! | `end` | SIGTERM while requests are in flight |
//! | `log` | the access log: no secret in it, and replayed it gives the same decisions |
//! | `metrics` | docs/operating.md names every metric, and no other |
//! | `speed` | long logs replayed: the bar, and a million lines as part of `make bench` |
//!
//! A part that is missing fails its test: `scripts/need` installs them.

#![expect(clippy::disallowed_methods, reason = "processes are waited for in real time")]
#![expect(clippy::print_stdout, reason = "figures are read by a person")]

mod bodies;
mod end;
mod http2;
mod log;
mod metrics;
mod speed;
mod support;
mod upstreams;
