//! The body of a refusal, RFC 9457.
