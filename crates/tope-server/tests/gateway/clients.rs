//! What goes wrong in front of the gateway: requests that could be read in two ways, too large, too slow, too many.

use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full};

use crate::support::*;

fn answer(gateway: &Gateway, request: &str) -> u16 {
    let mut client = Peer::connect(gateway.address);
    client.send(request);
    status(&client.head())
}

#[test]
fn what_two_programs_could_read_in_two_ways_is_refused() {
    let upstream = Upstream::start(echo);
    let gateway = Gateway::to(&upstream.url());
    for bad in [
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n",
        "GET / HTTP/1.1\nHost: a\n\n",
        "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: b\rc\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: b\0c\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /\r\n\r\n",
        "\u{16}\u{3}\u{1}\0\r\n\r\n",
    ] {
        assert_eq!(answer(&gateway, bad), 400, "{}", bad.escape_debug());
    }
    assert_eq!(answer(&gateway, "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n"), 405);
    assert_eq!(upstream.connections(), 0, "nothing of it has reached the upstream");
}

#[test]
fn a_second_request_hidden_in_a_body_is_a_body() {
    let upstream = Upstream::start(echo);
    let gateway = Gateway::to(&upstream.url());
    let mut client = Peer::connect(gateway.address);
    let hidden = "GET /hidden HTTP/1.1\nHost: a\r\n\r\n";
    client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{hidden}", hidden.len()));
    client.send("GET /after HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(client.message().1.starts_with(b"POST / "));
    assert!(client.message().1.starts_with(b"GET /after "), "pipelined requests are answered in order");
}

#[test]
fn heads_that_are_too_large_are_refused() {
    let gateway = Gateway::to("demo");
    let head = |lines: &str| format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
    assert_eq!(answer(&gateway, &head(&format!("X: {}\r\n", "x".repeat(30 << 10)))), 200);
    assert_eq!(answer(&gateway, &head(&format!("X: {}\r\n", "x".repeat(33 << 10)))), 431);
    assert_eq!(answer(&gateway, &head(&"X: y\r\n".repeat(99))), 200);
    assert_eq!(answer(&gateway, &head(&"X: y\r\n".repeat(100))), 431);
    let long = ["-H", &format!("X: {}", "x".repeat(40 << 10))].map(str::to_owned);
    let (text, code) = curl(&[
        "--http2-prior-knowledge",
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}",
        &long[0],
        &long[1],
        &gateway.url("/"),
    ]);
    assert!(text.contains("431") || code != 0, "{text} {code}");
}

fn impatient() -> Options {
    let mut options = Options::default();
    options.settings.header = Duration::from_millis(300);
    options.settings.idle = Duration::from_millis(600);
    options
}

#[test]
fn a_head_that_drips_is_cut_off() {
    let gateway = Gateway::start(&["demo"], impatient());
    let begun = Instant::now();
    let mut slow = Peer::connect(gateway.address);
    slow.send("GET / HTTP/1.1\r\nHost: a\r\nX: ");
    let mut drip = slow.stream().try_clone().unwrap();
    let dripping = std::thread::spawn(move || {
        while std::io::Write::write_all(&mut drip, b"x").is_ok() && begun.elapsed() < LONG {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    assert_eq!(status(&slow.head()), 408);
    assert!(begun.elapsed() >= Duration::from_millis(300) && begun.elapsed() < LONG);
    drop(slow);
    dripping.join().unwrap();
    let mut silent = Peer::connect(gateway.address);
    assert!(silent.closed(), "a connection that says nothing");
}

#[test]
fn an_idle_connection_closes_and_a_busy_one_does_not() {
    let upstream = Upstream::start(|mut peer| {
        while !peer.head().is_empty() {
            std::thread::sleep(Duration::from_millis(1500));
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    let gateway = Gateway::start(&[&upstream.url()], impatient());
    let mut client = Peer::connect(gateway.address);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(status(&client.message().0), 200, "an upstream that takes longer than a client may");
    let begun = Instant::now();
    assert!(client.closed());
    assert!(begun.elapsed() >= Duration::from_millis(550), "{:?}", begun.elapsed());
}

#[test]
fn a_body_that_stops_is_cut_off() {
    let upstream = Upstream::start(|mut peer| drop(peer.rest()));
    let gateway = Gateway::start(&[&upstream.url()], impatient());
    let mut client = Peer::connect(gateway.address);
    client.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nsome");
    assert!(client.closed() || status(&client.head()) >= 400);
}

#[test]
fn a_client_that_reads_nothing_is_cut_off() {
    let upstream = Upstream::start(|mut peer| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
        let block = vec![0; 1 << 16];
        while std::io::Write::write_all(&mut peer.stream(), &block).is_ok() {}
    });
    let gateway = Gateway::start(&[&upstream.url()], impatient());
    let mut client = Peer::connect(gateway.address);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(status(&client.head()), 200);
    std::thread::sleep(Duration::from_secs(2));
    assert!(client.rest().len() < 100_000_000);
}

#[test]
fn a_body_is_asked_for_only_when_it_is_wanted() {
    let upstream = Upstream::start(|mut peer| {
        let (head, body) = peer.message();
        assert_eq!(body, b"abc", "{head}");
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    });
    let gateway = Gateway::to(&upstream.url());
    let ask =
        |path: &str| format!("PUT {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
    let mut client = Peer::connect(gateway.address);
    client.send(ask("/"));
    assert_eq!(status(&client.head()), 100);
    client.send("abc");
    assert_eq!(status(&client.head()), 200);
    let mut refused = Peer::connect(gateway.address);
    refused.send(ask("/deny"));
    assert_eq!(status(&refused.head()), 429, "the final answer comes first");
}

#[test]
fn connections_above_the_maximum_wait_their_turn() {
    let mut options = Options::default();
    options.settings.connections = 2;
    let gateway = Gateway::start(&["demo"], options);
    let ask = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut held: Vec<Peer> = (0..2).map(|_| Peer::connect(gateway.address)).collect();
    for one in &mut held {
        one.send(ask);
        assert_eq!(status(&one.message().0), 200);
    }
    let mut third = Peer::connect(gateway.address);
    third.send(ask);
    third.stream().set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert_eq!(third.head(), "", "not served yet");
    third.stream().set_read_timeout(Some(LONG)).unwrap();
    held.pop();
    assert_eq!(status(&third.head()), 200);
}

#[test]
fn an_http2_client_may_have_a_hundred_requests_open() {
    let gateway = Gateway::to("demo");
    let mut client = Peer::connect(gateway.address);
    client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    let head = client.bytes(9);
    assert_eq!(head[3], 4, "SETTINGS");
    let settings = client.bytes(usize::from(u16::from_be_bytes([head[1], head[2]])));
    assert!(settings.chunks(6).any(|one| one == [0, 3, 0, 0, 0, 100]), "{settings:?}");
}

#[test]
fn an_answer_that_stands_still_is_cut_off() {
    let upstream = Upstream::start(|mut peer| {
        let head = peer.head();
        let kind = if head.contains("/events") { "text/event-stream" } else { "text/plain" };
        peer.send(format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\nContent-Length: 8\r\n\r\nsome"
        ));
        std::thread::sleep(Duration::from_millis(1500));
        peer.send("more");
        peer.rest();
    });
    let gateway = Gateway::start(&[&upstream.url()], impatient());
    for (version, code) in [("--http1.1", 18), ("--http2-prior-knowledge", 92)] {
        let (text, exit) = curl(&[version, &gateway.url("/")]);
        assert_eq!(exit, code, "{version}: {text}");
        assert_eq!(curl(&[version, &gateway.url("/events")]), ("somemore".to_owned(), 0), "{version}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_http2_client_that_takes_nothing_is_cut_off() {
    let (tell, left) = std::sync::mpsc::channel();
    let tell = std::sync::Mutex::new(tell);
    let upstream = Upstream::start(move |mut peer| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
        let block = vec![0; 1 << 16];
        while std::io::Write::write_all(&mut peer.stream(), &block).is_ok() {}
        tell.lock().unwrap().send(()).unwrap();
    });
    let gateway = Gateway::start(&[&upstream.url()], impatient());
    let mut client = http2(gateway.address, 1000).await;
    let request = http::Request::get("http://a/").body(Full::default()).unwrap();
    let response = client.send_request(request).await.unwrap();
    let waited = tokio::task::spawn_blocking(move || left.recv_timeout(Duration::from_secs(10)));
    waited.await.unwrap().expect("the upstream is let go");
    assert!(response.into_body().collect().await.is_err(), "it is not passed off as whole");
}
