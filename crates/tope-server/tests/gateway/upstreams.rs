//! What goes wrong behind the gateway, and how requests are kept from being sent twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use http::StatusCode;
use http_body_util::{BodyExt, Full};

use crate::support::*;

fn get(client: &mut Peer, path: &str) -> u16 {
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
    status(&client.message().0)
}

#[test]
fn connections_are_kept_and_used_again() {
    let upstream = Upstream::start(echo);
    let gateway = Gateway::to(&upstream.url());
    let mut client = Peer::connect(gateway.address);
    for _ in 0..50 {
        assert_eq!(get(&mut client, "/"), 200);
    }
    for _ in 0..10 {
        assert_eq!(get(&mut Peer::connect(gateway.address), "/"), 200);
    }
    assert_eq!(upstream.connections(), 1);
}

#[test]
fn an_upstream_may_be_killed_and_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let server = format!("listen 127.0.0.1:{port}; location / {{ return 200 here; }}");
    let gateway = Gateway::to(&format!("http://127.0.0.1:{port}"));
    let mut client = Peer::connect(gateway.address);
    for _ in 0..2 {
        let running = nginx(folder.path(), port, &server);
        assert_eq!(get(&mut client, "/"), 200);
        drop(running);
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        let (head, body) = client.message();
        assert_eq!((status(&head), field(&head, "content-type")), (502, Some("application/problem+json")), "{head}");
        let problem: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(problem["status"], 502);
    }
}

#[test]
fn what_does_not_answer_in_time_is_504() {
    let (tell, left) = std::sync::mpsc::channel();
    let tell = std::sync::Mutex::new(tell);
    let upstream = Upstream::start(move |mut peer| {
        peer.head();
        tell.lock().unwrap().send(peer.closed()).unwrap();
    });
    let options = Options { answer_within: Duration::from_millis(200), ..Options::default() };
    let gateway = Gateway::start(&[&upstream.url()], options);
    let mut client = Peer::connect(gateway.address);
    assert_eq!(get(&mut client, "/"), 504);
    assert!(left.recv_timeout(LONG).unwrap(), "the upstream's connection is closed");
    assert_eq!(get(&mut client, "/"), 504, "the client's connection is not");
}

#[test]
fn a_slow_upload_is_no_time_out() {
    let upstream = Upstream::start(|mut peer| {
        peer.message();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    });
    let options = Options { answer_within: Duration::from_millis(300), ..Options::default() };
    let gateway = Gateway::start(&[&upstream.url()], options);
    let mut client = Peer::connect(gateway.address);
    client.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n");
    for _ in 0..10 {
        std::thread::sleep(Duration::from_millis(100));
        client.send("x");
    }
    assert_eq!(status(&client.message().0), 200);
}

#[test]
fn a_connection_closed_while_idle_costs_nobody_a_request() {
    let (tell, closed) = std::sync::mpsc::channel();
    let tell = std::sync::Mutex::new(tell);
    let upstream = Upstream::start(move |mut peer| {
        // Says nothing of closing, and closes.
        peer.message();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        // Not by dropping it: a process that another test starts may hold a copy of it for a moment.
        peer.stream().shutdown(std::net::Shutdown::Both).unwrap();
        tell.lock().unwrap().send(()).unwrap();
    });
    let gateway = Gateway::to(&upstream.url());
    let mut client = Peer::connect(gateway.address);
    for number in 1..100 {
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
        assert_eq!(status(&client.message().0), 200, "request {number}");
        // The end is in the gateway's socket, and a refused request makes it look at its sockets once.
        closed.recv_timeout(LONG).unwrap();
        assert_eq!(get(&mut client, "/deny"), 429);
    }
}

/// A gateway that keeps one connection to an upstream that closes it under the next request. What the next request
/// gets, how many the upstream has read that it did not answer, and over how many connections.
fn closed_under(request: &str, answers_again: bool) -> (u16, usize, usize) {
    let unanswered = Arc::<AtomicUsize>::default();
    let (counted, served) = (Arc::clone(&unanswered), AtomicUsize::new(0));
    let upstream = Upstream::start(move |mut peer| {
        if served.fetch_add(1, SeqCst) == 0 || answers_again {
            peer.message();
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
        if !peer.message().0.is_empty() {
            counted.fetch_add(1, SeqCst);
        }
    });
    let gateway = Gateway::to(&upstream.url());
    let mut client = Peer::connect(gateway.address);
    assert_eq!(get(&mut client, "/"), 200);
    client.send(request);
    (status(&client.message().0), unanswered.load(SeqCst), upstream.connections())
}

#[test]
fn a_request_that_was_sent_and_could_change_something_is_never_sent_again() {
    for method in ["POST", "PUT", "PATCH", "DELETE", "PURGE"] {
        let request = format!("{method} / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(closed_under(&request, true), (502, 1, 1), "{method}");
    }
    let with_body = "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
    assert_eq!(closed_under(with_body, true), (502, 1, 1));
}

#[test]
fn a_request_that_changes_nothing_is_sent_once_more_when_a_kept_connection_closes_under_it() {
    let request = |method| format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n");
    for method in ["GET", "HEAD", "OPTIONS", "TRACE"] {
        assert_eq!(closed_under(&request(method), true), (200, 1, 2), "{method}");
    }
    // Not HEAD: the client here would wait for the body of its 502.
    for method in ["GET", "OPTIONS", "TRACE"] {
        assert_eq!(closed_under(&request(method), false), (502, 2, 2), "{method}: once, and not for ever");
    }
}

#[test]
fn a_fresh_connection_that_closes_is_not_tried_again() {
    let upstream = Upstream::start(|mut peer| {
        peer.message();
    });
    let gateway = Gateway::to(&upstream.url());
    assert_eq!(get(&mut Peer::connect(gateway.address), "/"), 502);
    assert_eq!(upstream.connections(), 1, "an upstream that can't answer is not asked twice");
}

#[test]
fn an_answer_that_breaks_off_is_not_passed_off_as_whole() {
    let upstream = Upstream::start(|mut peer| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbroken");
    });
    let gateway = Gateway::to(&upstream.url());
    assert_eq!(curl(&[&gateway.url("/")]).1, 18, "curl: transfer closed with outstanding data");
    assert_eq!(curl(&["--http2-prior-knowledge", &gateway.url("/")]).1, 92, "curl: the stream was reset");
}

#[test]
fn several_upstreams_take_turns_and_a_dead_one_is_passed_over() {
    let (one, two) = (Upstream::start(echo), Upstream::start(echo));
    let dead = format!("http://127.0.0.1:{}", free_port());
    let gateway = Gateway::start(&[&one.url(), &dead, &two.url()], Options::default());
    let mut client = Peer::connect(gateway.address);
    let mut hosts = std::collections::HashMap::new();
    for _ in 0..30 {
        client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        let (head, body) = client.message();
        assert_eq!(status(&head), 200, "{head}");
        let host = field(&String::from_utf8(body).unwrap(), "host").unwrap().to_owned();
        *hosts.entry(host).or_insert(0) += 1;
    }
    assert_eq!(hosts.len(), 2, "{hosts:?}");
    assert!(hosts.values().all(|&count| count >= 9), "{hosts:?}");
}

#[test]
fn whoever_leaves_takes_the_upstreams_work_along() {
    let (tell, left) = std::sync::mpsc::channel();
    let tell = std::sync::Mutex::new(tell);
    let upstream = Upstream::start(move |mut peer| {
        let head = peer.head();
        if head.starts_with("GET /answer") {
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome");
        }
        tell.lock().unwrap().send(peer.closed()).unwrap();
    });
    let gateway = Gateway::to(&upstream.url());
    for path in ["/wait", "/answer"] {
        let mut client = Peer::connect(gateway.address);
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        until("the upstream is asked", || upstream.connections() > 0);
        if path == "/answer" {
            assert_eq!(status(&client.head()), 200);
        }
        drop(client);
        assert!(left.recv_timeout(LONG).unwrap());
    }
}

#[test]
fn an_answer_before_the_end_of_the_request_is_passed_on() {
    let upstream = Upstream::start(|mut peer| {
        peer.head();
        peer.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig");
        peer.rest();
    });
    let gateway = Gateway::to(&upstream.url());
    let mut client = Peer::connect(gateway.address);
    client.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nbegin");
    let (head, body) = client.message();
    assert_eq!((status(&head), &body[..]), (413, &b"big"[..]));
}

#[test]
fn a_switch_that_nobody_asked_for_is_502() {
    let upstream = Upstream::start(|mut peer| {
        peer.head();
        peer.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n");
        peer.rest();
    });
    let gateway = Gateway::to(&upstream.url());
    assert_eq!(get(&mut Peer::connect(gateway.address), "/"), 502);
}

#[test]
fn an_answer_that_nobody_reads_holds_up_no_other() {
    let gateway = Gateway::to(&format!("h2c://{}", h2c()));
    let mut stalled: Vec<Peer> = (0..3).map(|_| Peer::connect(gateway.address)).collect();
    for one in &mut stalled {
        one.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(status(&one.head()), 200);
    }
    // Until the sockets are full.
    std::thread::sleep(Duration::from_millis(500));
    let mut other = Peer::connect(gateway.address);
    other.stream().set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    assert_eq!(get(&mut other, "/small"), 200);
}

#[test]
fn a_head_that_is_too_large_is_502() {
    let upstream = Upstream::start(|mut peer| {
        peer.head();
        let long = "x".repeat(100 << 10);
        peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: {long}\r\n\r\n"));
        peer.rest();
    });
    let gateway = Gateway::to(&upstream.url());
    assert_eq!(get(&mut Peer::connect(gateway.address), "/"), 502);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn to_head_our_own_answers_have_no_body() {
    let gateway = Gateway::to(&format!("http://127.0.0.1:{}", free_port()));
    let mut client = http2(gateway.address, 1 << 16).await;
    let request = http::Request::head("http://a/").body(Full::default()).unwrap();
    let response = client.send_request(request).await.unwrap();
    assert_eq!((response.status(), response.headers().contains_key("content-length")), (StatusCode::BAD_GATEWAY, true));
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes().len(), 0);
}
