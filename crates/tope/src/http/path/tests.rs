use http::{HeaderMap, HeaderValue, Method, Uri};
use proptest::prelude::*;

use super::*;

const STRICT: Rules = Rules { ignore_case: false, encoded_slash: EncodedSlash::Reject };
const LOOSE: Rules = Rules { ignore_case: true, encoded_slash: EncodedSlash::Both };

/// Each spelling, what is forwarded, what is matched.
const SPELLINGS: &[(&str, &str, &str)] = &[
    ("/", "/", "/"),
    ("/api/login", "/api/login", "/api/login"),
    ("/api/login/", "/api/login/", "/api/login"),
    ("//api/login", "/api/login", "/api/login"),
    ("///api/login", "/api/login", "/api/login"),
    ("/api//login", "/api/login", "/api/login"),
    ("/api/login//", "/api/login/", "/api/login"),
    ("/./api/login", "/api/login", "/api/login"),
    ("/api/./login", "/api/login", "/api/login"),
    ("/api/login/.", "/api/login/", "/api/login"),
    ("/api/login/x/..", "/api/login/", "/api/login"),
    ("/api/x/../login", "/api/login", "/api/login"),
    ("/api//x/..//login", "/api/login", "/api/login"),
    ("/api/%6Cogin", "/api/login", "/api/login"),
    ("/api/%6cogin", "/api/login", "/api/login"),
    ("/%61%70%69/login", "/api/login", "/api/login"),
    ("/api/%2e/login", "/api/login", "/api/login"),
    ("/x/%2e%2e/api/login", "/api/login", "/api/login"),
    ("/x/.%2E/api/login", "/api/login", "/api/login"),
    ("/x/%2e./api/login", "/api/login", "/api/login"),
    ("/api/login;jsessionid=1", "/api/login;jsessionid=1", "/api/login"),
    ("/api/login;", "/api/login;", "/api/login"),
    ("/api;v=1/login;a;b", "/api;v=1/login;a;b", "/api/login"),
    ("/api/;x/login", "/api/;x/login", "/api/login"),
    ("/;x/api/login", "/;x/api/login", "/api/login"),
    ("/api/login/;x", "/api/login/;x", "/api/login"),
    ("/;", "/;", "/"),
    // Paths of their own.
    ("/API/LOGIN", "/API/LOGIN", "/API/LOGIN"),
    ("/api/login%3F", "/api/login%3F", "/api/login%3F"),
    ("/api/login%3fx", "/api/login%3Fx", "/api/login%3Fx"),
    ("/api/login%23", "/api/login%23", "/api/login%23"),
    ("/api/login%3bx", "/api/login%3Bx", "/api/login%3Bx"),
    ("/api/%252e%252e/login", "/api/%252e%252e/login", "/api/%252e%252e/login"),
    ("/api/%252Flogin", "/api/%252Flogin", "/api/%252Flogin"),
    ("/api/login%20", "/api/login%20", "/api/login%20"),
    ("/api/login%0a", "/api/login%0A", "/api/login%0A"),
    ("/caf%c3%a9", "/caf%C3%A9", "/caf%C3%A9"),
    ("/.well-known/x", "/.well-known/x", "/.well-known/x"),
    ("/.../x", "/.../x", "/.../x"),
    ("/a/..b/c..", "/a/..b/c..", "/a/..b/c.."),
    // Servers take both spellings of a reserved character for one path, so limits do.
    ("/users/%40me", "/users/%40me", "/users/@me"),
    ("/v1/models%3agenerate", "/v1/models%3Agenerate", "/v1/models:generate"),
    ("/a%7Cb", "/a%7Cb", "/a|b"),
    ("/a|b", "/a|b", "/a|b"),
    ("/%2540me", "/%2540me", "/%2540me"),
    ("*", "*", "*"),
];

#[test]
fn every_spelling_of_a_path_is_one_path() {
    for (sent, forward, matched) in SPELLINGS {
        let path = normalise(sent, STRICT).unwrap_or_else(|error| panic!("{sent}: {error}"));
        assert_eq!((&*path.forward, &*path.matched, path.other), (*forward, *matched, None), "{sent}");
    }
}

#[test]
fn what_two_servers_could_read_as_two_paths_is_refused() {
    let refused = [
        ("", BadPath::Form),
        ("api", BadPath::Form),
        ("%2Fapi", BadPath::Form),
        ("**", BadPath::Form),
        ("/api/login%", BadPath::Escape),
        ("/api/login%4", BadPath::Escape),
        ("/api/%zzlogin", BadPath::Escape),
        ("/api/%+6login", BadPath::Escape),
        ("/%%36%36", BadPath::Escape),
        ("/api/login%00", BadPath::Escape),
        ("/%u002e", BadPath::Escape),
        ("/api/\tlogin", BadPath::Byte),
        ("/api/login ", BadPath::Byte),
        ("/api/login\u{7f}", BadPath::Byte),
        ("/api/login\r\n", BadPath::Byte),
        ("/caf\u{e9}", BadPath::Byte),
        ("/api/login?x", BadPath::Byte),
        ("/api/login#x", BadPath::Fragment),
        ("/..", BadPath::AboveRoot),
        ("/../login", BadPath::AboveRoot),
        ("/a/../../login", BadPath::AboveRoot),
        ("/%2e%2E/login", BadPath::AboveRoot),
        ("/a//../../login", BadPath::AboveRoot),
        ("/api%2Flogin", BadPath::EncodedSlash),
        ("/api%2flogin", BadPath::EncodedSlash),
        ("/api/login%2f", BadPath::EncodedSlash),
        ("/api%5clogin", BadPath::EncodedSlash),
        ("/api\\login", BadPath::EncodedSlash),
        ("\\api\\login", BadPath::EncodedSlash),
        ("/x/..;a/login", BadPath::DotParameter),
        ("/x/..;/login", BadPath::DotParameter),
        ("/x/%2e%2e;a/login", BadPath::DotParameter),
        ("/.;/login", BadPath::DotParameter),
    ];
    for (sent, why) in refused {
        assert_eq!(normalise(sent, STRICT), Err(why), "{sent:?}");
    }
}

#[test]
fn an_encoded_slash_is_read_both_ways() {
    let rows = [
        ("/api%2flogin", "/api%2Flogin", "/api%2flogin", "/api/login"),
        ("/API/login%2F", "/API/login%2F", "/api/login%2f", "/api/login"),
        ("/api\\login", "/api%5Clogin", "/api%5clogin", "/api/login"),
        ("/api/login%2F..%2Fstatic", "/api/login%2F..%2Fstatic", "/api/login%2f..%2fstatic", "/api/static"),
        ("/static/..%2Flogin", "/static/..%2Flogin", "/static/..%2flogin", "/login"),
        ("/a%2F%2F;x/login", "/a%2F%2F;x/login", "/a%2f%2f/login", "/a/login"),
        ("\\login", "/%5Clogin", "/%5clogin", "/login"),
    ];
    for (sent, forward, matched, other) in rows {
        let path = normalise(sent, LOOSE).unwrap_or_else(|error| panic!("{sent}: {error}"));
        assert_eq!((&*path.forward, &*path.matched, path.other.as_deref()), (forward, matched, Some(other)), "{sent}");
    }
    assert_eq!(normalise("/a%2F..%2F..%2Flogin", LOOSE), Err(BadPath::AboveRoot));
    assert_eq!(normalise("/x%2f..;a/login", LOOSE), Err(BadPath::DotParameter));
    assert_eq!(normalise("/api/login", LOOSE).expect("a path").other, None);
    // Nobody sees what a `..` took away, so nobody reads it in another way.
    for sent in ["/a%2Fb/../login", "/%2F;/../login"] {
        let path = normalise(sent, LOOSE).expect("a path");
        assert_eq!((&*path.forward, path.other), ("/login", None), "{sent}");
    }
}

#[test]
fn a_canonical_path_is_borrowed() {
    for sent in ["/", "/api/login", "/api/login/", "/caf%C3%A9", "/api/login%3F"] {
        let path = normalise(sent, LOOSE);
        let path = path.or_else(|_| normalise(sent, STRICT)).expect("a path");
        assert!(matches!(path.forward, Cow::Borrowed(_)), "{sent}");
    }
    let path = normalise("/api/login/", STRICT).expect("a path");
    assert!(matches!(path.matched, Cow::Borrowed("/api/login")));
}

#[test]
fn the_target_of_a_request() {
    let ask = |method: Method, uri: &str| {
        let uri: Uri = uri.parse().expect("a URI");
        target(&method, &uri).map(|target| (target.path.to_owned(), target.query.map(str::to_owned)))
    };
    let path = |path: &str, query: Option<&str>| Ok((path.to_owned(), query.map(str::to_owned)));
    assert_eq!(ask(Method::GET, "/api?x=1"), path("/api", Some("x=1")));
    assert_eq!(ask(Method::GET, "http://other/api/login"), path("/api/login", None));
    assert_eq!(ask(Method::GET, "http://other"), path("/", None));
    assert_eq!(ask(Method::GET, "http://other?x"), path("/", Some("x")));
    assert_eq!(ask(Method::OPTIONS, "*"), path("*", None));
    assert_eq!(ask(Method::GET, "*"), Err(BadPath::Form));
    assert_eq!(ask(Method::CONNECT, "example.org:443"), Err(BadPath::Form));
    assert_eq!(ask(Method::GET, "example.org:443"), Err(BadPath::Form));
}

#[test]
fn the_host_of_a_request() {
    let rows: [(&str, &[&str], Result<&str, BadPath>); 22] = [
        ("/", &[], Ok("")),
        ("/", &[""], Ok("")),
        ("/", &["example.org"], Ok("example.org")),
        ("/", &["EXAMPLE.org:8080"], Ok("example.org")),
        ("/", &["example.org."], Ok("example.org")),
        ("/", &["example.org.:80"], Ok("example.org")),
        ("/", &["[2001:DB8::1]:80"], Ok("[2001:db8::1]")),
        ("/", &["[::1]"], Ok("[::1]")),
        ("http://Example.org/", &[], Ok("example.org")),
        ("http://example.org:81/", &["example.org"], Ok("example.org")),
        ("http://example.org/", &["other.org"], Err(BadPath::Host)),
        ("http://example.org/", &[""], Err(BadPath::Host)),
        ("/", &["a", "a"], Err(BadPath::Host)),
        ("/", &["user@example.org"], Err(BadPath::Host)),
        ("http://user@example.org/", &[], Err(BadPath::Host)),
        ("/", &["a b"], Err(BadPath::Host)),
        ("/", &["a/b"], Err(BadPath::Host)),
        ("/", &["a,b"], Err(BadPath::Host)),
        ("/", &["[::1"], Err(BadPath::Host)),
        ("/", &["[::1]x"], Err(BadPath::Host)),
        ("/", &["example.org:80:80"], Err(BadPath::Host)),
        ("/", &["."], Err(BadPath::Host)),
    ];
    for (uri, said, expected) in rows {
        let uri: Uri = uri.parse().expect("a URI");
        let mut headers = HeaderMap::new();
        for value in said {
            headers.append(http::header::HOST, HeaderValue::from_str(value).expect("a value"));
        }
        assert_eq!(host(&uri, &headers).as_deref(), expected.as_deref(), "{uri} {said:?}");
    }
}

fn rules() -> impl Strategy<Value = Rules> {
    (any::<bool>(), prop_oneof![Just(EncodedSlash::Reject), Just(EncodedSlash::Both)])
        .prop_map(|(ignore_case, encoded_slash)| Rules { ignore_case, encoded_slash })
}

/// Paths of the pieces that matter.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("/"),
        Just("//"),
        Just("."),
        Just(".."),
        Just("%2e"),
        Just("%2E%2e"),
        Just("%2F"),
        Just("%5c"),
        Just("\\"),
        Just(";"),
        Just(";a=1"),
        Just("a"),
        Just("B"),
        Just("%61"),
        Just("%25"),
        Just("%3B"),
        Just("%40"),
        Just("%00"),
        Just("%"),
        Just("?"),
        Just("#"),
        Just("\u{e9}"),
    ];
    prop_oneof![
        3 => proptest::collection::vec(piece, 0..16).prop_map(|pieces| format!("/{}", pieces.concat())),
        1 => any::<String>(),
    ]
}

proptest! {
    #[test]
    fn what_is_forwarded_is_canonical(sent in hostile(), rules in rules()) {
        let Ok(path) = normalise(&sent, rules) else { return Ok(()) };
        let again = normalise(&path.forward, rules).expect("what is forwarded is a path");
        prop_assert_eq!(&again, &path);
        for text in [&*path.forward, &*path.matched, path.other.as_deref().unwrap_or("/")] {
            prop_assert!(text == "*" || text.starts_with('/'), "{text}");
            prop_assert!(!text.contains("//"), "{text}");
            prop_assert!(text.split('/').all(|segment| segment != "." && segment != ".."), "{text}");
            prop_assert!(text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#' && byte != b'?'), "{text}");
        }
        prop_assert!(!path.matched.contains(';'));
        prop_assert!(path.matched.len() <= 1 || !path.matched.ends_with('/'));
    }
}

/// `cargo test --release -p tope --lib http::path -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
#[expect(clippy::print_stdout, reason = "it is read by a person")]
#[expect(clippy::disallowed_methods, reason = "a measurement")]
fn how_long_a_path_takes() {
    for sent in ["/api/v1/users/12345/orders", "/api/./x/..//%6Cogin;v=1/", "/a%2Fb"] {
        let mut best = u128::MAX;
        for _ in 0..20 {
            let start = std::time::Instant::now();
            for _ in 0..100_000 {
                let _ = std::hint::black_box(normalise(std::hint::black_box(sent), LOOSE));
            }
            best = best.min(start.elapsed().as_nanos() / 100_000);
        }
        println!("{sent}: {best} ns");
    }
}
