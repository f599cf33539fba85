//! What a browser needs to be able to read an answer of ours: the Fetch standard, "CORS protocol". Without it a page
//! sees a network error where we said 429 and when to come back.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method};

/// Which pages may read answers.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Origins as browsers send them, `https://app.example.org`; `*` is any.
    pub origins: Vec<String>,
}

/// Every field of ours that a page may read only when it is exposed.
const OURS: &str = "Retry-After, RateLimit, RateLimit-Policy, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, \
                    X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Used, X-RateLimit-Reset, X-RateLimit-Resource";

/// Whether a request is a CORS preflight. It never carries a key, so it is charged to limits by `ip` and `all` alone.
/// Browsers spell the method in capitals: `options` is a request like any other, and all limits count it.
pub fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS && headers.contains_key(ORIGIN) && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Lets the page that made the request `asked` read an answer of our own, when its origin is allowed. An origin that
/// is named, and not just any, may read it with credentials too.
pub fn allow(headers: &mut HeaderMap, asked: &HeaderMap, rules: &Rules) {
    // The answer depends on the origin also when there is none.
    let _ = headers.try_append(VARY, HeaderValue::from_static("Origin"));
    let mut origins = asked.get_all(ORIGIN).iter();
    let (Some(origin), None) = (origins.next(), origins.next()) else { return };
    let named = rules.origins.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes() && allowed != "*");
    if !named && !rules.origins.iter().any(|allowed| allowed == "*") {
        return;
    }
    let _ = headers.try_insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    if named {
        let _ = headers.try_insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
    }
    let _ = headers.try_insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(OURS));
}

/// Adds our fields to those that an upstream's answer exposes, without doubles. Nothing when the upstream lets no
/// other page read it. A `*` stays and is not enough: it means nothing to a request with credentials.
pub fn expose(headers: &mut HeaderMap) {
    if !headers.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN) {
        return;
    }
    if !headers.contains_key(ACCESS_CONTROL_EXPOSE_HEADERS) {
        let _ = headers.try_insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(OURS));
        return;
    }
    let exposed = |name: &str| {
        let lines = headers.get_all(ACCESS_CONTROL_EXPOSE_HEADERS).iter();
        lines
            .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
            .any(|theirs| theirs.trim_ascii().eq_ignore_ascii_case(name.as_bytes()))
    };
    let missing: Vec<&str> = OURS.split(", ").filter(|name| !exposed(name)).collect();
    if let (false, Ok(line)) = (missing.is_empty(), HeaderValue::try_from(missing.join(", "))) {
        let _ = headers.try_append(ACCESS_CONTROL_EXPOSE_HEADERS, line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Line = (&'static str, &'static str);

    /// An upstream that lets every page read its answer.
    const OPEN: Line = ("access-control-allow-origin", "*");

    fn headers(lines: &[Line]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn answered(origins: &[&str], asked: &[Line]) -> HeaderMap {
        let mut answer = HeaderMap::new();
        let rules = Rules { origins: origins.iter().map(|origin| (*origin).to_owned()).collect() };
        allow(&mut answer, &headers(asked), &rules);
        assert_eq!(answer["vary"], "Origin");
        answer
    }

    #[test]
    fn a_page_of_an_allowed_origin_can_read_our_answers() {
        let app = &[("origin", "https://app.example.org")];
        let named = answered(&["https://app.example.org"], app);
        assert_eq!(named["access-control-allow-origin"], "https://app.example.org");
        assert_eq!(named["access-control-allow-credentials"], "true");
        assert!(named["access-control-expose-headers"].to_str().expect("ASCII").contains("Retry-After, RateLimit,"));

        let any = answered(&["*"], app);
        assert_eq!(any["access-control-allow-origin"], "https://app.example.org");
        assert!(!any.contains_key("access-control-allow-credentials"));
        // Nor when a client sends the star itself.
        assert!(!answered(&["*"], &[("origin", "*")]).contains_key("access-control-allow-credentials"));
    }

    #[test]
    fn no_other_page_can() {
        let refused: [(&[&str], &[Line]); 8] = [
            (&[], &[("origin", "https://a.org")]),
            (&["https://a.org"], &[]),
            (&["https://a.org"], &[("origin", "https://b.org")]),
            (&["https://a.org"], &[("origin", "http://a.org")]),
            (&["https://a.org"], &[("origin", "https://a.org.evil.org")]),
            (&["https://a.org"], &[("origin", "null")]),
            (&["https://a.org"], &[("origin", "*")]),
            (&["*"], &[("origin", "https://a.org"), ("origin", "https://b.org")]),
        ];
        for (origins, asked) in refused {
            assert_eq!(answered(origins, asked).len(), 1, "{origins:?} {asked:?}");
        }
    }

    #[test]
    fn an_upstream_exposes_our_fields_once() {
        let seen = |lines: &[Line]| {
            let mut answer = headers(lines);
            expose(&mut answer);
            let lines = answer.get_all("access-control-expose-headers").iter();
            lines.map(|line| line.to_str().expect("ASCII").to_owned()).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(seen(&[]), "");
        assert_eq!(seen(&[("access-control-expose-headers", "ETag")]), "ETag");
        assert_eq!(seen(&[OPEN]), OURS);
        assert_eq!(seen(&[OPEN, ("access-control-expose-headers", "ETag")]), format!("ETag, {OURS}"));
        assert_eq!(seen(&[OPEN, ("access-control-expose-headers", "*")]), format!("*, {OURS}"));
        let merged = seen(&[
            OPEN,
            ("access-control-expose-headers", "etag,RETRY-AFTER ,"),
            ("access-control-expose-headers", "ratelimit"),
        ]);
        assert!(merged.starts_with("etag,RETRY-AFTER ,, ratelimit, RateLimit-Policy, "), "{merged}");
        assert_eq!(merged.to_ascii_lowercase().matches("retry-after").count(), 1);

        let mut twice = headers(&[OPEN]);
        expose(&mut twice);
        expose(&mut twice);
        assert_eq!(twice.get_all("access-control-expose-headers").iter().count(), 1);
    }

    #[test]
    fn a_preflight_has_an_origin_and_a_method_to_ask_for() {
        let asked = headers(&[("origin", "https://a.org"), ("access-control-request-method", "PUT")]);
        assert!(is_preflight(&Method::OPTIONS, &asked));
        assert!(!is_preflight(&Method::GET, &asked));
        assert!(!is_preflight(&Method::OPTIONS, &headers(&[("origin", "https://a.org")])));
        assert!(!is_preflight(&Method::OPTIONS, &headers(&[("access-control-request-method", "PUT")])));
    }
}
