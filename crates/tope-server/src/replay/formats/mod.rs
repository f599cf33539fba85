//! Log lines: one line of bytes becomes a [`Line`] or a reason why not. Nothing here reads files or judges.
//!
//! | room | what is in it |
//! |---|---|
//! | [`json_lines`] | a JSON object a line, for logs made by hand or by another program |
//! | [`access_log`] | the gateway's own access log |
//! | [`combined`] | the common and combined formats of Apache and nginx |
//! | [`time`] | text to Unix microseconds, never through a float |
//! | `text` | strings and headers of a JSON line, borrowed where they can be |

pub mod access_log;
pub mod combined;
pub mod json_lines;
mod text;
pub mod time;

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use http::HeaderMap;

pub use crate::pass::{Line, Ours};

/// Why a line is no request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The byte of the line where the trouble is, from 1, where it is known.
    pub column: Option<usize>,
    /// What the trouble is.
    pub why: Cow<'static, str>,
}

impl Broken {
    pub(crate) fn new(why: impl Into<Cow<'static, str>>) -> Self {
        Self { column: None, why: why.into() }
    }

    pub(crate) fn at(column: usize, why: impl Into<Cow<'static, str>>) -> Self {
        Self { column: Some(column), why: why.into() }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

/// How the lines of a log are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A JSON object a line: time, ip, method, path, headers, status, cost.
    Json,
    /// tope's own access log.
    Access,
    /// The common or combined format of Apache and nginx.
    Combined,
}

impl Format {
    /// Reads one line, without its end. Header fields are added to `headers`, which the caller has cleared.
    ///
    /// # Errors
    /// [`Broken`] says why the line is no request.
    pub fn parse<'a>(self, line: &'a [u8], headers: &mut HeaderMap) -> Result<Line<'a>, Broken> {
        match self {
            Self::Json => json_lines::parse(line, headers),
            Self::Access => access_log::parse(line),
            Self::Combined => combined::parse(line, headers),
        }
    }

    /// The format in which this line is a request, if there is one.
    pub fn detect(line: &[u8]) -> Option<Self> {
        let reads = |format: &Self| format.parse(line, &mut HeaderMap::new()).is_ok();
        [Self::Access, Self::Json, Self::Combined].into_iter().find(reads)
    }

    /// The format that a line which is no request was most likely meant to have.
    pub fn guess(line: &[u8]) -> Self {
        if line.trim_ascii_start().starts_with(b"{") { Self::Json } else { Self::Combined }
    }

    /// The word for it in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "JSON lines",
            Self::Access => "tope's access log",
            Self::Combined => "combined",
        }
    }
}

/// An address as logs write it: bare, in brackets, or an IPv6 address with a zone.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let bare = bare.split_once('%').map_or(bare, |(address, _)| address);
    bare.parse().ok()
}

#[cfg(test)]
mod tests;
