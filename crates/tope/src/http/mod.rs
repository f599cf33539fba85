//! What HTTP makes of a request before it is judged, and of a judgement after.
//!
//! | room | what is in it |
//! |---|---|
//! | [`client_addr`] | who is calling, by address: `Forwarded`, `X-Forwarded-For`, trusted proxies |
//! | [`path`] | one strict normalisation, so that no spelling avoids a rule |
//! | [`fields`] | the header fields of a judgement, in the dialects of the policy |
//! | [`problem`] | the body of a refusal, RFC 9457 |
//! | [`grpc`] | a refusal as a gRPC status |
//! | [`body`] | what a body says of a price, read as it passes |
//! | [`cors`] | what a browser needs to be able to read a refusal |

pub mod body;
pub mod client_addr;
pub mod cors;
pub mod fields;
pub mod grpc;
pub mod path;
pub mod problem;
