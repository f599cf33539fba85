use std::path::PathBuf;

use super::*;

fn make(yaml: &str) -> Result<Settings, String> {
    let mut settings = None;
    let read = tope::policy::read_and(yaml, "policy.yaml", &(), |file, findings| {
        settings = Settings::compile(file, Path::new("etc/policy.yaml"), findings);
    });
    read.map_err(|errors| errors.to_string())?;
    Ok(settings.expect("a file that is right has settings"))
}

#[test]
fn what_is_not_said_is_safe() {
    let settings = make("limits: { all: { rate: 5/s } }\n").expect("good settings");
    assert_eq!(settings.listen, "127.0.0.1:8080".parse().expect("an address"));
    assert_eq!(settings.admin, "127.0.0.1:9080".parse().expect("an address"));
    let waits = [settings.header_timeout, settings.idle_timeout, settings.upstream_timeout];
    assert_eq!(waits.map(|wait| wait.as_secs()), [10, 60, 30]);
    assert_eq!((settings.access_log, settings.max_keys, settings.memory_file), (false, 1_000_000, None));
    assert!(settings.upstreams.is_empty());
}

#[test]
fn what_is_said_counts() {
    let settings = make(
        "listen: '[::]:80'\nupstream: ['http://a:1', 'h2c://[::1]:2/', 'http://b']\ntimeouts: { header: 1500ms }\n\
         admin: { listen: '[::1]:9' }\nlog: { access: json }\nmemory: { max_keys: 100k, file: state.tope }\n",
    )
    .expect("good settings");
    let host = |text: &str| text.parse().expect("a host");
    let upstreams = [Upstream::Http1(host("a:1")), Upstream::Http2(host("[::1]:2")), Upstream::Http1(host("b"))];
    assert_eq!(settings.upstreams, upstreams);
    assert_eq!(settings.listen, "[::]:80".parse().expect("an address"));
    assert_eq!(settings.header_timeout.as_millis(), 1_500);
    assert_eq!((settings.access_log, settings.max_keys), (true, 100_000));
    assert_eq!(settings.memory_file, Some(PathBuf::from("etc/state.tope")));
    assert_eq!(make("upstream: demo\n").expect("good settings").upstreams, [Upstream::Demo]);
}

#[test]
fn what_is_wrong_says_where_and_what_to_do() {
    let cases = [
        ("listen: 8080", "1:9: `8080` is no address to listen on"),
        ("listen: ':8080'", "1:10: `:8080` does not say on which address"),
        ("listen: localhost:8080", "1:9: `localhost:8080` is no address to listen on"),
        ("admin: { listen: 0.0.0.0:9080 }", "1:18: `0.0.0.0:9080` can be reached from elsewhere"),
        ("admin: { listen: '[::ffff:10.0.0.1]:1' }", "1:19: `[::ffff:10.0.0.1]:1` can be reached from elsewhere"),
        (
            "memory: { file: policy.yaml }",
            "1:17: the buckets would be written over a file that this policy is read from",
        ),
        ("memory: { file: ./policy.yaml }", "1:17: the buckets would be written over"),
        ("admin: { token: hunter2 }", "1:17: `token` is not in this version"),
        ("upstream: https://a", "1:11: https to an upstream is not in this version"),
        ("upstream: ftp://a", "1:11: `ftp` is no scheme of an upstream"),
        ("upstream: 127.0.0.1:80", "1:11: an upstream begins with http:// or h2c://"),
        ("upstream: http://a/api", "1:11: an upstream has no path, and this one has `/api`"),
        ("upstream: http://a?x", "1:11: an upstream has no path, and this one has `?x`"),
        ("upstream: http://", "1:11: the upstream's host can't be read"),
        ("upstream: http://a b", "1:11: the upstream's host can't be read"),
        ("upstream: http://a:0", "1:11: the upstream's port does not lie between 1 and 65535"),
        ("upstream: 'http://a:'", "1:12: the upstream's port does not lie between 1 and 65535"),
        ("upstream: 'http://[::1]:70000'", "1:12: the upstream's port does not lie between 1 and 65535"),
        ("upstream: ['http://a', demo]", "1:24: `demo` stands among other upstreams"),
        ("timeouts: { idle: 0s }", "1:19: a time-out lies between 1 ms and 24 hours"),
        ("memory: { max_keys: 0 }", "1:21: `max_keys` lies between 1 and 4,294,967,296"),
    ];
    for (yaml, message) in cases {
        let wrong = make(yaml).expect_err(yaml);
        assert!(wrong.starts_with(&format!("policy.yaml:{message}")) && wrong.contains("\nhint: "), "{yaml}: {wrong}");
        assert!(!wrong.contains("hunter2"), "{wrong}");
    }
    let secret = make("upstream: http://user:hunter2@a").expect_err("a password");
    assert!(secret.contains("an upstream has no user or password"), "{secret}");
}
