//! Problems as they are found, and what must not be shown of the lines they stand on.

use std::fmt;
use std::sync::Arc;

use super::error::{Errors, Place, Problem};

/// The files that were read, and what is wrong in them.
pub struct Findings {
    sheets: Vec<Sheet>,
    found: Vec<Finding>,
}

struct Sheet {
    name: Arc<str>,
    text: String,
    /// What a person must not see: places and lengths in characters.
    secrets: Vec<(Place, usize)>,
    /// Scalars that variables went into: place, length as written, and what each variable stands for.
    filled: Vec<(Place, usize, Vec<Filled>)>,
}

/// More problems are one mistake made many times.
const MOST: usize = 1_000;

/// A variable as it was written, and its value.
#[derive(Clone)]
pub(super) struct Filled {
    pub(super) written: String,
    pub(super) value: String,
}

/// One problem, as it is found.
#[derive(Debug)]
pub struct Finding {
    place: Place,
    message: String,
    hint: Option<String>,
    /// Whether the line may be shown.
    line: bool,
}

impl Finding {
    /// Says what to do about it.
    pub fn hint(&mut self, hint: impl Into<String>) -> &mut Self {
        self.hint = Some(hint.into());
        self
    }

    /// "did you mean", where something near enough is there.
    pub(super) fn did_you_mean(&mut self, nearest: Option<&str>) -> &mut Self {
        if let Some(nearest) = nearest {
            self.hint = Some(format!("did you mean `{nearest}`?"));
        }
        self
    }

    /// Keeps the line itself to ourselves.
    pub(super) fn without_line(&mut self) -> &mut Self {
        self.line = false;
        self
    }
}

impl fmt::Debug for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Findings").field("found", &self.found).finish_non_exhaustive()
    }
}

impl Findings {
    pub(super) fn new(name: &str, text: &str) -> Self {
        let mut findings = Self { sheets: Vec::new(), found: Vec::new() };
        findings.open(name, text);
        findings
    }

    /// Begins another file; returns its number for [`Place`].
    pub(super) fn open(&mut self, name: &str, text: &str) -> u8 {
        let sheet = Sheet { name: name.into(), text: text.to_owned(), secrets: Vec::new(), filled: Vec::new() };
        self.sheets.push(sheet);
        u8::try_from(self.sheets.len() - 1).expect("a policy names one key file")
    }

    /// Something is wrong at `place`.
    pub fn blame(&mut self, place: Place, message: impl Into<String>) -> &mut Finding {
        self.found.truncate(MOST - 1);
        self.found.push(Finding { place, message: message.into(), hint: None, line: true });
        let last = self.found.len() - 1;
        &mut self.found[last]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Never show so many characters at `place`.
    pub(super) fn hide(&mut self, place: Place, length: usize) {
        self.sheets[usize::from(place.sheet)].secrets.push((place, length));
    }

    /// Variables went into the scalar at `place`.
    pub(super) fn filled(&mut self, place: Place, length: usize, variables: Vec<Filled>) {
        self.sheets[usize::from(place.sheet)].filled.push((place, length, variables));
    }

    /// Whether a variable went into the scalar around `place`.
    pub(super) fn is_filled(&self, place: Place) -> bool {
        self.variables_at(place).is_some()
    }

    fn variables_at(&self, place: Place) -> Option<&[Filled]> {
        let filled = &self.sheets[usize::from(place.sheet)].filled;
        let around =
            |(from, length, _): &&(Place, usize, Vec<Filled>)| from.line == place.line && within(*from, *length, place);
        filled.iter().find(around).map(|(_, _, variables)| variables.as_slice())
    }

    /// All that was found so far, rendered, in the order of the files.
    pub(super) fn take(&mut self) -> Vec<Problem> {
        let mut found = std::mem::take(&mut self.found);
        found.sort_by_key(|finding| finding.place);
        found.into_iter().map(|finding| self.render(finding)).collect()
    }

    /// `value`, unless something was found.
    pub(super) fn or_errors<T>(&mut self, value: Option<T>) -> Result<T, Errors> {
        match value {
            Some(value) if self.is_empty() => Ok(value),
            _ => Err(Errors::new(self.take())),
        }
    }

    fn render(&self, finding: Finding) -> Problem {
        let sheet = &self.sheets[usize::from(finding.place.sheet)];
        let (line, caret) = if finding.line { sheet.shown(finding.place) } else { (String::new(), 0) };
        let clean = |text: String| plain(&self.without_values(text, finding.place));
        Problem {
            file: Arc::clone(&sheet.name),
            place: finding.place,
            line,
            caret,
            message: clean(finding.message),
            hint: finding.hint.map(clean),
        }
    }

    /// The text with every variable's value replaced by the variable: short values only where the blame falls on
    /// the scalar that holds them, so that a `1` elsewhere stays what it is.
    fn without_values(&self, mut text: String, place: Place) -> String {
        const TELLING: usize = 4;
        let here = self.variables_at(place).unwrap_or_default().iter();
        let everywhere = self.sheets.iter().flat_map(|sheet| &sheet.filled).flat_map(|(_, _, variables)| variables);
        let telling = everywhere.filter(|filled| filled.value.len() >= TELLING);
        for filled in here.chain(telling) {
            if !filled.value.is_empty() && !filled.written.contains(&filled.value) {
                text = text.replace(&filled.value, &filled.written);
            }
        }
        text
    }
}

fn within(from: Place, length: usize, place: Place) -> bool {
    (from.column..=from.plus(length).column).contains(&place.column)
}

impl Sheet {
    /// The line at `place` with its secrets as stars, cut to a width that fits a terminal, and where the caret goes.
    fn shown(&self, place: Place) -> (String, usize) {
        const WIDTH: usize = 120;
        let index = usize::try_from(place.line).unwrap_or(usize::MAX).saturating_sub(1);
        let line = self.text.lines().nth(index).unwrap_or_default();
        let mut shown: Vec<char> = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        for (from, length) in self.secrets.iter().filter(|(from, _)| from.line == place.line) {
            let from = column_index(*from);
            for c in shown.iter_mut().skip(from).take(*length) {
                *c = '*';
            }
        }
        let caret = column_index(place).min(shown.len());
        let from = if shown.len() > WIDTH { caret.saturating_sub(WIDTH / 2) } else { 0 };
        let cut: String = shown.into_iter().skip(from).take(WIDTH).collect();
        (cut.trim_end().to_owned(), caret - from)
    }
}

fn column_index(place: Place) -> usize {
    usize::try_from(place.column).unwrap_or(usize::MAX).saturating_sub(1)
}

/// The text without characters that could make a terminal do things.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// The option that `word` was probably meant to be.
pub(super) fn nearest<'a>(word: &str, options: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |option: &str| strsim::damerau_levenshtein(word, option);
    let near =
        |option: &&str| distance(option) <= 1 + word.chars().count() / 4 && distance(option) < option.chars().count();
    options.into_iter().filter(near).min_by_key(|option| distance(option))
}
