//! The gateway without a limiter, for measurements: `/deny` is refused with a fixed 429, everything else is forwarded.
//!
//! `bare_gateway LISTEN UPSTREAM [WORKERS]`; the address is printed when it listens.

use std::convert::Infallible;
use std::io::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode, header};
use tope_server::gateway::proxy::Answer;
use tope_server::gateway::serve::Settings;
use tope_server::gateway::{Body, Caller, Proxy, Server, Upload};
use tope_server::settings::upstream::Upstream;
use tope_server::shutdown::Shutdown;
use tower_service::Service;

const REFUSAL: &[u8] =
    br#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests","status":429}"#;

const FIELDS: [(HeaderName, &str); 8] = [
    (header::CONTENT_TYPE, "application/problem+json"),
    (header::CACHE_CONTROL, "no-store"),
    (header::RETRY_AFTER, "42"),
    (HeaderName::from_static("ratelimit"), "\"api\";r=0;t=42"),
    (HeaderName::from_static("ratelimit-policy"), "\"api\";q=60;w=60"),
    (HeaderName::from_static("ratelimit-limit"), "60"),
    (HeaderName::from_static("ratelimit-remaining"), "0"),
    (HeaderName::from_static("ratelimit-reset"), "42"),
];

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [listen, upstream, workers @ ..] = &arguments[..] else { anyhow::bail!("LISTEN UPSTREAM [WORKERS]") };
    let target = Upstream::parse(upstream).map_err(|(what, _)| anyhow::Error::msg(what))?;
    let mut settings = Settings::default();
    if let Some(workers) = workers.first() {
        settings.workers = workers.parse()?;
    }
    let server = Server::bind(listen.parse().context("LISTEN")?, settings)?;
    writeln!(std::io::stdout(), "{}", server.address())?;
    let shutdown = Shutdown::new();
    std::thread::spawn({
        let shutdown = shutdown.clone();
        move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(shutdown.follow_signals())
        }
    });
    server.run(
        &shutdown,
        || (),
        |_| {
            let proxy = Proxy::new(std::slice::from_ref(&target), Duration::from_secs(30));
            move |peer| Front { proxy: proxy.clone(), peer: Caller::peer_text(peer.ip()) }
        },
    )?;
    Ok(())
}

struct Front {
    proxy: Proxy,
    peer: HeaderValue,
}

enum Fronted {
    Refused,
    Forwarded(Answer),
}

impl Future for Fronted {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Refused => {
                let mut response = Response::new(Body::full(Bytes::from_static(REFUSAL)));
                *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
                let fields = response.headers_mut();
                for (name, value) in FIELDS {
                    fields.insert(name, HeaderValue::from_static(value));
                }
                Poll::Ready(Ok(response))
            }
            Self::Forwarded(answer) => Pin::new(answer).poll(cx),
        }
    }
}

impl Service<Request<Upload>> for Front {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Fronted;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Upload>) -> Fronted {
        if request.uri().path() == "/deny" {
            return Fronted::Refused;
        }
        let caller = Caller {
            client: Some(HeaderValue::from_static("acme")),
            plan: Some(HeaderValue::from_static("pro")),
            peer: self.peer.clone(),
            trusted_peer: false,
            forward_path: None,
        };
        request.extensions_mut().insert(caller);
        Fronted::Forwarded(self.proxy.call(request))
    }
}
