//! Path, query and host out of a request: RFC 9112 section 3.2, RFC 9113 section 8.3.1.

use std::borrow::Cow;

use http::header::HOST;
use http::uri::Authority;
use http::{HeaderMap, Method, Uri};

use super::BadPath;

/// What a request asks for, as it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Target<'a> {
    /// The path, not yet normalised: `/…`, or `*` of `OPTIONS *`.
    pub path: &'a str,
    /// The query without its `?`.
    pub query: Option<&'a str>,
}

/// Takes path and query out of a request target, also of absolute-form (`GET http://host/path`).
///
/// # Errors
/// [`BadPath::Form`] for `CONNECT`, and for `*` with another method than `OPTIONS`.
pub fn target<'a>(method: &Method, uri: &'a Uri) -> Result<Target<'a>, BadPath> {
    let path = match uri.path() {
        _ if method == Method::CONNECT => return Err(BadPath::Form),
        "*" if method != Method::OPTIONS => return Err(BadPath::Form),
        // Authority-form (`host:port`) has neither scheme nor path.
        "" if uri.scheme().is_none() => return Err(BadPath::Form),
        "" => "/",
        path => path,
    };
    Ok(Target { path, query: uri.query() })
}

/// The host that a request is for: lower case, without port and final dot; empty when it names none. `:authority` and
/// absolute-form win over `Host`, and all must agree.
///
/// # Errors
/// [`BadPath::Host`] when there are several, when they disagree, or when one is no host.
pub fn host<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Result<Cow<'a, str>, BadPath> {
    let mut said = headers.get_all(HOST).iter();
    let field = match (said.next(), said.next()) {
        (None, _) => None,
        (Some(field), None) => Some(plain_host(field.to_str().map_err(|_| BadPath::Host)?)?),
        (Some(_), Some(_)) => return Err(BadPath::Host),
    };
    let authority = uri.authority().map(Authority::as_str).map(plain_host).transpose()?;
    match (authority, field) {
        (Some(authority), Some(field)) if authority != field => Err(BadPath::Host),
        (Some(host), _) | (None, Some(host)) => Ok(host),
        (None, None) => Ok(Cow::Borrowed("")),
    }
}

/// One `host[:port]` without its port and final dot, in lower case.
///
/// # Errors
/// [`BadPath::Host`] when it is no host.
pub fn plain_host(text: &str) -> Result<Cow<'_, str>, BadPath> {
    let end = if text.starts_with('[') {
        text.find(']').ok_or(BadPath::Host)? + 1
    } else {
        text.find(':').unwrap_or(text.len())
    };
    let (host, port) = text.split_at(end);
    let port = port.strip_prefix(':').unwrap_or(port);
    let host = host.strip_suffix('.').unwrap_or(host);
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+;=%[]:".contains(&byte);
    let empty = host.is_empty() && !text.is_empty();
    if empty || !host.bytes().all(allowed) || !port.bytes().all(|byte| byte.is_ascii_digit()) || port.len() > 5 {
        return Err(BadPath::Host);
    }
    Ok(if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(host.to_ascii_lowercase())
    } else {
        Cow::Borrowed(host)
    })
}
