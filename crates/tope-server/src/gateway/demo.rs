//! `upstream: demo`: a sample API, so that a policy can be tried with nothing else at hand.

use std::fmt::Write as _;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response};

use super::{Body, Caller};

/// Any method and path: 200 and what tope knows of the caller.
pub(super) fn answer<B>(request: &Request<B>) -> Response<Body> {
    let caller = request.extensions().get::<Caller>();
    let path = caller.and_then(|caller| caller.forward_path.as_deref()).unwrap_or(request.uri().path());
    let mut text = String::with_capacity(192);
    text.push_str("{\"api\":\"tope's sample: set `upstream:` to your own\",\"method\":");
    quote(&mut text, request.method().as_str());
    text.push_str(",\"path\":");
    quote(&mut text, path);
    for (name, value) in [
        (",\"client\":", caller.and_then(|caller| caller.client.as_ref())),
        (",\"plan\":", caller.and_then(|caller| caller.plan.as_ref())),
    ] {
        text.push_str(name);
        match value {
            Some(value) => quote(&mut text, &String::from_utf8_lossy(value.as_bytes())),
            None => text.push_str("null"),
        }
    }
    text.push_str("}\n");
    let head = request.method() == Method::HEAD;
    let mut response = Response::new(if head { Body::empty() } else { Body::full(Bytes::from(text)) });
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => write!(out, "\\u{:04x}", u32::from(c)).unwrap_or_default(),
            c => out.push(c),
        }
    }
    out.push('"');
}
