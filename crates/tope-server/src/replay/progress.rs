//! The bar of a long replay: on standard error, and only where that is a terminal.

use std::cell::Cell;
use std::io::IsTerminal;
use std::rc::Rc;

use indicatif::{ProgressBar, ProgressStyle};

/// Looked at once in so many lines.
const EVERY: u64 = 4096;

/// How much of all logs is read, in bytes as they lie on disk.
#[derive(Debug)]
pub struct Progress {
    read: Rc<Cell<u64>>,
    bar: Option<ProgressBar>,
    lines: u64,
}

impl Progress {
    /// A bar for so many bytes (a count alone where they can't be known); nothing where nobody would see it.
    pub fn new(bytes: Option<u64>) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let (bar, template) = match bytes {
                Some(bytes) => {
                    (ProgressBar::new(bytes), "{bar:30} {percent:>3} %  {bytes}/{total_bytes}  {msg}  {eta} left")
                }
                None => (ProgressBar::new_spinner(), "{spinner} {bytes}  {msg}  {elapsed}"),
            };
            bar.with_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        Self { read: Rc::default(), bar, lines: 0 }
    }

    /// Where readers count their bytes.
    pub fn read(&self) -> &Rc<Cell<u64>> {
        &self.read
    }

    /// One more line is done.
    pub fn line(&mut self) {
        self.lines += 1;
        if self.lines.is_multiple_of(EVERY)
            && let Some(bar) = &self.bar
        {
            bar.set_position(self.read.get());
            bar.set_message(format!("{} lines", self.lines));
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
