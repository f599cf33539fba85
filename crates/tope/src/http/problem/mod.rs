//! Answers of our own as `application/problem+json`, RFC 9457. Nothing that a client sent is ever in one: neither its
//! keys nor its path, and no header field.
//!
//! | room | what is in it |
//! |---|---|
//! | `words` | which limit, and how long to wait, in plain words |
//! | `json` | an object, one member after the other |

mod json;
pub(super) mod words;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, LINK, RETRY_AFTER};
use http::{HeaderValue, Method, Response, StatusCode};
use tope_core::Verdict;

use super::fields::{self, Dialect};
use super::path::BadPath;

/// The type of a refusal: draft-ietf-httpapi-ratelimit-headers-11 section 7.
pub const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";
/// The type of an answer that says less about the caller than about us.
pub const TEMPORARY_REDUCED_CAPACITY: &str =
    "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";
/// The fields of a refusal in the default dialects, and some more.
const FIELDS: usize = 12;

/// The type of a problem that its status says whole.
pub const BLANK: &str = "about:blank";

/// The refusal of a verdict: 429, or what the limit's policy says (`reject_status`, from 400 to 599), with the fields
/// of the dialects, `Retry-After` and `Cache-Control: no-store`. What can never pass is 403 and names no wait.
///
/// `docs` is a page for whoever is refused; `now_us` is the wall clock in Unix microseconds.
pub fn refusal(
    verdict: &Verdict<'_>,
    dialects: &[Dialect],
    docs: Option<&str>,
    reject_status: Option<u16>,
    now_us: u64,
) -> Response<Bytes> {
    let said = reject_status.filter(|status| (400..600).contains(status)).and_then(|s| StatusCode::from_u16(s).ok());
    let status = if verdict.never() { StatusCode::FORBIDDEN } else { said.unwrap_or(StatusCode::TOO_MANY_REQUESTS) };
    let (kind, title) = match status {
        StatusCode::SERVICE_UNAVAILABLE => (TEMPORARY_REDUCED_CAPACITY, "Temporary Reduced Capacity"),
        _ => (QUOTA_EXCEEDED, "Quota Exceeded"),
    };
    let mut body = json::Object::new(status, kind, title, &words::detail(verdict));
    let refusing = verdict.enforced().filter(|entry| !entry.decision.allowed());
    body.list("violated-policies", refusing.map(|entry| entry.name));
    if let Some(seconds) = verdict.retry_after_s() {
        body.number("retry_after", seconds);
    }
    if let Some(docs) = docs {
        body.string("docs", docs);
    }
    let mut response = respond(status, body);
    if let Some(link) = docs.and_then(help_link) {
        response.headers_mut().insert(LINK, link);
    }
    fields::write(response.headers_mut(), verdict, dialects, now_us);
    fields::write_refusal(response.headers_mut(), verdict);
    response
}

/// Any other answer of ours. `detail` is for people and holds nothing that a client sent.
pub fn problem(status: StatusCode, kind: &str, title: &str, detail: &str) -> Response<Bytes> {
    respond(status, json::Object::new(status, kind, title, detail))
}

/// 400: the request target is none that we would judge.
pub fn bad_request(why: BadPath) -> Response<Bytes> {
    problem(StatusCode::BAD_REQUEST, BLANK, "Bad Request", &format!("The request is refused because {why}."))
}

/// 502: the upstream can't be reached, or its answer is none.
pub fn bad_gateway() -> Response<Bytes> {
    problem(StatusCode::BAD_GATEWAY, BLANK, "Bad Gateway", "The server behind this gateway gave no answer.")
}

/// 504: the upstream did not answer in time.
pub fn gateway_timeout() -> Response<Bytes> {
    let detail = "The server behind this gateway did not answer in time.";
    problem(StatusCode::GATEWAY_TIMEOUT, BLANK, "Gateway Timeout", detail)
}

/// 503: the store of the limits can't be asked, and the policy would rather refuse. Come back in a second.
pub fn store_down() -> Response<Bytes> {
    let detail = "The limits of this service can't be checked now.";
    let (status, kind) = (StatusCode::SERVICE_UNAVAILABLE, TEMPORARY_REDUCED_CAPACITY);
    let mut response = problem(status, kind, "Temporary Reduced Capacity", detail);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// The answer as this method gets it: `HEAD` has the same header fields and no body, RFC 9110 section 9.3.2.
pub fn for_method(mut response: Response<Bytes>, method: &Method) -> Response<Bytes> {
    if method != Method::HEAD {
        return response;
    }
    let length = HeaderValue::from(response.body().len());
    response.headers_mut().insert(CONTENT_LENGTH, length);
    response.map(|_| Bytes::new())
}

fn respond(status: StatusCode, body: json::Object) -> Response<Bytes> {
    let mut response = Response::new(body.end());
    *response.status_mut() = status;
    // All fields of a refusal fit without growing twice.
    response.headers_mut().reserve(FIELDS);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// `<docs>; rel="help"`, RFC 8288; nothing when it is no URI reference.
fn help_link(docs: &str) -> Option<HeaderValue> {
    let fits = !docs.is_empty() && docs.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>\"\\^`{|}".contains(&byte));
    fits.then(|| HeaderValue::try_from(format!("<{docs}>; rel=\"help\"")).ok()).flatten()
}

#[cfg(test)]
mod tests;
