//! A request as it is written on a command line or in a policy's tests: `POST /login?x=1`.

use http::{HeaderMap, HeaderName, HeaderValue, Method};

use crate::talk::BadInput;

/// A method and a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// The method.
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
}

impl Request {
    /// Reads `METHOD TARGET`; without a method it is GET.
    pub(crate) fn parse(text: &str) -> Result<Self, BadInput> {
        let wrong = |what: &str| BadInput::new(format!("`{text}`: {what}")).hint("write it as in 'POST /login?x=1'");
        let mut words = text.split_ascii_whitespace();
        let (method, target) = match (words.next(), words.next(), words.next()) {
            (Some(target), None, _) if target.starts_with('/') || target.contains("://") => ("GET", target),
            (Some(method), Some(target), None) => (method, target),
            (Some(_), None, _) => return Err(wrong("a path begins with `/`")),
            (None, ..) => return Err(wrong("a method and a path are missing")),
            _ => return Err(wrong("there is more than a method and a path")),
        };
        if Method::from_bytes(method.as_bytes()).is_err() {
            return Err(wrong("this is no method"));
        }
        if !target.starts_with('/') && !target.contains("://") && target != "*" {
            return Err(wrong("a path begins with `/`"));
        }
        Ok(Self { method: method.to_owned(), target: target.to_owned() })
    }
}

/// Header fields as `curl -H` has them: `Name: value`.
pub(crate) fn headers(fields: &[String]) -> Result<HeaderMap, BadInput> {
    let mut headers = HeaderMap::new();
    for field in fields {
        // What is wrong is said without the value: it may be a key.
        let name = field.split(':').next().unwrap_or_default();
        let wrong =
            |what: &str| BadInput::new(format!("header `{name}`: {what}")).hint("write it as in -H 'X-Api-Key: k'");
        let (name, value) = field
            .split_once(':')
            .ok_or_else(|| BadInput::new("a header has no `:`").hint("write it as in -H 'X-Api-Key: k'"))?;
        let name = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| wrong("this is no field name"))?;
        let value = HeaderValue::from_str(value.trim()).map_err(|_| wrong("the value can't stand in a header"))?;
        headers.append(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_read_as_they_are_written() {
        let read = |text| Request::parse(text).map(|request| (request.method, request.target)).ok();
        let pair = |method: &str, target: &str| Some((method.to_owned(), target.to_owned()));
        assert_eq!(read("POST /login?x=1"), pair("POST", "/login?x=1"));
        assert_eq!(read(" /a "), pair("GET", "/a"));
        assert_eq!(read("http://h/a"), pair("GET", "http://h/a"));
        assert_eq!(read("OPTIONS *"), pair("OPTIONS", "*"));
        for bad in ["", "POST", "login", "POST login", "GET /a b", "G(T /a"] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_bad_header_is_told_without_its_value() {
        let fields = ["X-Api-Key: k".to_owned(), "a:b:c".to_owned()];
        assert_eq!(headers(&fields).expect("good fields")["a"], "b:c");
        for bad in ["secret", "b d: secret", "a: sec\nret"] {
            let error = headers(&[bad.to_owned()]).expect_err("it is wrong").to_string();
            assert!(!error.contains("sec"), "{error}");
        }
    }
}
