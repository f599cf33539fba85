//! A connection to one upstream for one request, whatever it speaks.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::{CONNECTION, CONTENT_LENGTH, COOKIE, HOST, TRANSFER_ENCODING, UPGRADE};
use http::uri::{Authority, Scheme};
use http::{HeaderMap, HeaderValue, Request, Response, Uri, Version};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http2};
use pin_project_lite::pin_project;

use super::pool::{Lease, Pool};
use super::upload::Outbound;
use super::upstream::{ConnectError, Kind, Upstream};

/// What comes of a request: an answer, or an error that gives it back when none of it was sent.
pub(crate) type Sent = Result<Response<Incoming>, TrySendError<Request<Outbound>>>;

/// One upstream, and a way to it.
#[derive(Debug)]
pub(crate) struct Link<'a> {
    upstream: &'a Upstream,
    over: Over,
    kept: bool,
}

#[derive(Debug)]
enum Over {
    Http1(Lease),
    Http2(http2::SendRequest<Outbound>),
}

impl<'a> Link<'a> {
    /// A kept connection over HTTP/1.1, if there is one.
    pub(crate) fn kept(upstream: &'a Upstream) -> Option<Self> {
        let Kind::Http1 { pool, .. } = &upstream.kind else { return None };
        pool.take().map(|lease| Self { upstream, over: Over::Http1(lease), kept: true })
    }

    /// A new connection; over HTTP/2 the shared one, unless `fresh`.
    pub(crate) async fn open(upstream: &'a Upstream, fresh: bool) -> Result<Self, ConnectError> {
        let over = match &upstream.kind {
            Kind::Http1 { pool, swept } => {
                swept.call_once(|| drop(tokio::spawn(Pool::sweep(Arc::downgrade(pool)))));
                Over::Http1(pool.open(upstream.connect().await?).await?)
            }
            Kind::Http2(shared) => Over::Http2(shared.take(fresh, upstream.connect()).await?),
        };
        Ok(Self { upstream, over, kept: false })
    }

    /// Whether it was kept from an earlier request: the upstream may be closing it at this moment.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept
    }

    /// Makes a request the one that this upstream understands; `host` is the one that the client asked for.
    pub(crate) fn fit(&self, request: &mut Request<Outbound>, host: Option<&HeaderValue>) {
        match self.over {
            Over::Http1(_) => self.fit_http1(request, host),
            Over::Http2(_) => self.fit_http2(request, host),
        }
    }

    fn fit_http1(&self, request: &mut Request<Outbound>, host: Option<&HeaderValue>) {
        if request.version() == Version::HTTP_2 {
            join_cookies(request.headers_mut());
        }
        *request.version_mut() = Version::HTTP_11;
        if request.uri().authority().is_some() {
            *request.uri_mut() = request.uri().path_and_query().cloned().map(Uri::from).unwrap_or_default();
        }
        let framed = request.body().is_end_stream() || request.headers().contains_key(CONTENT_LENGTH);
        let fields = request.headers_mut();
        if fields.get(HOST) != host || host.is_none() {
            let own = || HeaderValue::from_str(self.upstream.authority.as_str()).ok();
            if let Some(host) = host.cloned().or_else(own) {
                fields.insert(HOST, host);
            }
        }
        if !framed {
            // hyper would leave the body of a GET out.
            fields.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
    }

    fn fit_http2(&self, request: &mut Request<Outbound>, host: Option<&HeaderValue>) {
        *request.version_mut() = Version::HTTP_2;
        let asked = host.and_then(|host| Authority::try_from(host.as_bytes()).ok());
        let mut parts = std::mem::take(request.uri_mut()).into_parts();
        parts.scheme = Some(Scheme::HTTP);
        parts.authority = Some(asked.unwrap_or_else(|| self.upstream.authority.clone()));
        *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
        for name in [HOST, CONNECTION, UPGRADE, TRANSFER_ENCODING] {
            request.headers_mut().remove(name);
        }
    }

    /// Sends a request.
    pub(crate) fn send(&mut self, request: Request<Outbound>) -> impl Future<Output = Sent> + use<> {
        match &mut self.over {
            Over::Http1(lease) => Sending::Http1 { sent: lease.sender().try_send_request(request) },
            Over::Http2(sender) => Sending::Http2 { sent: Box::pin(sender.try_send_request(request)) },
        }
    }

    /// The connection, if it can be used by one request only.
    pub(crate) fn lease(self) -> Option<Lease> {
        match self.over {
            Over::Http1(lease) => Some(lease),
            Over::Http2(_) => None,
        }
    }
}

/// Makes one line of the crumbs that HTTP/2 may break a cookie into (RFC 9113 8.2.3).
fn join_cookies(fields: &mut HeaderMap) {
    let mut crumbs = fields.get_all(COOKIE).iter();
    let (Some(first), Some(second)) = (crumbs.next(), crumbs.next()) else { return };
    let mut line = first.as_bytes().to_vec();
    for crumb in std::iter::once(second).chain(crumbs) {
        line.extend_from_slice(b"; ");
        line.extend_from_slice(crumb.as_bytes());
    }
    if let Ok(line) = HeaderValue::from_maybe_shared(bytes::Bytes::from(line)) {
        fields.insert(COOKIE, line);
    }
}

pin_project! {
    #[project = SendingNow]
    enum Sending<A, B> {
        Http1 { #[pin] sent: A },
        Http2 { #[pin] sent: B },
    }
}

impl<A: Future, B: Future<Output = A::Output>> Future for Sending<A, B> {
    type Output = A::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<A::Output> {
        match self.project() {
            SendingNow::Http1 { sent } => sent.poll(cx),
            SendingNow::Http2 { sent } => sent.poll(cx),
        }
    }
}
