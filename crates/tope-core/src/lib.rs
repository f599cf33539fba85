//! The numbers of tope: what a limit means, and nothing else.
//!
//! This crate is cut so that everything which decides can be read, proved and ported in one sitting:
//! no clock, no I/O, no allocation, no dependency, no floating point. Time is an argument, in Unix
//! microseconds; a bucket is a value that goes in and comes out.
//!
//! | room | what is in it |
//! |---|---|
//! | [`quota`] | rate, burst, algorithm; a [`Quota`] that exists is valid |
//! | [`rate`] | the text form: `100/min burst 20` to a value and back |
//! | [`decision`] | the answer of one limit |
//! | [`verdict`] | the answer to a request, made of its decisions |
//! | [`algorithm`] | `(quota, state, now, cost) -> (decision, state)`, five times |
//! | [`wire`] | a verdict as header text |
//!
//! ```
//! use tope_core::{Quota, State, algorithm::step};
//!
//! let quota = Quota::per_minute(2)?;
//! let now = 1_790_000_000_000_000;
//! let (first, state) = step(&quota, &[], State::FULL, now, 1);
//! let (second, state) = step(&quota, &[], state, now, 1);
//! let (third, _) = step(&quota, &[], state, now, 1);
//! assert!(first.allowed() && second.allowed() && !third.allowed());
//! assert_eq!(third.retry_us(), Some(30_000_000));
//! # Ok::<(), tope_core::QuotaError>(())
//! ```
#![no_std]

pub mod algorithm;
pub mod decision;
mod divide;
pub mod quota;
pub mod rate;
pub mod verdict;
pub mod wire;

pub use algorithm::{State, Window};
pub use decision::{Decision, Outcome};
pub use quota::{Algorithm, Calendar, Period, Quota, QuotaError};
pub use rate::{Rate, RateError};
pub use verdict::{Entry, Verdict};
