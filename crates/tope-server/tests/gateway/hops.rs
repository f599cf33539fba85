//! What changes on the way: fields of one hop, what is said of the caller, versions and paths.

use http_body_util::{BodyExt, Full};

use crate::support::*;

fn echoed(gateway: &Gateway, lines: &str) -> String {
    let mut client = Peer::connect(gateway.address);
    client.send(format!("GET /a?b=c HTTP/1.1\r\nHost: api.example\r\n{lines}\r\n"));
    let (head, body) = client.message();
    assert_eq!(status(&head), 200, "{head}");
    String::from_utf8(body).unwrap()
}

#[test]
fn fields_of_one_hop_and_forged_identities_stop_here() {
    let upstream = Upstream::start(echo);
    let gateway = Gateway::to(&upstream.url());
    let seen = echoed(
        &gateway,
        "Connection: close, X-Secret\r\nX-Secret: 1\r\nKeep-Alive: 5\r\nProxy-Authorization: x\r\nTE: gzip\r\n\
         X-Tope-Client: root\r\nX-Tope-Plan: enterprise\r\nX-Forwarded-For: 10.0.0.1\r\nForwarded: for=10.0.0.1\r\n\
         X-Forwarded-Proto: https\r\nX-Forwarded-Port: 443\r\nX-Forwarded-User: root\r\nAccept: */*\r\n",
    );
    let expected = "GET /a?b=c HTTP/1.1\r\nhost: api.example\r\naccept: */*\r\nx-forwarded-for: 127.0.0.1\r\n\
                    x-forwarded-proto: http\r\nx-forwarded-host: api.example\r\nx-tope-client: acme\r\n\r\n";
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&seen), sorted(expected));
}

#[test]
fn an_identity_forged_by_an_underscore_stops_here() {
    let upstream = Upstream::start(echo);
    for trusted_peer in [false, true] {
        let gateway = Gateway::start(&[&upstream.url()], Options { trusted_peer, ..Options::default() });
        let seen = echoed(
            &gateway,
            "X_Tope_Client: root\r\nX-Tope_Client: root\r\nx_tope-plan: root\r\nX_Forwarded_For: root\r\n\
             X-Forwarded_Port: root\r\nX_Real_IP: root\r\nmy_own: kept\r\n",
        );
        assert!(!seen.contains("root"), "{seen}");
        assert_eq!((field(&seen, "my_own"), field(&seen, "x-tope-client")), (Some("kept"), Some("acme")));
    }
}

#[test]
fn a_trusted_peer_is_added_to() {
    let upstream = Upstream::start(echo);
    let options = Options { trusted_peer: true, ..Options::default() };
    let gateway = Gateway::start(&[&upstream.url()], options);
    let seen =
        echoed(&gateway, "X-Forwarded-For: 203.0.113.7\r\nX-Forwarded-Proto: https\r\nX-Forwarded-For: 10.1.1.1\r\n");
    assert_eq!(field(&seen, "x-forwarded-for"), Some("203.0.113.7, 10.1.1.1, 127.0.0.1"));
    assert_eq!(field(&seen, "x-forwarded-proto"), Some("https"));
    assert_eq!(field(&seen, "x-tope-client"), Some("acme"));
}

#[test]
fn the_path_that_was_matched_is_forwarded_with_the_query() {
    let upstream = Upstream::start(echo);
    let options = Options { forward_path: Some("/clean".into()), ..Options::default() };
    let gateway = Gateway::start(&[&upstream.url()], options);
    assert!(echoed(&gateway, "").starts_with("GET /clean?b=c HTTP/1.1\r\n"));
}

#[test]
fn an_answers_own_hop_stays_behind() {
    let upstream = Upstream::start(|mut peer| {
        while !peer.head().is_empty() {
            peer.send("HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nX-End: 1\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let gateway = Gateway::to(&upstream.url());
    let mut client = Peer::connect(gateway.address);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let (head, _) = client.message();
    assert_eq!((field(&head, "x-hop"), field(&head, "keep-alive"), field(&head, "connection")), (None, None, None));
    assert_eq!(field(&head, "x-end"), Some("1"));
}

#[test]
fn http2_clients_and_old_ones_reach_an_http1_upstream() {
    let upstream = Upstream::start(echo);
    let gateway = Gateway::to(&upstream.url());
    let (seen, code) = curl(&["--http2-prior-knowledge", "-H", "Host: h2.example", &gateway.url("/x")]);
    assert_eq!(code, 0, "{seen}");
    assert!(seen.starts_with("GET /x HTTP/1.1\r\n"), "{seen}");
    assert_eq!(field(&seen, "host"), Some("h2.example"));
    let mut old = Peer::connect(gateway.address);
    old.send("GET /x HTTP/1.0\r\n\r\n");
    let all = String::from_utf8(old.rest()).unwrap();
    assert!(all.starts_with("HTTP/1.0 200") || all.starts_with("HTTP/1.1 200"), "{all}");
    assert!(all.contains(&format!("host: {}", upstream.address)), "{all}");
    let mut absolute = Peer::connect(gateway.address);
    absolute.send("GET http://abs.example/y?z HTTP/1.1\r\nHost: other\r\n\r\n");
    let seen = String::from_utf8(absolute.message().1).unwrap();
    assert!(seen.starts_with("GET /y?z HTTP/1.1\r\n"), "{seen}");
    assert_eq!(field(&seen, "host"), Some("abs.example"));
}

#[test]
fn the_sample_answers_without_an_upstream() {
    let gateway = Gateway::to("demo");
    let (text, _) = curl(&["-X", "PURGE", &gateway.url("/a%22b?c")]);
    let json: serde_json::Value = serde_json::from_str(&text).expect(&text);
    assert_eq!((&json["method"], &json["path"], &json["client"]), (&"PURGE".into(), &"/a%22b".into(), &"acme".into()));
    assert_eq!(json["plan"], serde_json::Value::Null);
    let (head, code) = curl(&["-I", &gateway.url("/")]);
    assert_eq!((status(&head), code), (200, 0), "{head}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_crumbs_of_a_cookie_are_one_line() {
    let upstream = Upstream::start(echo);
    let gateway = Gateway::to(&upstream.url());
    let mut client = http2(gateway.address, 1 << 16).await;
    let request = http::Request::get("http://a/").header("cookie", "a=1").header("cookie", "b=2");
    let response = client.send_request(request.body(Full::default()).unwrap()).await.unwrap();
    let seen = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(field(std::str::from_utf8(&seen).unwrap(), "cookie"), Some("a=1; b=2"));
}

#[test]
fn an_identity_forged_in_trailers_stops_here() {
    let upstream = Upstream::start(|mut peer| {
        peer.head();
        let trailers = peer.head();
        peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{trailers}", trailers.len()));
    });
    let gateway = Gateway::to(&upstream.url());
    let mut client = Peer::connect(gateway.address);
    client.send(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Tope-Client, X_Tope_Plan, X-Sum\r\n\r\n\
         0\r\nX-Tope-Client: root\r\nX_Tope_Plan: root\r\nX-Sum: 1\r\n\r\n",
    );
    let seen = String::from_utf8(client.message().1).unwrap();
    assert_eq!((field(&seen, "x-sum"), seen.contains("root")), (Some("1"), false), "{seen}");
}
