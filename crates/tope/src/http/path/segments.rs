//! Dot segments (RFC 3986 section 5.2.4), doubled slashes, and path parameters (section 3.3).

use std::borrow::Cow;

use super::BadPath;

/// Takes dot segments and doubled slashes away; a trailing slash stays.
pub(super) fn squeeze(path: Cow<'_, str>) -> Result<Cow<'_, str>, BadPath> {
    let dots = path.contains("/.") && path.split('/').any(|segment| matches!(segment, "." | ".."));
    if path.starts_with('/') && !path.contains("//") && !dots {
        return Ok(path);
    }
    let mut out = String::with_capacity(path.len() + 1);
    let mut closed = false;
    for segment in path.split('/') {
        closed = matches!(segment, "" | "." | "..");
        match segment {
            "" | "." => {}
            ".." => out.truncate(out.rfind('/').ok_or(BadPath::AboveRoot)?),
            name => {
                out.push('/');
                out.push_str(name);
            }
        }
    }
    if closed || out.is_empty() {
        out.push('/');
    }
    Ok(Cow::Owned(out))
}

/// Cuts `;…` from each segment: `/login;jsessionid=1` is `/login`. A segment of which nothing is left goes. `..;x` is
/// refused: servers that cut parameters read it as a dot segment.
pub(super) fn without_parameters(path: &str) -> Result<Cow<'_, str>, BadPath> {
    if !path.contains(';') {
        return Ok(Cow::Borrowed(path));
    }
    let mut out = String::with_capacity(path.len());
    for segment in path.split('/') {
        let (name, parameters) = segment.split_once(';').map_or((segment, None), |(name, rest)| (name, Some(rest)));
        match (name, parameters) {
            ("." | "..", Some(_)) => return Err(BadPath::DotParameter),
            ("", _) => {}
            (name, _) => {
                out.push('/');
                out.push_str(name);
            }
        }
    }
    if out.is_empty() {
        out.push('/');
    }
    Ok(Cow::Owned(out))
}

/// The path without its trailing slash; the root keeps its own.
pub(super) fn without_slash(path: &str) -> &str {
    match path.strip_suffix('/') {
        Some("") | None => path,
        Some(shorter) => shorter,
    }
}
