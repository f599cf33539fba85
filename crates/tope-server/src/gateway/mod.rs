//! The gateway's data plane: HTTP from clients in, HTTP to upstreams out, and nothing about limits.
//!
//! - [`serve`] accepts connections, one thread and one listener a core, and hands requests to any tower service;
//!   `connection` runs one of them over `client_io` (bytes and time) and `guard` (framing); `load` counts what is in flight, `stall` ends
//!   answers that stand still.
//! - [`proxy`] is the service that forwards: `upstream` picks where to, `link` is a connection to it
//!   (`pool` keeps those of HTTP/1.1, `shared` that of HTTP/2), `fields` makes the header of one side fit the other, `tunnel` carries
//!   what was upgraded, `progress` is how far a body or a tunnel has got, `demo` answers without an upstream.
//! - [`body`], [`upload`] and [`caller`] are what passes between the layer in front and the proxy; [`problem`] is how errors read.
//!
//! The limiter stands between [`serve`] and [`proxy`] as a tower layer and knows neither.

pub mod body;
pub mod caller;
mod client_io;
mod connection;
mod demo;
mod fields;
mod guard;
mod link;
mod load;
mod pool;
pub mod problem;
mod progress;
pub mod proxy;
pub mod serve;
mod shared;
mod stall;
mod tunnel;
pub mod upload;
mod upstream;

pub use body::Body;
pub use caller::Caller;
pub use problem::Problem;
pub use proxy::Proxy;
pub use serve::Server;
pub use upload::Upload;
