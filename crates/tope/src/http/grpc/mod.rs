//! Answers of our own to gRPC calls: Trailers-Only, that is HTTP 200 with the status in the header fields. A bare 429
//! would be UNAVAILABLE to a gRPC client, which then tries again at once.
//!
//! | room | what is in it |
//! |---|---|
//! | `details` | `google.rpc.Status` with `RetryInfo`, `QuotaFailure` and `ErrorInfo` |
//! | `protobuf` | the wire format, as far as the details need it |

mod details;
mod protobuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use tope_core::{Outcome, Verdict};

use super::fields::{self, Dialect};
use super::problem::words;

/// RESOURCE_EXHAUSTED: the caller's own quota.
pub const RESOURCE_EXHAUSTED: u8 = 8;
/// UNAVAILABLE: trouble of ours that may pass.
pub const UNAVAILABLE: u8 = 14;

/// A longer wait is left to the application: the client's library must not sit on a call for so long. Milliseconds.
const LONGEST_PUSHBACK_MS: u64 = 30_000;

static GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
static GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
static GRPC_STATUS_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
static GRPC_RETRY_PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// Whether a request is a gRPC call, also of gRPC-Web: those are POST ("gRPC over HTTP2", `:method`). Any other request
/// that calls its body `application/grpc` is told what it is told in HTTP, for 200 would tell it that it passed.
pub fn is_grpc_call(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::POST && is_grpc(headers)
}

/// Whether the fields of a request are those of a gRPC call; [`is_grpc_call`] asks for its method too.
pub fn is_grpc(headers: &HeaderMap) -> bool {
    media_type(headers).is_some()
}

/// The refusal of a verdict: RESOURCE_EXHAUSTED with details, the fields of the dialects, and a pushback that retrying
/// clients obey (gRFC A6): the exact wait up to 30 s, beyond that and where no wait helps -1, which is "don't".
///
/// `asked` are the fields of the call; `now_us` is the wall clock in Unix microseconds.
pub fn refusal(verdict: &Verdict<'_>, dialects: &[Dialect], asked: &HeaderMap, now_us: u64) -> Response<Bytes> {
    let message = words::detail(verdict);
    let mut response = trailers_only(RESOURCE_EXHAUSTED, &message, asked);
    let headers = response.headers_mut();
    let details = details::status(RESOURCE_EXHAUSTED, &message, verdict, !dialects.is_empty());
    if let Ok(value) = HeaderValue::try_from(STANDARD_NO_PAD.encode(details)) {
        headers.insert(&GRPC_STATUS_DETAILS, value);
    }
    headers.insert(&GRPC_RETRY_PUSHBACK, pushback(verdict));
    fields::write(headers, verdict, dialects, now_us);
    fields::write_refusal(headers, verdict);
    response
}

/// Any other answer of ours, by the HTTP status that it would have. `detail` holds nothing that a client sent.
pub fn problem(status: StatusCode, detail: &str, asked: &HeaderMap) -> Response<Bytes> {
    trailers_only(code(status), detail, asked)
}

/// The gRPC status of an HTTP status: grpc/grpc, doc/http-grpc-status-mapping.md.
pub fn code(status: StatusCode) -> u8 {
    match status.as_u16() {
        400 => 13,
        401 => 16,
        403 => 7,
        404 => 12,
        429 | 502 | 503 | 504 => UNAVAILABLE,
        _ => 2,
    }
}

fn pushback(verdict: &Verdict<'_>) -> HeaderValue {
    match verdict.refused_by().map(|entry| entry.decision.outcome()) {
        Some(Outcome::Deny { retry_us }) if retry_us.div_ceil(1000) <= LONGEST_PUSHBACK_MS => {
            HeaderValue::from(retry_us.div_ceil(1000))
        }
        _ => HeaderValue::from_static("-1"),
    }
}

fn trailers_only(code: u8, message: &str, asked: &HeaderMap) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    let headers = response.headers_mut();
    let content_type = media_type(asked).and_then(|kind| HeaderValue::from_str(kind).ok());
    headers.insert(CONTENT_TYPE, content_type.unwrap_or(HeaderValue::from_static("application/grpc")));
    headers.insert(&GRPC_STATUS, HeaderValue::from(u16::from(code)));
    if let Ok(message) = HeaderValue::try_from(percent_encoded(message)) {
        headers.insert(&GRPC_MESSAGE, message);
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The `application/grpc…` of a call, without parameters; `None` for any other type and for none.
fn media_type(headers: &HeaderMap) -> Option<&str> {
    const LONGEST: usize = 64;
    let text = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let kind = text.split(';').next().unwrap_or(text).trim_matches([' ', '\t']);
    let (base, format) = kind.split_once('+').map_or((kind, ""), |(base, format)| (base, format));
    let known = ["application/grpc", "application/grpc-web", "application/grpc-web-text"];
    let plain = format.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    (known.iter().any(|known| known.eq_ignore_ascii_case(base)) && plain && kind.len() <= LONGEST).then_some(kind)
}

/// gRPC over HTTP/2, "Percent-Encoded": what is printable stays, but `%`.
fn percent_encoded(message: &str) -> String {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = String::with_capacity(message.len());
    for byte in message.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => out.push(char::from(byte)),
            _ => {
                out.push('%');
                out.push(char::from(HEX[usize::from(byte >> 4)]));
                out.push(char::from(HEX[usize::from(byte & 15)]));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests;
