//! `--decisions`: a JSON object for every request.
//!
//! ```json
//! {"line": 17, "allowed": false, "refused_by": "login", "limits": [{"limit": "login", "allowed": false, "remaining": 0, "reset_us": 11999000, "retry_us": 11999000}]}
//! ```
//!
//! With several logs `"file"` stands first. A request whose path may not pass has `"status": 400` and no limits.

use std::io::{self, Write};

use tope::Budget;
use tope::core::Decision;

use crate::pass::Outcome;

/// Writes decisions.
pub struct Decisions {
    out: Box<dyn Write>,
    /// Names as JSON strings: of budgets by their places, and of files if there are several.
    budgets: Vec<(String, bool)>,
    files: Vec<String>,
}

impl Decisions {
    /// Writes to `out` about requests of `files`, judged by `budgets`.
    pub fn new(out: Box<dyn Write>, budgets: &[Budget], files: &[String]) -> Self {
        let budgets = budgets.iter().map(|budget| (quoted(&budget.name), budget.shadow)).collect();
        let files = if files.len() > 1 { files.iter().map(|name| quoted(name)).collect() } else { Vec::new() };
        Self { out, budgets, files }
    }

    /// Writes what became of a line.
    ///
    /// # Errors
    /// What the writer says.
    pub fn write(&mut self, file: usize, line: u64, outcome: Outcome<'_>, rows: &[(u16, Decision)]) -> io::Result<()> {
        let out = &mut self.out;
        out.write_all(b"{")?;
        if let Some(name) = self.files.get(file) {
            write!(out, "\"file\": {name}, ")?;
        }
        let Outcome::Judged { allowed, refused_by, .. } = outcome else {
            return writeln!(
                out,
                "\"line\": {line}, \"allowed\": false, \"refused_by\": null, \"status\": 400, \"limits\": []}}"
            );
        };
        let refused_by = refused_by.map_or("null", |budget| &self.budgets[usize::from(budget)].0);
        write!(out, "\"line\": {line}, \"allowed\": {allowed}, \"refused_by\": {refused_by}, \"limits\": [")?;
        for (i, (budget, decision)) in rows.iter().enumerate() {
            let (name, shadow) = &self.budgets[usize::from(*budget)];
            let comma = if i == 0 { "" } else { ", " };
            write!(
                out,
                "{comma}{{\"limit\": {name}, \"allowed\": {}, \"remaining\": {}, \"reset_us\": {}, \"retry_us\": ",
                decision.allowed(),
                decision.remaining,
                decision.reset_us
            )?;
            match decision.retry_us() {
                Some(us) => write!(out, "{us}")?,
                None => out.write_all(b"null")?,
            }
            out.write_all(if *shadow { b", \"shadow\": true}" } else { b"}" })?;
        }
        out.write_all(b"]}\n")
    }

    /// Writes what is still held back.
    ///
    /// # Errors
    /// What the writer says.
    pub fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
