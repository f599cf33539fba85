//! The acceptance list, as far as limits are concerned: the built program in front of an API, seen from outside.
//!
//! | room | what is in it |
//! |---|---|
//! | `support`, `client`, `upstream` | the program, a client that sends any bytes, an API that counts |
//! | `told` | the fields and the 429, and that waiting as told is right |
//! | `dialects` | HEAD, preflights, CORS, gRPC, dialects, an upstream's own fields, shadow, never, 503 |
//! | `exact` | 5,000 requests at once; a refused upload |
//! | `answers` | limits that wait for the answer |
//! | `priced` | limits that charge what the answer says |
//! | `waiting` | limits that let requests wait in line |
//! | `clients` | keys, plans, names, where a key is |
//! | `paths` | every spelling of `/login` |
//! | `addresses` | forged and trusted addresses, IPv6 blocks, random user agents |
//! | `flood` | far more keys than places |
//! | `reload` | a policy that changes while it is in force |
//! | `restart` | budgets that outlive the program |
//! | `bad_input` | what is refused before anything starts |
//! | `admin` | health, readiness, metrics |
//! | `replayed` | a log of the gateway, judged again by `tope replay` |
//! | `judged` | the same by the pure steps of `tope-core`, whose `model` it borrows |

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::disallowed_methods, reason = "these tests wait for real time, as a client does")]

mod addresses;
mod admin;
mod answers;
mod bad_input;
mod client;
mod clients;
mod dialects;
mod exact;
mod flood;
mod judged;
#[path = "../../../tope-core/tests/model/mod.rs"]
mod model;
mod paths;
mod priced;
mod reload;
mod replayed;
mod restart;
mod support;
mod told;
mod upstream;
mod waiting;
