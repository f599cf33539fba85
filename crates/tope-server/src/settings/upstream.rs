//! Where requests go.

use http::uri::Authority;

/// One upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Upstream {
    /// The small sample API that is built in.
    Demo,
    /// `http://host:port`: HTTP/1.1.
    Http1(Authority),
    /// `h2c://host:port`: HTTP/2 by prior knowledge, without TLS.
    Http2(Authority),
}

const HINT: &str = "write http://HOST:PORT, h2c://HOST:PORT for HTTP/2 without TLS, or demo";

impl Upstream {
    /// Reads one. What is told of a wrong one never holds a user or a password.
    ///
    /// # Errors
    /// What is wrong, and what to do about it.
    pub fn parse(text: &str) -> Result<Self, (String, &'static str)> {
        if text == "demo" {
            return Ok(Self::Demo);
        }
        let fault = |what: &str| (what.to_owned(), HINT);
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(fault("an upstream begins with http:// or h2c://"));
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err((
                "an upstream has no user or password".to_owned(),
                "let the upstream believe this gateway's address",
            ));
        }
        match scheme {
            "http" | "h2c" => {}
            "https" | "wss" => return Err((format!("{scheme} to an upstream is not in this version"), HINT)),
            _ => return Err((format!("`{scheme}` is no scheme of an upstream"), HINT)),
        }
        if !matches!(path, "" | "/") {
            return Err((
                format!("an upstream has no path, and this one has `{path}`"),
                "requests keep the path they came with",
            ));
        }
        let parsed: Authority = authority.parse().map_err(|_| fault("the upstream's host can't be read"))?;
        let bracket = authority.rfind(']').unwrap_or(0);
        let port = authority[bracket..].split_once(':').map(|(_, port)| port);
        if parsed.host().is_empty() {
            return Err(fault("the upstream has no host"));
        }
        if port.is_some_and(|port| !port.parse::<u16>().is_ok_and(|port| port > 0)) {
            return Err(fault("the upstream's port does not lie between 1 and 65535"));
        }
        Ok(if scheme == "http" { Self::Http1(parsed) } else { Self::Http2(parsed) })
    }
}
