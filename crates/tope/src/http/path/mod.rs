//! One strict normalisation of paths, so that no spelling of a path avoids a rule: RFC 3986 section 6.2.2, exactly
//! once, and a refusal where two readers could differ.
//!
//! | room | what is in it |
//! |---|---|
//! | `escapes` | percent-encoding: what is decoded, what stays, what is refused |
//! | `segments` | dot segments, doubled slashes, path parameters |
//! | `target` | path, query and host out of a request |
//!
//! ```
//! use tope::http::path::{Rules, normalise};
//!
//! let path = normalise("/x/..//%6Cogin;v=1/", Rules::default())?;
//! assert_eq!(path.forward, "/login;v=1/");
//! assert_eq!(path.matched, "/login");
//! # Ok::<(), tope::http::path::BadPath>(())
//! ```

mod escapes;
mod segments;
mod target;

use std::borrow::Cow;
use std::fmt;

pub use target::{Target, host, plain_host, target};

/// How paths are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// `/LOGIN` is `/login`.
    pub ignore_case: bool,
    /// What becomes of `%2F`, `%5C` and a raw backslash.
    pub encoded_slash: EncodedSlash,
}

/// What becomes of an encoded slash in a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EncodedSlash {
    /// The request is refused with 400.
    #[default]
    Reject,
    /// Limits that match either reading apply: the one with the slash decoded, and the one without.
    Both,
}

/// A path in its one form. What was canonical already is borrowed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Path<'a> {
    /// What the upstream gets: no dot segments, no doubled slashes, unreserved escapes decoded, others in upper case.
    pub forward: Cow<'a, str>,
    /// What limits are matched against: also without trailing slash and path parameters, the escapes of `!`, `@`, `:`
    /// and their like decoded (servers take both spellings for one), lower case where the policy ignores case.
    pub matched: Cow<'a, str>,
    /// The other reading of [`matched`](Self::matched), with encoded slashes decoded; only with
    /// [`EncodedSlash::Both`], and only where there are any.
    pub other: Option<String>,
}

/// Brings a path, without its query, to its one form. `*` (of `OPTIONS *`) stays what it is.
///
/// # Errors
/// [`BadPath`] where two readers could take it for two paths, or where it is none: the answer is 400.
pub fn normalise(path: &str, rules: Rules) -> Result<Path<'_>, BadPath> {
    if is_plain(path, rules.ignore_case) {
        return Ok(Path { forward: Cow::Borrowed(path), matched: Cow::Borrowed(path), other: None });
    }
    if path == "*" {
        return Ok(Path { forward: Cow::Borrowed(path), matched: Cow::Borrowed(path), other: None });
    }
    if !path.starts_with(['/', '\\']) {
        return Err(BadPath::Form);
    }
    let forward = segments::squeeze(escapes::decode(path, rules.encoded_slash)?)?;
    // Of what is forwarded, not of what was sent: nobody behind us sees a segment that a `..` took away.
    let other = match escapes::slashes(&forward) {
        Some(slashed) => Some(matched(&segments::squeeze(Cow::Owned(slashed))?, rules)?.into_owned()),
        None => None,
    };
    let matched = match &forward {
        Cow::Borrowed(forward) => matched(forward, rules)?,
        Cow::Owned(forward) => Cow::Owned(matched(forward, rules)?.into_owned()),
    };
    Ok(Path { forward, matched, other })
}

/// Whether nothing can be done to a path: what nearly all are, so one look must do. Words of unreserved characters
/// between single slashes, none of which begins with a dot, and no slash at the end but that of the root.
fn is_plain(path: &str, ignore_case: bool) -> bool {
    let mut before = b' ';
    let fits = path.bytes().all(|byte| {
        let fits = match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~' => before != b' ',
            b'A'..=b'Z' => !ignore_case && before != b' ',
            b'/' => before != b'/',
            b'.' => before != b'/' && before != b' ',
            _ => false,
        };
        before = byte;
        fits
    });
    fits && (before != b'/' && before != b' ' || path == "/")
}

/// What limits are matched against, of a path without dot segments and doubled slashes.
fn matched(forward: &str, rules: Rules) -> Result<Cow<'_, str>, BadPath> {
    let plain = segments::without_parameters(forward)?;
    let plain = match plain {
        Cow::Borrowed(plain) => escapes::decode_harmless(segments::without_slash(plain)),
        Cow::Owned(plain) => Cow::Owned(escapes::decode_harmless(segments::without_slash(&plain)).into_owned()),
    };
    if rules.ignore_case && plain.bytes().any(|byte| byte.is_ascii_uppercase()) {
        let mut lower = plain.into_owned();
        lower.make_ascii_lowercase();
        return Ok(Cow::Owned(lower));
    }
    Ok(plain)
}

/// Why a request target is refused. The fault is the caller's, and the answer 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadPath {
    /// The target is no path: `CONNECT`, `*` without `OPTIONS`, or no slash at its begin.
    Form,
    /// A `%` without two hexadecimal digits, or `%00`.
    Escape,
    /// A control character, a space, `?`, or a byte above 0x7E that is not percent-encoded.
    Byte,
    /// A `#`: fragments are never sent.
    Fragment,
    /// `..` above the root.
    AboveRoot,
    /// `%2F`, `%5C` or a backslash: some servers take it for a slash and some do not.
    EncodedSlash,
    /// `..;x`: a dot segment to servers that cut path parameters, a name to others.
    DotParameter,
    /// The host is none, is said twice, or contradicts itself.
    Host,
}

impl fmt::Display for BadPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => "the request target is not a path",
            Self::Escape => "the path has a percent sign that encodes nothing",
            Self::Byte => "the path has a character that must be percent-encoded",
            Self::Fragment => "the path has a fragment",
            Self::AboveRoot => "the path leads above the root",
            Self::EncodedSlash => "the path has an encoded slash or a backslash",
            Self::DotParameter => "the path has a dot segment with parameters",
            Self::Host => "the request names no host, or more than one",
        })
    }
}

impl std::error::Error for BadPath {}

#[cfg(test)]
mod tests;
