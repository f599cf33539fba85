//! The service that forwards: one request to one upstream, its answer back, both streamed.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{CONTENT_LENGTH, HOST};
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, Version, request};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;

use super::caller::{InFlight, Unanswered};
use super::link::{Link, Sent};
use super::problem::{Render, render};
use super::progress::{Progress, while_moving};
use super::upload::Outbound;
use super::upstream::Upstreams;
use super::{Body, Caller, Problem, Upload, demo, fields, tunnel};
use crate::settings::upstream::Upstream;

/// Forwards requests to the upstreams of one worker, over connections that it keeps.
///
/// Clones share the connections. It is made and used on one worker's runtime and is always ready.
#[derive(Clone, Debug)]
pub struct Proxy(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    upstreams: Upstreams,
    answer_within: Duration,
    render: Render,
}

impl Proxy {
    /// A proxy to these upstreams in turn; to the built-in sample if there is no other.
    ///
    /// `answer_within` is how long an upstream may take from the end of a request (or the last sign of progress of
    /// its body) to the head of its answer.
    pub fn new(upstreams: &[Upstream], answer_within: Duration) -> Self {
        Self::with_render(upstreams, answer_within, render)
    }

    /// The same, with another rendering of 400, 405, 502 and 504.
    pub fn with_render(upstreams: &[Upstream], answer_within: Duration, render: Render) -> Self {
        Self(Arc::new(Inner { upstreams: Upstreams::new(upstreams), answer_within, render }))
    }
}

impl tower_service::Service<Request<Upload>> for Proxy {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Upload>) -> Answer {
        if request.method() == Method::CONNECT {
            return Answer::ready((self.0.render)(Problem::Connect));
        }
        if self.0.upstreams.len() == 0 {
            return Answer::ready(demo::answer(&request));
        }
        let head = request.method() == Method::HEAD;
        match Forwarding::of(request) {
            Ok(forwarding) => Answer(Step::Forward(Box::pin(Arc::clone(&self.0).forward(forwarding)))),
            Err(problem) => Answer::ready(self.0.say(problem, head)),
        }
    }
}

/// The answer that is to come.
pub struct Answer(Step);

enum Step {
    Ready(Option<Response<Body>>),
    Forward(Pin<Box<dyn Future<Output = Response<Body>> + Send>>),
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Answer")
    }
}

impl Answer {
    fn ready(response: Response<Body>) -> Self {
        Self(Step::Ready(Some(response)))
    }
}

impl Future for Answer {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Step::Ready(response) => Poll::Ready(Ok(response.take().expect("polled once after it was ready"))),
            Step::Forward(future) => future.as_mut().poll(cx).map(Ok),
        }
    }
}

/// What to do when the upstream switches protocols as it was asked to.
struct Switch {
    client: OnUpgrade,
    /// To be kept as long as the connection is in use.
    in_flight: Option<InFlight>,
}

/// A request that is ready for any upstream.
struct Forwarding {
    /// Absent while it is being sent.
    request: Option<Request<Outbound>>,
    /// The request once more, for when a kept connection closes under it.
    copy: Option<Box<Request<Outbound>>>,
    host: Option<HeaderValue>,
    switch: Option<Switch>,
    /// Whether the answer must not have a body.
    head: bool,
    progress: Option<Arc<Progress>>,
}

impl Forwarding {
    fn of(request: Request<Upload>) -> Result<Self, Problem> {
        let (mut head, body) = request.into_parts();
        let mut extensions = std::mem::take(&mut head.extensions);
        let host = host(&head)?;
        let is_head = head.method == Method::HEAD;
        let switches = fields::upgrades(&head.headers, head.version);
        let in_flight = extensions.remove::<InFlight>();
        let switch = if switches { extensions.remove::<OnUpgrade>() } else { None };
        let switch = switch.map(|client| Switch { client, in_flight });
        let caller = extensions.get::<Caller>();
        head.uri = origin(head.uri, caller.and_then(|caller| caller.forward_path.as_deref()))?;
        fields::request(&mut head.headers, host.as_ref(), caller, switch.is_some());
        let (body, progress) = Outbound::new(body);
        Ok(Self { request: Some(Request::from_parts(head, body)), copy: None, host, switch, head: is_head, progress })
    }

    fn send_over(&mut self, link: &mut Link<'_>) -> impl Future<Output = Sent> + use<> {
        let mut request = self.request.take().expect("there is a request until it has been sent");
        self.copy = if link.is_kept() && self.may_repeat(&request) { Some(Box::new(copy(&request))) } else { None };
        link.fit(&mut request, self.host.as_ref());
        link.send(request)
    }

    /// Whether to send it twice asks for nothing more than to send it once (RFC 9110 9.2.1), and there is a second time:
    /// what has a body is not kept.
    fn may_repeat(&self, request: &Request<Outbound>) -> bool {
        request.method().is_safe() && matches!(request.body(), Outbound::Empty) && self.switch.is_none()
    }
}

/// A request without a body once more.
fn copy(request: &Request<Outbound>) -> Request<Outbound> {
    let mut copy = Request::new(Outbound::Empty);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    copy
}

/// Whether the connection ended, rather than that the upstream answered what is no HTTP.
fn is_lost(error: &hyper::Error) -> bool {
    !error.is_parse() && !error.is_user()
}

impl Inner {
    // The state of this future is allocated for every request: what is rare and large is boxed inside it, so that it
    // stays below the kilobyte that allocators hand out fastest (held by a test).
    #[expect(clippy::manual_async_fn, reason = "an async fn keeps each argument twice")]
    fn forward(self: Arc<Self>, mut forwarding: Forwarding) -> impl Future<Output = Response<Body>> + Send {
        async move {
            let mut again = false;
            while let Some(mut link) = self.upstreams.link(again).await {
                let sent = std::pin::pin!(forwarding.send_over(&mut link));
                // Longer than that only while the request's own body still moves.
                match while_moving(sent, self.answer_within, forwarding.progress.as_deref()).await {
                    Some(Ok(response)) => {
                        let answer = receive(response, link, forwarding.switch.take());
                        return answer.unwrap_or_else(|problem| self.say(problem, forwarding.head));
                    }
                    // Whoever gets the request back may be sure that no byte of it was sent. One that was sent over a
                    // connection that closed before the head of its answer goes again only if that is harmless.
                    Some(Err(mut error)) if !again => {
                        let copy = forwarding.copy.take().filter(|_| is_lost(error.error())).map(|copy| *copy);
                        let Some(request) = error.take_message().or(copy) else { break };
                        forwarding.request = Some(request);
                    }
                    Some(Err(_)) => break,
                    None => return self.say(Problem::GatewayTimeout, forwarding.head),
                }
                again = true;
            }
            self.say(Problem::BadGateway, forwarding.head)
        }
    }

    /// An answer of our own; to HEAD without its body, which hyper leaves out over HTTP/1.1 only.
    fn say(&self, problem: Problem, head: bool) -> Response<Body> {
        let mut response = (self.render)(problem);
        if matches!(problem, Problem::BadGateway | Problem::GatewayTimeout) {
            response.extensions_mut().insert(Unanswered);
        }
        if head {
            let length = http_body::Body::size_hint(response.body()).exact().unwrap_or(0);
            response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
            *response.body_mut() = Body::empty();
        }
        response
    }
}

/// Makes the upstream's answer the client's.
fn receive(
    mut response: Response<Incoming>,
    link: Link<'_>,
    switch: Option<Switch>,
) -> Result<Response<Body>, Problem> {
    let switched = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    fields::response(response.headers_mut(), switched);
    *response.version_mut() = Version::HTTP_11;
    if switched {
        // An upstream that switches without being asked is broken.
        let Switch { client, in_flight } = switch.ok_or(Problem::BadGateway)?;
        tunnel::open(client, hyper::upgrade::on(&mut response), in_flight);
        return Ok(response.map(|_| Body::empty()));
    }
    Ok(response.map(|body| Body::upstream(body, link.lease())))
}

/// The host that was asked for: one, and a plausible one. Only HTTP/1.0 may leave it out.
fn host(head: &request::Parts) -> Result<Option<HeaderValue>, Problem> {
    let mut named = head.headers.get_all(HOST).iter();
    let (first, second) = (named.next(), named.next());
    let host = match head.uri.authority() {
        Some(authority) => Some(HeaderValue::from_str(authority.as_str()).map_err(|_| Problem::BadHost)?),
        None => first.cloned(),
    };
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-._~%:[]!$&'()*+,;=".contains(b);
    match &host {
        _ if second.is_some() => Err(Problem::BadHost),
        Some(name) if !name.as_bytes().iter().all(plain) => Err(Problem::BadHost),
        None if head.version > Version::HTTP_10 => Err(Problem::BadHost),
        _ => Ok(host),
    }
}

/// A target without scheme and authority, with another path if one is given.
fn origin(uri: Uri, path: Option<&str>) -> Result<Uri, Problem> {
    let target = match (path, uri.query()) {
        (None, _) if uri.authority().is_none() => return Ok(uri),
        (None, _) => uri.path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/")),
        (Some(path), None) => PathAndQuery::try_from(path).map_err(|_| Problem::BadPath)?,
        (Some(path), Some(query)) => PathAndQuery::try_from(format!("{path}?{query}")).map_err(|_| Problem::BadPath)?,
    };
    Ok(Uri::from(target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_allocates_is_small() {
        fn size<F>(_: fn(Arc<Inner>, Forwarding) -> F) -> usize {
            size_of::<F>()
        }
        assert!(size(Inner::forward) <= 1024, "{}", size(Inner::forward));
    }

    fn asked(uri: &str, version: Version, hosts: &[&str]) -> Result<Option<HeaderValue>, Problem> {
        let mut request = Request::builder().uri(uri).version(version);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        host(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn exactly_one_host_is_taken() {
        let a = Ok(Some(HeaderValue::from_static("a:80")));
        assert_eq!(asked("/", Version::HTTP_11, &["a:80"]), a);
        assert_eq!(asked("http://a:80/x", Version::HTTP_11, &["b"]), a);
        assert_eq!(asked("http://a:80/x", Version::HTTP_2, &[]), a);
        assert_eq!(asked("/", Version::HTTP_10, &[]), Ok(None));
        for hosts in [&[][..], &["a", "a"], &["a/b"], &["u@a"], &["a b"]] {
            assert_eq!(asked("/", Version::HTTP_11, hosts), Err(Problem::BadHost), "{hosts:?}");
        }
    }

    #[test]
    fn the_path_is_replaced_and_the_query_kept() {
        let origin = |uri: &str, path| origin(uri.parse().unwrap(), path).unwrap().to_string();
        assert_eq!(origin("/a//b?c=d", None), "/a//b?c=d");
        assert_eq!(origin("/a//b?c=d", Some("/a/b")), "/a/b?c=d");
        assert_eq!(origin("http://h/a//b", Some("/a/b")), "/a/b");
        assert_eq!(origin("http://h", None), "/");
        assert_eq!(origin("*", None), "*");
    }
}
