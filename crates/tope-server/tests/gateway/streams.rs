//! What passes: large bodies both ways, both protocols on both sides, trailers, upgrades.

use std::io::{Read, Write};
use std::path::Path;
use std::pin::Pin;
use std::process::Command;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use sha2::{Digest, Sha256};

use crate::support::*;

const LARGE: usize = 200 << 20;

/// Writes bytes that no compressor or off-by-one leaves the same.
fn noise(path: &Path, length: usize) {
    let mut out = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    let mut x = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..length / 8 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        out.write_all(&x.to_le_bytes()).unwrap();
    }
}

fn sum(path: &Path) -> Vec<u8> {
    let (mut file, mut hash) = (std::fs::File::open(path).unwrap(), Sha256::new());
    let mut block = vec![0; 1 << 16];
    loop {
        match file.read(&mut block).unwrap() {
            0 => return hash.finalize().to_vec(),
            n => hash.update(&block[..n]),
        }
    }
}

fn peak_mib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() / 1024
}

#[test]
fn large_downloads_and_uploads_are_streamed_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (port, h2port) = (free_port(), free_port());
    let at = folder.path().display();
    noise(&folder.path().join("large"), LARGE);
    let server = |listen: String| format!("listen {listen}; root {at}; location /put/ {{ dav_methods PUT; }}");
    let _http1 = nginx(folder.path(), port, &server(format!("127.0.0.1:{port}")));
    let _http2 = nginx(folder.path(), h2port, &server(format!("127.0.0.1:{h2port} http2")));
    std::fs::create_dir(folder.path().join("put")).unwrap();
    let expected = sum(&folder.path().join("large"));
    for upstream in [format!("http://127.0.0.1:{port}"), format!("h2c://127.0.0.1:{h2port}")] {
        let gateway = Gateway::to(&upstream);
        for version in ["--http1.1", "--http2-prior-knowledge"] {
            let out = folder.path().join("got");
            let got = curl(&[version, "-f", "-o", out.to_str().unwrap(), &gateway.url("/large")]);
            assert_eq!(got, (String::new(), 0), "{upstream} {version}");
            assert_eq!(sum(&out), expected, "{upstream} {version}");
            let large = folder.path().join("large");
            let put = curl(&[version, "-f", "-T", large.to_str().unwrap(), &gateway.url("/put/x")]);
            assert_eq!(put.1, 0, "{upstream} {version} {}", put.0);
            assert_eq!(sum(&folder.path().join("put/x")), expected, "{upstream} {version}");
        }
    }
    assert!(peak_mib() < 150, "{} MiB", peak_mib());
}

#[test]
fn h2load_gets_every_answer() {
    let upstream = Upstream::start(echo);
    let gateway = Gateway::to(&upstream.url());
    let out = Command::new("h2load").args(["-n", "3000", "-c", "4", "-m", "50", &gateway.url("/")]).output();
    let out = String::from_utf8(out.expect("this test needs h2load: apt-get install nghttp2-client").stdout).unwrap();
    assert!(out.contains("3000 done, 3000 succeeded, 0 failed, 0 errored, 0 timeout"), "{out}");
}

/// A gRPC-like upstream over HTTP/2: says what it was asked, echoes the body, ends with trailers.
async fn grpc(request: http::Request<Incoming>) -> Result<http::Response<Frames>, hyper::Error> {
    let asked = format!(
        "{} {:?} {:?} {:?}",
        request.uri(),
        request.version(),
        request.headers().get("te"),
        request.headers().get("host")
    );
    let body = request.into_body().collect().await?;
    let trailers = [("grpc-status", "0"), ("grpc-message", "")];
    let trailers = trailers.iter().map(|&(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
    let frames = [Frame::data(body.to_bytes()), Frame::trailers(trailers)];
    let mut response = http::Response::new(Frames(frames.into_iter()));
    response.headers_mut().insert("asked", asked.parse().unwrap());
    Ok(response)
}

struct Frames(std::array::IntoIter<Frame<Bytes>, 2>);

impl hyper::body::Body for Frames {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Poll::Ready(self.0.next().map(Ok))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn grpc_passes_with_its_trailers() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let stream = listener.accept().await.unwrap().0;
            let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(connection.serve_connection(TokioIo::new(stream), hyper::service::service_fn(grpc)));
        }
    });
    let gateway = Gateway::to(&format!("h2c://{address}"));
    let stream = tokio::net::TcpStream::connect(gateway.address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::post("http://api.example/pkg.Service/Method").header("te", "trailers");
    let request = request.body(Full::new(Bytes::from_static(b"\0\0\0\0\x03abc"))).unwrap();
    let response = tokio::time::timeout(LONG, sender.send_request(request)).await.unwrap().unwrap();
    assert_eq!(response.headers()["asked"], r#"http://api.example/pkg.Service/Method HTTP/2.0 Some("trailers") None"#);
    let body = response.into_body().collect().await.unwrap();
    assert_eq!(body.trailers().unwrap()["grpc-status"], "0");
    assert_eq!(&body.to_bytes()[..], b"\0\0\0\0\x03abc");
}

#[test]
fn a_websocket_is_a_tunnel_both_ways() {
    let upstream = Upstream::start(|mut peer| {
        let head = peer.head();
        assert_eq!((field(&head, "upgrade"), field(&head, "connection")), (Some("websocket"), Some("upgrade")));
        // The first frame comes together with the head.
        peer.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhello");
        loop {
            let mut byte = peer.bytes(1);
            if byte[0] == b'.' {
                return;
            }
            byte[0].make_ascii_uppercase();
            peer.send(byte);
        }
    });
    let gateway = Gateway::to(&upstream.url());
    let mut client = Peer::connect(gateway.address);
    client.send("GET /chat HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n");
    let head = client.head();
    assert_eq!((status(&head), field(&head, "upgrade")), (101, Some("websocket")), "{head}");
    assert_eq!(client.bytes(5), b"hello");
    client.send("a\nb\n\n");
    assert_eq!(client.bytes(5), b"A\nB\n\n");
    client.send(".");
    assert!(client.closed());
}

#[test]
fn an_upgrade_that_is_refused_leaves_plain_http() {
    let upstream = Upstream::start(echo);
    let gateway = Gateway::to(&upstream.url());
    let mut client = Peer::connect(gateway.address);
    for _ in 0..2 {
        client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
        assert_eq!(status(&client.message().0), 200);
    }
    client.send("GET / HTTP/1.1\nHost: a\r\n\r\n");
    assert_eq!(status(&client.message().0), 400, "the guard still looks");
}

#[test]
fn an_answer_is_passed_on_as_it_comes() {
    let (go, wait) = std::sync::mpsc::sync_channel::<()>(0);
    let wait = std::sync::Mutex::new(wait);
    let upstream = Upstream::start(move |mut peer| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
        wait.lock().unwrap().recv_timeout(LONG).unwrap();
        peer.send("6\r\nsecond\r\n0\r\n\r\n");
    });
    let gateway = Gateway::to(&upstream.url());
    let mut client = Peer::connect(gateway.address);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(status(&client.head()), 200);
    assert_eq!(client.bytes(10), b"5\r\nfirst\r\n");
    go.send(()).unwrap();
    assert_eq!(client.bytes(16), b"6\r\nsecond\r\n0\r\n\r\n"[..16].to_vec());
}

#[test]
fn a_request_is_passed_on_as_it_comes_and_chunks_stay_chunks() {
    let upstream = Upstream::start(|mut peer| {
        for _ in 0..2 {
            let head = peer.head();
            assert_eq!(field(&head, "transfer-encoding"), Some("chunked"), "{head}");
            assert_eq!(peer.bytes(8), b"3\r\nabc\r\n");
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
            assert_eq!(peer.bytes(13), b"3\r\ndef\r\n0\r\n\r\n");
            peer.send("ok");
        }
    });
    let gateway = Gateway::to(&upstream.url());
    for method in ["POST", "GET"] {
        let mut client = Peer::connect(gateway.address);
        client.send(format!("{method} / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"));
        assert_eq!(status(&client.head()), 200);
        client.send("3\r\ndef\r\n0\r\n\r\n");
        assert_eq!(client.bytes(2), b"ok");
    }
}
