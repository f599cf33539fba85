//! What the program says about what it does.

pub mod access_log;
