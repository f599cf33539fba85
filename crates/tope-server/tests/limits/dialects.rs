//! The same verdict to other ears: HEAD, pages of browsers, gRPC clients, readers of other fields.

use crate::client::{ask, get};
use crate::support::Gateway;
use crate::upstream::Upstream;

#[test]
fn head_is_told_the_same_without_a_body() {
    let gateway = Gateway::start("limits: { api: { by: ip, match: GET /a, rate: 2/h } }\n");
    let mut caller = gateway.caller();
    let within = [caller.ask(&get("/a")), caller.ask(&ask("HEAD", "/a"))];
    let above = [caller.ask(&get("/a")), caller.ask(&ask("HEAD", "/a"))];
    for ([with_body, head], status) in [(&within, 200), (&above, 429)] {
        assert_eq!((with_body.status, head.status), (status, status));
        assert_eq!(with_body.limit_fields(), head.limit_fields());
        assert_eq!(with_body.field("Content-Type"), head.field("Content-Type"));
        assert!(head.body.is_empty() && !with_body.body.is_empty());
    }
    assert_eq!(above[0].field("Content-Length"), above[1].field("Content-Length"));
    // A body that came after all would be read as the next answer.
    assert_eq!(caller.ask(&get("/b")).status, 200);
}

#[test]
fn a_preflight_passes_above_the_budget_of_the_user() {
    let gateway = Gateway::start(
        "clients: { header: X-Api-Key, keys: { k: { name: acme } } }\n\
         limits: { api: { by: client, rate: 1/h }, all: { by: ip, match: /flood, rate: 2/h } }\n\
         cors: { origins: [\"https://app.example.org\"] }\n",
    );
    let mut caller = gateway.caller();
    let user = get("/a").with("X-Api-Key", "k").with("Origin", "https://app.example.org");
    let preflight = |target| {
        let asked = ask("OPTIONS", target).with("Origin", "https://app.example.org");
        asked.with("Access-Control-Request-Method", "GET")
    };
    assert_eq!(caller.ask(&user).status, 200);
    let refused = caller.ask(&user);
    assert_eq!(refused.status, 429);
    assert_eq!(refused.field("Access-Control-Allow-Origin"), Some("https://app.example.org"));
    assert_eq!(refused.field("Vary"), Some("Origin"));
    let exposed = refused.field("Access-Control-Expose-Headers").unwrap();
    for name in ["Retry-After", "RateLimit,", "RateLimit-Policy", "RateLimit-Remaining"] {
        assert!(exposed.contains(name), "{exposed}");
    }
    for _ in 0..3 {
        assert_eq!(caller.ask(&preflight("/a")).status, 200, "a preflight carries no key and is not the user's");
    }
    // Limits of addresses count it, or it would be a way round them.
    let flood: Vec<u16> = (0..3).map(|_| caller.ask(&preflight("/flood")).status).collect();
    assert_eq!(flood, [200, 200, 429]);
    let elsewhere = caller.ask(&get("/a").with("X-Api-Key", "k").with("Origin", "https://evil.example.org"));
    assert_eq!((elsewhere.status, elsewhere.field("Access-Control-Allow-Origin")), (429, None));
}

#[test]
fn a_grpc_client_is_told_in_grpc() {
    let gateway = Gateway::start("limits: { api: { by: ip, rate: 1/h } }\n");
    let mut caller = gateway.caller();
    let call = ask("POST", "/pkg.Service/Method").with("Content-Type", "application/grpc+proto").body(b"");
    assert_eq!(caller.ask(&call).status, 200);
    let refused = caller.ask(&call);
    assert_eq!((refused.status, refused.field("grpc-status")), (200, Some("8")));
    assert_eq!(refused.field("content-type"), Some("application/grpc+proto"));
    assert!(refused.field("grpc-message").unwrap().contains("api"), "{refused:?}");
    assert!(refused.number("retry-after").unwrap() > 3590 && refused.body.is_empty());
    assert_eq!(refused.field("grpc-retry-pushback-ms"), Some("-1"), "an hour is for the application to wait");
    let details = refused.field("grpc-status-details-bin").unwrap();
    // "type.googleapis.com/google.rpc.RetryInfo" at each of the three phases that base64 can have.
    let retry_info = ["nb29nbGUucnBjLlJldHJ5SW5mb", "dvb2dsZS5ycGMuUmV0cnlJbmZv", "Z29vZ2xlLnJwYy5SZXRyeUluZm"];
    assert!(retry_info.iter().any(|phase| details.contains(phase)), "{details}");
}

#[test]
fn each_dialect_is_sent_when_asked_for_and_only_then() {
    let fields = |headers: &str, target: &str| {
        let limits = "limits: { api: { by: ip, rate: 1/h } }\n";
        let gateway = Gateway::start(&format!("headers: {headers}\n{limits}"));
        let mut caller = gateway.caller();
        [caller.ask(&get(target)), caller.ask(&get(target))].map(|answer| (answer.status, answer.limit_fields()))
    };
    let x = ["limit", "remaining", "reset", "resource", "used"].map(|word| format!("x-ratelimit-{word}"));
    let [allowed, refused] = fields("x-ratelimit", "/a");
    assert_eq!(allowed, (200, x.to_vec()));
    assert_eq!(refused, (429, [&["retry-after".to_owned()], &x[..]].concat()));
    let [allowed, refused] = fields("none", "/a");
    assert_eq!((allowed, refused), ((200, vec![]), (429, vec!["retry-after".into()])));
    let [allowed, _] = fields("[draft]", "/a");
    assert_eq!(allowed, (200, vec!["ratelimit".into(), "ratelimit-policy".into()]));
}

#[test]
fn an_upstream_s_own_fields_stay_and_the_tighter_triple_goes_out() {
    let upstream = Upstream::saying(
        "RateLimit: \"theirs\";r=1;t=9\r\nRateLimit-Policy: \"theirs\";q=5\r\n\
         RateLimit-Limit: 5\r\nRateLimit-Remaining: 1\r\nRateLimit-Reset: 9\r\n",
    );
    let policy = format!("{}limits: {{ api: {{ by: ip, rate: 3/h fixed-window }} }}\n", upstream.line());
    let gateway = Gateway::start(&policy);
    let mut caller = gateway.caller();
    let triples: Vec<_> = (0..3)
        .map(|_| {
            let answer = caller.ask(&get("/a"));
            let draft = answer.all("RateLimit").join(", ");
            assert!(draft.starts_with("\"api\";r=") && draft.ends_with(", \"theirs\";r=1;t=9"), "{draft}");
            assert_eq!(answer.all("RateLimit-Policy").join(", "), "\"api\";q=3;w=3600, \"theirs\";q=5");
            (answer.number("RateLimit-Limit").unwrap(), answer.number("RateLimit-Remaining").unwrap())
        })
        .collect();
    assert_eq!(triples, [(5, 1), (3, 1), (3, 0)], "theirs has less, a tie is ours, ours has less");
    let refused = caller.ask(&get("/a"));
    assert_eq!((refused.status, refused.all("RateLimit").len(), upstream.requests()), (429, 1, 3));
}

#[test]
fn shadow_is_never_told_and_never_refuses() {
    let gateway = Gateway::start("limits: { quiet: { by: ip, match: /a, rate: 1/h, mode: shadow } }\n");
    let mut caller = gateway.caller();
    for _ in 0..3 {
        let answer = caller.ask(&get("/a"));
        assert_eq!((answer.status, answer.limit_fields()), (200, vec![]));
    }
    assert_eq!(gateway.metric("tope_decisions_total{limit=\"quiet\",result=\"allow\"}"), 1);
    assert_eq!(gateway.metric("tope_decisions_total{limit=\"quiet\",result=\"shadow_deny\"}"), 2);
}

#[test]
fn never_is_403_and_names_no_wait() {
    let gateway = Gateway::start(
        "limits: { closed: { match: /off, rate: none }, big: { match: /big, by: ip, rate: 5/h, cost: 6 } }\n",
    );
    let mut caller = gateway.caller();
    for (target, limit) in [("/off", "closed"), ("/big", "big")] {
        let answer = caller.ask(&get(target));
        assert_eq!((answer.status, answer.field("Retry-After")), (403, None), "{target}");
        assert_eq!(answer.json()["violated-policies"], serde_json::json!([limit]));
        assert_eq!(answer.field("Cache-Control"), Some("no-store"));
        assert_eq!(gateway.metric(&format!("tope_decisions_total{{limit=\"{limit}\",result=\"never\"}}")), 1);
    }
}

#[test]
fn a_limit_can_refuse_with_503() {
    let gateway = Gateway::start("limits: { ceiling: { rate: 1/h, reject: { status: 503 } } }\n");
    let mut caller = gateway.caller();
    assert_eq!(caller.ask(&get("/")).status, 200);
    let refused = caller.ask(&get("/"));
    assert_eq!(refused.status, 503);
    assert!(refused.number("Retry-After").unwrap() > 3590);
    assert_eq!(refused.json()["type"], "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity");
}
