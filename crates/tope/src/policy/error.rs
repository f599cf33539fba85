//! What is wrong with a file, and where.

use std::fmt;
use std::sync::Arc;

/// A place in a file: line and column, both from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Which of the files that were read.
    pub(super) sheet: u8,
    pub(super) line: u32,
    pub(super) column: u32,
}

impl Place {
    /// The line, from 1.
    pub const fn line(self) -> u32 {
        self.line
    }

    /// The column in characters, from 1.
    pub const fn column(self) -> u32 {
        self.column
    }

    /// The place so many characters further on the same line.
    pub(super) fn plus(self, characters: usize) -> Self {
        Self { column: self.column.saturating_add(u32::try_from(characters).unwrap_or(u32::MAX)), ..self }
    }
}

/// A value, and where it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// Where it was written.
    pub place: Place,
}

impl<T> At<T> {
    /// `value`, written at `place`.
    pub const fn new(value: T, place: Place) -> Self {
        Self { value, place }
    }
}

impl<T> std::ops::Deref for At<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// One thing that is wrong (or, as a [`Warning`], doubtful): what, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub(super) file: Arc<str>,
    pub(super) place: Place,
    pub(super) line: String,
    pub(super) caret: usize,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

/// Something that is allowed and seldom meant.
pub type Warning = Problem;

impl Problem {
    /// The name of the file.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Where in the file.
    pub const fn place(&self) -> Place {
        self.place
    }

    /// What is wrong, in one sentence.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Problem {
    /// `file:line:column: message`, the line with a caret, and the hint.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.place.line, self.place.column, self.message)?;
        if !self.line.is_empty() {
            let number = self.place.line.to_string();
            let margin = " ".repeat(number.len());
            write!(f, "\n{number} | {}\n{margin} | {}^", self.line, " ".repeat(self.caret))?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

/// Why a file is no policy: at least one problem, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors(Vec<Problem>);

impl Errors {
    pub(super) fn new(problems: Vec<Problem>) -> Self {
        Self(problems)
    }

    /// The problems, in the order of the file.
    pub fn problems(&self) -> &[Problem] {
        &self.0
    }
}

/// So many problems are told in full; who has more has made one mistake many times.
const TOLD: usize = 20;

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.0.iter().take(TOLD).enumerate() {
            let gap = if number == 0 { "" } else { "\n\n" };
            write!(f, "{gap}{problem}")?;
        }
        match self.0.len().saturating_sub(TOLD) {
            0 => Ok(()),
            more => write!(f, "\n\nand {more} more"),
        }
    }
}

impl std::error::Error for Errors {}
