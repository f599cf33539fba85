//! What a target says: `/path?query`, or `http://host/path?query` as proxies are sent it.

use std::borrow::Cow;

use http::HeaderMap;
use http::header::HOST;

use super::Line;

/// What a target says: `/path?query`, or `http://host/path?query` as proxies are sent it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target<'a> {
    /// The path as sent.
    pub(crate) path: &'a str,
    /// The query without its `?`.
    pub(crate) query: Option<&'a str>,
    /// The host, lower case, without port and final dot.
    pub(crate) host: Cow<'a, str>,
}

impl<'a> Target<'a> {
    /// Of a line and its header fields.
    pub(crate) fn of(line: &'a Line<'_>, headers: &'a HeaderMap) -> Self {
        let named = if line.host.is_empty() { headers.get(HOST).and_then(|host| host.to_str().ok()) } else { None };
        Self::new(line.target.as_deref().unwrap_or("/"), named.unwrap_or(&line.host))
    }

    /// Of a target as sent, and the host that was named beside it.
    pub(crate) fn new(target: &'a str, host: &'a str) -> Self {
        let (host, target) = absolute(target).unwrap_or((host, target));
        let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        // What a browser keeps to itself, some logs have.
        let query = query.map(|query| query.split('#').next().unwrap_or_default());
        Self { path: if path.is_empty() { "/" } else { path }, query, host: bare_host(host) }
    }
}

fn absolute(target: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = target.split_once("://")?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return None;
    }
    let authority_ends = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(authority_ends);
    Some((authority.rsplit_once('@').map_or(authority, |(_, host)| host), target))
}

fn bare_host(host: &str) -> Cow<'_, str> {
    let bracket = host.rfind(']').unwrap_or(0);
    let bare = host[bracket..].rfind(':').map_or(host, |colon| &host[..bracket + colon]);
    let bare = bare.strip_suffix('.').unwrap_or(bare);
    if bare.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(bare.to_ascii_lowercase())
    } else {
        Cow::Borrowed(bare)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_say_path_query_and_host() {
        let cases = [
            ("/a/b", "", ("/a/b", None, "")),
            ("/a?x=1?y", "API.Example.org:8080", ("/a", Some("x=1?y"), "api.example.org")),
            ("/a?", "example.org.", ("/a", Some(""), "example.org")),
            ("http://u@Example.org:80/a?b", "other", ("/a", Some("b"), "example.org")),
            ("HTTPS://example.org?b", "", ("/", Some("b"), "example.org")),
            ("*", "[::1]:80", ("*", None, "[::1]")),
            ("/a", "[::1]", ("/a", None, "[::1]")),
            ("/go/http://x/y", "", ("/go/http://x/y", None, "")),
        ];
        for (target, host, (path, query, expected)) in cases {
            assert_eq!(Target::new(target, host), Target { path, query, host: expected.into() }, "{target} at {host}");
        }
    }
}
