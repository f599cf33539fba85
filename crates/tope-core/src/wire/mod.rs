//! A verdict as header text, in several dialects.
//!
//! | room | fields |
//! |---|---|
//! | [`triple`] | `RateLimit-Limit`, `RateLimit-Remaining`, `RateLimit-Reset` |
//! | [`draft`] | `RateLimit`, `RateLimit-Policy`: draft-ietf-httpapi-ratelimit-headers-11 |
//! | [`x_ratelimit`] | `X-RateLimit-*` as GitHub sends them |
//! | [`retry_after`] | `Retry-After`, RFC 9110 section 10.2.3 |
//! | [`text`] | numbers and strings of structured fields, RFC 9651, without the cost of `format!` |
//!
//! Reading header text is the client's: `tope-client`.

pub mod draft;
pub mod retry_after;
pub mod text;
pub mod triple;
pub mod x_ratelimit;

/// Microseconds as whole seconds, rounded up, at least 1: nothing that a client is told may be too early.
pub const fn seconds(us: u64) -> u64 {
    let seconds = us.div_ceil(1_000_000);
    if seconds == 0 { 1 } else { seconds }
}
