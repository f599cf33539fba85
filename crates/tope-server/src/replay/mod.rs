//! A log through the same pass that enforces: what would this policy have done?
//!
//! | room | what is in it |
//! |---|---|
//! | [`source`] | logs as they lie: plain, gzip, standard input |
//! | [`lines`] | bytes to lines |
//! | [`formats`] | a line of bytes to a request |
//! | [`order`] | the order of our own access log |
//! | [`simulate`] | the loop: every line once, with the log's time |
//! | [`tally`] | what is counted |
//! | [`decisions`] | a JSON object for every request |
//! | [`report`] | the summary, for people and for machines |
//! | [`progress`] | the bar on a terminal |

pub mod decisions;
pub mod formats;
pub mod lines;
pub mod order;
pub mod progress;
pub mod report;
pub mod simulate;
pub mod source;
pub mod tally;

#[cfg(test)]
mod tests;
