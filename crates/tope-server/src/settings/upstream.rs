//! Where requests go, and how a wrong upstream is told.

use super::Fault;
use crate::gateway::Target;

const HINT: &str = "write http://HOST:PORT, h2c://HOST:PORT for HTTP/2 without TLS, or demo";

/// Reads one. What is told of a wrong one never holds a user or a password.
pub(super) fn parse(text: &str) -> Result<Target, Fault> {
    let authority = text.split_once("://").map_or(text, |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err(("an upstream has no user or password".to_owned(), "let it believe this gateway's address"));
    }
    if text.starts_with("https://") {
        return Err(("https to an upstream is not in this version".to_owned(), HINT));
    }
    text.parse().map_err(|error: crate::gateway::target::TargetError| (error.to_string(), HINT))
}
