//! The program `tope`. Sockets, files and signals live here and nowhere else.
//!
//! | room | what is in it |
//! |---|---|
//! | [`cli`] | one file a command |
//! | [`settings`] | what a policy file says about the program itself |
//! | `load`, `talk` | a policy file, read; standard error, for people |
//! | [`run`] | the gateway put together: policy, store, layer, proxy, listeners |
//! | [`gateway`] | HTTP from clients in, to upstreams out; knows nothing of limits |
//! | [`admin`] | the listener for operators |
//! | [`telemetry`] | metrics and the access log |
//! | [`reload`], [`state`] | a policy that changes; buckets that outlive a restart |
//! | [`listen`], [`lingering`], [`shutdown`] | sockets and signals |
//! | [`pass`] | a request that was written down, through the same pass that enforces |
//! | [`replay`] | a log through it |
//! | `text` | columns, numbers and times as they are said |

pub mod admin;
pub mod cli;
pub mod gateway;
pub mod lingering;
pub mod listen;
mod load;
pub mod pass;
pub mod reload;
pub mod replay;
pub mod run;
pub mod settings;
pub mod shutdown;
pub mod state;
mod talk;
pub mod telemetry;
mod text;
