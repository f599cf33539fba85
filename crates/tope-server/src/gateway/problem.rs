//! Errors of the gateway itself as `application/problem+json` (RFC 9457), behind one function that can be replaced.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};

use super::Body;

/// What went wrong between the client and the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// No upstream could be reached, or it broke off before it answered: 502.
    BadGateway,
    /// The upstream did not answer in time: 504.
    GatewayTimeout,
    /// The request names no host, or several, or one that is none: 400.
    BadHost,
    /// CONNECT, which a gateway does not serve: 405.
    Connect,
    /// The path that the layer in front wants forwarded is none: 400.
    BadPath,
}

impl Problem {
    /// The status that says it.
    pub fn status(self) -> StatusCode {
        match self {
            Self::BadGateway => StatusCode::BAD_GATEWAY,
            Self::GatewayTimeout => StatusCode::GATEWAY_TIMEOUT,
            Self::BadHost | Self::BadPath => StatusCode::BAD_REQUEST,
            Self::Connect => StatusCode::METHOD_NOT_ALLOWED,
        }
    }

    /// One sentence for whoever called.
    pub fn detail(self) -> &'static str {
        match self {
            Self::BadGateway => "The server behind this gateway could not be reached or broke off.",
            Self::GatewayTimeout => "The server behind this gateway did not answer in time.",
            Self::BadHost => "The request must name exactly one valid host.",
            Self::Connect => "This gateway serves no tunnels.",
            Self::BadPath => "The request's path cannot be forwarded.",
        }
    }
}

/// Makes an answer of a problem.
pub type Render = fn(Problem) -> Response<Body>;

/// The plain rendering: type `about:blank`, never stored.
pub fn render(problem: Problem) -> Response<Body> {
    let status = problem.status();
    let (code, title) = (status.as_u16(), status.canonical_reason().unwrap_or_default());
    let detail = problem.detail();
    let text = format!(r#"{{"type":"about:blank","title":"{title}","status":{code},"detail":"{detail}"}}"#);
    let mut response = Response::new(Body::full(Bytes::from(text)));
    *response.status_mut() = status;
    let fields = response.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
