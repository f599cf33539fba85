//! What the program says about what it does.
//!
//! | room | what is in it |
//! |---|---|
//! | [`metrics`] | counters, one set a worker |
//! | [`exposition`] | the text of `/metrics` |
//! | [`access_log`] | a line of JSON for each request |
//! | [`observer`] | a record to both |

pub mod access_log;
pub mod exposition;
pub mod metrics;
pub mod observer;
