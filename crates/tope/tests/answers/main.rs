//! Limits that wait for the answer, through the layer: what is held, what is given back, and who waits for whom.
//!
//! | room | what is in it |
//! |---|---|
//! | `desk` | a service that answers when the test says so |
//! | `counted` | which answers count |
//! | `priced` | what an answer charges |
//! | `in_flight` | places, from the admission to the end |
//! | `in_line` | who waits for room |

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod counted;
mod desk;
mod in_flight;
mod in_line;
mod priced;
