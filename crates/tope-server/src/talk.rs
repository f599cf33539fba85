//! Standard error: `error:` and `hint:`, for people.

use std::fmt;
use std::io::{self, Write};

/// Bad input: what is wrong, where, and what to do.
#[derive(Debug)]
pub(crate) struct BadInput {
    message: String,
    hint: Option<String>,
}

impl BadInput {
    /// Says what is wrong: lower case, no blame.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// Says what to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\nhint: {hint}"))
    }
}

impl std::error::Error for BadInput {}

/// Prints an error with its causes; the hint stands last.
pub(crate) fn error(error: &anyhow::Error) {
    let mut hint = None;
    let mut text = String::new();
    for cause in error.chain() {
        let said = cause.to_string();
        let (message, its_hint) = match said.rsplit_once("\nhint: ") {
            Some((message, its_hint)) if !its_hint.contains('\n') => (message, Some(its_hint.to_owned())),
            _ => (said.as_str(), None),
        };
        hint = its_hint.or(hint);
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(message);
    }
    let hint = hint.map_or(String::new(), |hint| format!("hint: {hint}\n"));
    say(&format!("error: {text}\n{hint}"));
}

/// Prints lines for people. Whoever has closed standard error does not want to know.
pub(crate) fn say(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
