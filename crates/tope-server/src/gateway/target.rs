//! Where requests go: `http://host:port`, `h2c://host:port`, or the built-in sample.

use std::fmt;
use std::str::FromStr;

use http::uri::Authority;

/// One upstream as it is written in the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// HTTP/1.1.
    Http(Authority),
    /// HTTP/2 by prior knowledge, without TLS.
    H2c(Authority),
    /// `demo`: the sample API that is built in.
    Demo,
}

/// Why a text is no upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TargetError {
    /// Neither `http://`, `h2c://` nor `demo`.
    Scheme,
    /// The host, or the port, is missing or wrong.
    Host,
    /// Something follows the host and port.
    Path,
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scheme => "an upstream is http://HOST:PORT, h2c://HOST:PORT (HTTP/2 without TLS) or demo",
            Self::Host => "an upstream needs a host, and a port from 1 to 65535 if it has one",
            Self::Path => "an upstream has no path: requests keep their own",
        })
    }
}

impl std::error::Error for TargetError {}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        if text == "demo" {
            return Ok(Self::Demo);
        }
        let (scheme, rest) = text.split_once("://").ok_or(TargetError::Scheme)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains(['/', '?', '#']) {
            return Err(TargetError::Path);
        }
        let authority: Authority = rest.parse().map_err(|_| TargetError::Host)?;
        let port = authority.as_str().rsplit_once(':').map(|(_, port)| port).filter(|port| !port.ends_with(']'));
        let bad_port = port.is_some_and(|port| !port.parse::<u16>().is_ok_and(|port| port > 0));
        if authority.host().is_empty() || authority.as_str().contains('@') || bad_port {
            return Err(TargetError::Host);
        }
        match scheme {
            "http" => Ok(Self::Http(authority)),
            "h2c" => Ok(Self::H2c(authority)),
            _ => Err(TargetError::Scheme),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_an_upstream_may_be_and_nothing_else() {
        let host = |text: &str| text.parse::<Authority>().unwrap();
        assert_eq!("demo".parse(), Ok(Target::Demo));
        assert_eq!("http://a.example".parse(), Ok(Target::Http(host("a.example"))));
        assert_eq!("http://127.0.0.1:3000/".parse(), Ok(Target::Http(host("127.0.0.1:3000"))));
        assert_eq!("http://[::1]".parse(), Ok(Target::Http(host("[::1]"))));
        assert_eq!("h2c://[::1]:50051".parse(), Ok(Target::H2c(host("[::1]:50051"))));
        for (bad, why) in [
            ("127.0.0.1:80", TargetError::Scheme),
            ("https://a", TargetError::Scheme),
            ("http://", TargetError::Host),
            ("http://a:0", TargetError::Host),
            ("http://a:", TargetError::Host),
            ("http://a:70000", TargetError::Host),
            ("http://u@a", TargetError::Host),
            ("http://a/b", TargetError::Path),
        ] {
            assert_eq!(bad.parse::<Target>(), Err(why), "{bad}");
        }
    }
}
