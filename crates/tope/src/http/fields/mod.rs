//! The header fields of a judgement.

/// Which header fields say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `RateLimit-Limit`, `RateLimit-Remaining`, `RateLimit-Reset`.
    Triple,
    /// `RateLimit`, `RateLimit-Policy`: draft-ietf-httpapi-ratelimit-headers-11.
    Draft,
    /// `X-RateLimit-*`, as GitHub sends them.
    XRateLimit,
}
