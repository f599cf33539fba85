//! How it stops: a refused upload hears why, what is in flight is finished, nothing new is begun.

use std::net::TcpStream;
use std::time::Duration;

use crate::support::*;

#[test]
fn a_refused_upload_reads_its_answer_and_not_a_reset() {
    let folder = tempfile::tempdir().unwrap();
    let large = folder.path().join("large");
    std::fs::File::create(&large).unwrap().set_len(100 << 20).unwrap();
    let upstream = Upstream::start(echo);
    let gateway = Gateway::to(&upstream.url());
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        for expect in ["Expect:", "Expect: 100-continue"] {
            let file = large.to_str().unwrap();
            let (text, code) =
                curl(&[version, "-H", expect, "-w", " %{http_code} %{size_upload}", "-T", file, &gateway.url("/deny")]);
            assert!(text.starts_with("refused 429 "), "{version} {expect}: {text} {code}");
            let uploaded: u64 = text.split(' ').nth(2).unwrap().trim().parse().unwrap();
            assert!(uploaded < 50 << 20, "{uploaded}");
        }
    }
    let mut rude = Peer::connect(gateway.address);
    rude.send("PUT /deny HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n");
    let mut sent = 0;
    let block = vec![0; 1 << 16];
    while sent < 100_000_000 && std::io::Write::write_all(&mut rude.stream(), &block).is_ok() {
        sent += block.len();
    }
    assert!(sent < 50_000_000, "a client that never stops is left: {sent}");
    assert_eq!(upstream.connections(), 0);
}

#[test]
fn what_is_in_flight_is_finished_and_nothing_new_begun() {
    let (go, wait) = std::sync::mpsc::sync_channel::<()>(0);
    let wait = std::sync::Mutex::new(wait);
    let upstream = Upstream::start(move |mut peer| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nfirst");
        wait.lock().unwrap().recv_timeout(LONG).unwrap();
        peer.send(" later");
    });
    let mut gateway = Gateway::to(&upstream.url());
    let mut idle = Peer::connect(gateway.address);
    idle.send("GET /deny HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(status(&idle.message().0), 429);
    let mut busy = Peer::connect(gateway.address);
    busy.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(status(&busy.head()), 200);
    assert_eq!(busy.bytes(5), b"first");

    gateway.shutdown.drain();
    assert!(idle.closed(), "an idle connection is closed at once");
    until("new connections are refused", || TcpStream::connect(gateway.address).is_err());
    assert!(!gateway.ended());
    go.send(()).unwrap();
    assert_eq!(busy.bytes(6), b" later");
    assert!(busy.closed());
    gateway.join();
}

#[test]
fn http2_in_flight_is_finished_too() {
    let (go, wait) = std::sync::mpsc::sync_channel::<()>(0);
    let wait = std::sync::Mutex::new(wait);
    let upstream = Upstream::start(move |mut peer| {
        peer.head();
        wait.lock().unwrap().recv_timeout(LONG).unwrap();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone");
    });
    let mut gateway = Gateway::to(&upstream.url());
    let url = gateway.url("/");
    let client = std::thread::spawn(move || curl(&["--http2-prior-knowledge", &url]));
    until("the upstream is asked", || upstream.connections() == 1);
    gateway.shutdown.drain();
    until("new connections are refused", || TcpStream::connect(gateway.address).is_err());
    go.send(()).unwrap();
    assert_eq!(client.join().unwrap(), ("done".to_owned(), 0));
    gateway.join();
}

#[test]
fn a_drain_is_bounded_and_a_second_signal_ends_it() {
    let upstream = Upstream::start(|mut peer| drop(peer.rest()));
    for second in [false, true] {
        let mut options = Options::default();
        options.settings.drain = if second { LONG * 10 } else { Duration::from_millis(300) };
        let mut gateway = Gateway::start(&[&upstream.url()], options);
        let before = upstream.connections();
        let mut stuck = Peer::connect(gateway.address);
        stuck.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        until("the upstream is asked", || upstream.connections() > before);
        gateway.shutdown.drain();
        if second {
            gateway.shutdown.end();
        }
        gateway.join();
        assert!(stuck.closed());
    }
}

#[test]
fn workers_share_the_load_and_end_together() {
    let mut options = Options::default();
    options.settings.workers = 3;
    let mut gateway = Gateway::start(&["demo"], options);
    for _ in 0..50 {
        let mut client = Peer::connect(gateway.address);
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(status(&client.message().0), 200);
    }
    gateway.shutdown.drain();
    gateway.join();
}

#[test]
fn who_has_asked_before_the_end_is_answered() {
    let mut gateway = Gateway::to("demo");
    let ask = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut kept: Vec<Peer> = (0..20).map(|_| Peer::connect(gateway.address)).collect();
    for one in &mut kept {
        one.send(ask);
        assert_eq!(status(&one.message().0), 200);
    }
    Peer::connect(gateway.address).send("GET /freeze HTTP/1.1\r\nHost: a\r\n\r\n");
    std::thread::sleep(Duration::from_millis(200));
    let mut fresh: Vec<Peer> = (0..300).map(|_| Peer::connect(gateway.address)).collect();
    for one in fresh.iter_mut().chain(&mut kept) {
        one.send(ask);
    }
    gateway.shutdown.drain();
    let answered = fresh.iter_mut().map(|one| status(&one.message().0)).filter(|&status| status == 200).count();
    assert_eq!(answered, 300);
    let answered = kept.iter_mut().map(|one| status(&one.message().0)).filter(|&status| status == 200).count();
    assert_eq!(answered, 20, "on connections that were kept");
    assert!(fresh.iter_mut().all(Peer::closed));
    gateway.join();
}

#[test]
fn a_tunnel_keeps_its_place_and_is_waited_for() {
    let upstream = Upstream::start(|mut peer| {
        peer.head();
        peer.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n");
        let said = peer.bytes(1);
        peer.send(said);
    });
    let mut options = Options::default();
    options.settings.connections = 1;
    let mut gateway = Gateway::start(&[&upstream.url()], options);
    let mut tunnel = Peer::connect(gateway.address);
    tunnel.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
    assert_eq!(status(&tunnel.head()), 101);
    let mut other = Peer::connect(gateway.address);
    other.send("GET /deny HTTP/1.1\r\nHost: a\r\n\r\n");
    other.stream().set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert_eq!(other.head(), "", "there is no place");
    gateway.shutdown.drain();
    std::thread::sleep(Duration::from_millis(300));
    assert!(!gateway.ended());
    tunnel.send("x");
    assert_eq!(tunnel.bytes(1), b"x");
    drop(tunnel);
    gateway.join();
}
