//! Real servers and clients on free ports, ended with their test.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tope_server::gateway::serve::Settings;
use tope_server::gateway::{Body, Caller, Proxy, Server, Upload};
use tope_server::settings::upstream;
use tope_server::shutdown::Shutdown;
use tower_service::Service;

/// No wait in a test is longer.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// A gateway in this process: `/deny` is refused without a look at the body, `/freeze` holds the worker up for a second,
/// all else is forwarded.
pub(crate) struct Gateway {
    pub(crate) address: SocketAddr,
    pub(crate) shutdown: Shutdown,
    thread: Option<JoinHandle<()>>,
}

/// What a test may want otherwise.
pub(crate) struct Options {
    pub(crate) settings: Settings,
    pub(crate) answer_within: Duration,
    pub(crate) trusted_peer: bool,
    pub(crate) forward_path: Option<Box<str>>,
}

impl Default for Options {
    fn default() -> Self {
        let mut settings = Settings::default();
        settings.workers = 1;
        Self { settings, answer_within: Duration::from_secs(20), trusted_peer: false, forward_path: None }
    }
}

impl Gateway {
    pub(crate) fn to(upstream: &str) -> Self {
        Self::start(&[upstream], Options::default())
    }

    pub(crate) fn start(upstreams: &[&str], options: Options) -> Self {
        let targets: Vec<_> = upstreams.iter().map(|one| upstream::Upstream::parse(one).unwrap()).collect();
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), options.settings.clone()).unwrap();
        let (address, shutdown) = (server.address(), Shutdown::new());
        let thread = std::thread::spawn({
            let shutdown = shutdown.clone();
            move || {
                let make_worker = |_| {
                    let proxy = Proxy::new(&targets, options.answer_within);
                    let (trusted_peer, forward_path) = (options.trusted_peer, options.forward_path.clone());
                    move |peer: SocketAddr| {
                        let peer = Caller::peer_text(peer.ip());
                        let (client, plan) = (Some(HeaderValue::from_static("acme")), None);
                        let caller = Caller { client, plan, peer, trusted_peer, forward_path: forward_path.clone() };
                        Front { proxy: proxy.clone(), caller }
                    }
                };
                server.run(&shutdown, || (), make_worker).unwrap();
            }
        });
        Self { address, shutdown, thread: Some(thread) }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Waits until the server has returned.
    pub(crate) fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            until("the server returns", || thread.is_finished());
            thread.join().unwrap();
        }
    }

    pub(crate) fn ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.shutdown.end();
        if !std::thread::panicking() {
            self.join();
        }
    }
}

struct Front {
    proxy: Proxy,
    caller: Caller,
}

type Either = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

impl Service<Request<Upload>> for Front {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Either;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Upload>) -> Either {
        if request.uri().path() == "/deny" {
            let mut response = Response::new(Body::full(Bytes::from_static(b"refused")));
            *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
            let refusal: Ready<_> = ready(Ok(response));
            return Box::pin(refusal);
        }
        if request.uri().path() == "/freeze" {
            // The worker, like one whose process was stopped.
            std::thread::sleep(Duration::from_secs(1));
        }
        request.extensions_mut().insert(self.caller.clone());
        Box::pin(self.proxy.call(request))
    }
}

/// Waits for something that will happen; the test fails when it does not.
pub(crate) fn until(what: &str, mut happened: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !happened() {
        assert!(begun.elapsed() < LONG, "in {LONG:?} it did not happen that {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A child that ends with the test.
pub(crate) struct Process(pub(crate) Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts Debian's nginx with this `server` block on a port; fails loudly when there is none.
pub(crate) fn nginx(folder: &Path, port: u16, server: &str) -> Process {
    let at = folder.display();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary = temporary.map(|kind| format!("{kind}_temp_path {at}/{kind};")).concat();
    let text = format!(
        "daemon off; master_process off; pid {at}/{port}.pid; error_log {at}/{port}.log; worker_rlimit_nofile 1024;\n\
         events {{ worker_connections 256; }}\n\
         http {{ access_log off; {temporary} client_max_body_size 0; server {{ {server} }} }}\n"
    );
    let file = folder.join(format!("{port}.conf"));
    std::fs::write(&file, text).unwrap();
    let program = if Path::new("/usr/sbin/nginx").exists() { "/usr/sbin/nginx" } else { "nginx" };
    let child = Command::new(program).arg("-c").arg(&file).stderr(Stdio::null()).spawn();
    let mut process = Process(child.expect("this test needs nginx: apt-get install nginx-light"));
    until("nginx listens", || {
        assert!(process.0.try_wait().unwrap().is_none(), "nginx ended: see {at}/{port}.log");
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    process
}

/// Runs curl, bounded in time; what it printed, and its exit code.
pub(crate) fn curl(arguments: &[&str]) -> (String, i32) {
    let out = Command::new("curl").args(["-sS", "--max-time", "60"]).args(arguments).output();
    let out = out.expect("this test needs curl: apt-get install curl");
    let text = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    (text, out.status.code().unwrap_or(-1))
}

/// An upstream that is a function of each connection, on its own thread.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    pub(crate) connections: Arc<AtomicUsize>,
}

impl Upstream {
    pub(crate) fn start(serve: impl Fn(Peer) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, connections) = (listener.local_addr().unwrap(), Arc::<AtomicUsize>::default());
        let (serve, counted) = (Arc::new(serve), Arc::clone(&connections));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                counted.fetch_add(1, SeqCst);
                let serve = Arc::clone(&serve);
                std::thread::spawn(move || serve(Peer::new(stream.unwrap())));
            }
        });
        Self { address, connections }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(SeqCst)
    }
}

/// An upstream over HTTP/2: `/large` is 16 MiB, all else a line.
pub(crate) fn h2c() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    let answer = async |request: Request<Incoming>| {
        let large = request.uri().path() == "/large";
        let body = if large { Bytes::from(vec![b'x'; 16 << 20]) } else { Bytes::from_static(b"small") };
        Ok::<_, Infallible>(Response::new(Full::new(body)))
    };
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            loop {
                let stream = listener.accept().await.unwrap().0;
                let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                tokio::spawn(connection.serve_connection(TokioIo::new(stream), hyper::service::service_fn(answer)));
            }
        });
    });
    address
}

/// A client's connection over HTTP/2; each stream is sent `window` bytes before it is read on.
pub(crate) async fn http2(address: SocketAddr, window: u32) -> http2::SendRequest<Full<Bytes>> {
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let mut builder = http2::Builder::new(TokioExecutor::new());
    let connection = builder.initial_stream_window_size(window).handshake(TokioIo::new(stream));
    let (sender, connection) = connection.await.unwrap();
    tokio::spawn(connection);
    sender
}

/// One end of a raw connection.
pub(crate) struct Peer {
    reader: BufReader<TcpStream>,
}

impl Peer {
    pub(crate) fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_write_timeout(Some(LONG)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { reader: BufReader::new(stream) }
    }

    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::new(TcpStream::connect(address).unwrap())
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.reader.get_mut().write_all(bytes.as_ref()).unwrap();
    }

    /// A head up to and with its empty line; empty when the other side closed instead.
    pub(crate) fn head(&mut self) -> String {
        let mut text = String::new();
        loop {
            let before = text.len();
            match self.reader.read_line(&mut text) {
                Ok(0) | Err(_) => return String::new(),
                Ok(_) if text[before..] == *"\r\n" => return text,
                Ok(_) => {}
            }
        }
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.reader.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// A head and the body that its Content-Length announces.
    pub(crate) fn message(&mut self) -> (String, Vec<u8>) {
        let head = self.head();
        let length = field(&head, "content-length").map_or(0, |length| length.parse().unwrap());
        let body = self.bytes(length);
        (head, body)
    }

    /// All that comes until the other side closes.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let _ = self.reader.read_to_end(&mut bytes);
        bytes
    }

    /// Whether the other side has closed, waiting for it.
    pub(crate) fn closed(&mut self) -> bool {
        match self.reader.fill_buf() {
            Ok(bytes) => bytes.is_empty(),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => false,
            Err(_) => true,
        }
    }
}

/// The value of a field in a head.
pub(crate) fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(one, _)| one.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

/// The status of an answer's head.
pub(crate) fn status(head: &str) -> u16 {
    head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
}

/// An upstream that answers every request with the head it was sent.
pub(crate) fn echo(mut peer: Peer) {
    loop {
        let (head, _) = peer.message();
        if head.is_empty() {
            return;
        }
        peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{head}", head.len()));
    }
}
