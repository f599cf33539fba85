//! What a target says, read as the door reads it: `/path?query`, or `http://host/path?query` as proxies are sent it.

use std::borrow::Cow;

use http::{HeaderMap, Method, Uri};
use tope::http::path::{self, BadPath, Target};

use super::Line;

/// Path and query of a line's target, and the host that it or the line names.
pub(super) fn read<'u>(
    line: &'u Line<'_>,
    uri: &'u Uri,
    headers: &'u HeaderMap,
) -> Result<(Target<'u>, Cow<'u, str>), BadPath> {
    let method = Method::from_bytes(line.method.as_bytes()).unwrap_or_default();
    let target = path::target(&method, uri)?;
    let beside = uri.authority().is_none() && !line.host.is_empty();
    let host = if beside { path::plain_host(&line.host)? } else { path::host(uri, headers)? };
    Ok((target, host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(method: &str, target: &str, host: &str) -> Option<(String, Option<String>, String)> {
        let line = Line { method: method.into(), target: Some(target.into()), host: host.into(), ..Line::default() };
        let uri = line.uri()?;
        let headers = HeaderMap::new();
        let (target, host) = read(&line, &uri, &headers).ok()?;
        Some((target.path.to_owned(), target.query.map(str::to_owned), host.into_owned()))
    }

    #[test]
    fn targets_say_path_query_and_host() {
        let cases = [
            ("/a/b", "", ("/a/b", None, "")),
            ("/a?x=1?y", "API.Example.org:8080", ("/a", Some("x=1?y"), "api.example.org")),
            ("/a?", "example.org.", ("/a", Some(""), "example.org")),
            ("/a?b#c", "", ("/a", Some("b"), "")),
            ("http://Example.org:80/a?b", "other", ("/a", Some("b"), "example.org")),
            ("HTTPS://example.org?b", "", ("/", Some("b"), "example.org")),
            ("/a", "[::1]", ("/a", None, "[::1]")),
            ("/go/http://x/y", "", ("/go/http://x/y", None, "")),
        ];
        for (target, host, (path, query, expected)) in cases {
            let expected = Some((path.to_owned(), query.map(str::to_owned), expected.to_owned()));
            assert_eq!(said("GET", target, host), expected, "{target} at {host}");
        }
        assert_eq!(said("OPTIONS", "*", "[::1]:80"), Some(("*".to_owned(), None, "[::1]".to_owned())));
    }

    #[test]
    fn what_no_server_takes_is_not_read() {
        for (method, target, host) in [
            ("GET", "*", ""),
            ("CONNECT", "example.org:443", ""),
            ("GET", "a", ""),
            ("GET", "/a b", ""),
            ("GET", "/a", "a b"),
            ("GET", "http://u@example.org/a", ""),
        ] {
            assert_eq!(said(method, target, host), None, "{method} {target} {host}");
        }
    }
}
