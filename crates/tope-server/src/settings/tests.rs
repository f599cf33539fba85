use super::*;

fn said<T>(value: T) -> Said<T> {
    Said { value, line: 3, column: 11 }
}

fn make(written: &Written<'_>) -> Result<Settings, String> {
    Settings::new(written, Path::new("etc/policy.yaml")).map_err(|wrong| wrong.to_string())
}

#[test]
fn what_is_not_said_is_safe() {
    let settings = make(&Written::default()).expect("good settings");
    assert_eq!(settings.listen, "127.0.0.1:8080".parse().expect("good settings"));
    assert_eq!(settings.admin, "127.0.0.1:9080".parse().expect("good settings"));
    let waits = [settings.header_timeout, settings.idle_timeout, settings.upstream_timeout];
    assert_eq!(waits.map(|wait| wait.as_secs()), [10, 60, 30]);
    assert_eq!((settings.access_log, settings.max_keys, settings.memory_file), (false, 1_000_000, None));
    assert!(settings.upstreams.is_empty());
}

#[test]
fn what_is_said_counts() {
    let written = Written {
        listen: Some(said("[::]:80")),
        upstream: vec![said("http://a:1"), said("h2c://[::1]:2/"), said("http://b")],
        header_us: Some(said(1_500_000)),
        admin: Some(said("[::1]:9")),
        access_log: true,
        max_keys: Some(said(100_000)),
        memory_file: Some("state.tope"),
        ..Written::default()
    };
    let settings = make(&written).expect("good settings");
    let host = |text: &str| text.parse().expect("good settings");
    let upstreams = [Upstream::Http1(host("a:1")), Upstream::Http2(host("[::1]:2")), Upstream::Http1(host("b"))];
    assert_eq!(settings.upstreams, upstreams);
    assert_eq!(settings.header_timeout.as_millis(), 1_500);
    assert_eq!(settings.memory_file.as_deref(), Some(Path::new("etc/state.tope")));
    let demo = make(&Written { upstream: vec![said("demo")], ..Written::default() }).expect("good settings");
    assert_eq!(demo.upstreams, [Upstream::Demo]);
}

#[test]
fn what_is_wrong_says_where_and_what_to_do() {
    let upstream = |text| Written { upstream: vec![said(text)], ..Written::default() };
    let listen = |text| Written { listen: Some(said(text)), ..Written::default() };
    let admin = |text| Written { admin: Some(said(text)), ..Written::default() };
    let cases = [
        (listen("8080"), "`8080` is no address to listen on"),
        (listen(":8080"), "`:8080` does not say on which address"),
        (listen("localhost:8080"), "`localhost:8080` is no address to listen on"),
        (admin("0.0.0.0:9080"), "`0.0.0.0:9080` can be reached from elsewhere, and this version can't guard it"),
        (
            admin("[::ffff:10.0.0.1]:1"),
            "`[::ffff:10.0.0.1]:1` can be reached from elsewhere, and this version can't guard it",
        ),
        (Written { admin_token: Some(said(())), ..Written::default() }, "`token` is not in this version"),
        (upstream("https://a"), "https to an upstream is not in this version"),
        (upstream("ftp://a"), "`ftp` is no scheme of an upstream"),
        (upstream("127.0.0.1:80"), "an upstream begins with http:// or h2c://"),
        (upstream("http://a/api"), "an upstream has no path, and this one has `/api`"),
        (upstream("http://a?x"), "an upstream has no path, and this one has `?x`"),
        (upstream("http://"), "the upstream's host can't be read"),
        (upstream("http://a b"), "the upstream's host can't be read"),
        (upstream("http://a:0"), "the upstream's port does not lie between 1 and 65535"),
        (upstream("http://a:"), "the upstream's port does not lie between 1 and 65535"),
        (upstream("http://[::1]:70000"), "the upstream's port does not lie between 1 and 65535"),
        (
            Written { upstream: vec![said("http://a"), said("demo")], ..Written::default() },
            "`demo` stands among other upstreams",
        ),
        (Written { idle_us: Some(said(0)), ..Written::default() }, "a time-out lies between 1 ms and 24 hours"),
        (Written { max_keys: Some(said(0)), ..Written::default() }, "`max_keys` lies between 1 and 4,294,967,296"),
    ];
    for (written, message) in cases {
        let wrong = make(&written).expect_err("it is wrong");
        assert!(wrong.starts_with(&format!("etc/policy.yaml:3:11: {message}\nhint: ")), "{wrong}");
    }
    let secret = make(&upstream("http://user:hunter2@a")).expect_err("it is wrong");
    assert!(!secret.contains("hunter2") && !secret.contains("user:"), "{secret}");
}
