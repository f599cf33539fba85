//! The summary of a replay, for people and for machines.

use std::io::{self, Write};

use serde_json::{Value, json};
use tope::Budget;

use super::tally::{PerBudget, Place, Tally};
use crate::text::table::Table;
use crate::text::words::{count, moment, share, span};

/// So many of the callers that a limit refused are named.
const MOST_CALLERS: usize = 5;

/// What a replay found, with the names that it needs.
#[derive(Debug)]
pub struct Report<'a> {
    tally: &'a Tally,
    files: &'a [String],
    limits: Vec<Row>,
}

/// A limit, with what all its plans' rates of one name said.
#[derive(Debug)]
struct Row {
    name: String,
    shadow: bool,
    said: PerBudget,
}

impl<'a> Report<'a> {
    /// What was counted over `budgets` in logs of these names.
    pub fn new(tally: &'a Tally, budgets: &[Budget], files: &'a [String]) -> Self {
        let mut limits: Vec<Row> = Vec::new();
        for (budget, said) in budgets.iter().zip(&tally.budgets) {
            match limits.iter_mut().find(|row| row.name == budget.name) {
                Some(row) => row.said.add(said),
                None => limits.push(Row { name: budget.name.clone(), shadow: budget.shadow, said: said.clone() }),
            }
        }
        Self { tally, files, limits }
    }

    fn place(&self, place: Place) -> String {
        format!("{}:{}", self.files[place.file], place.line)
    }

    /// Writes it in plain words.
    ///
    /// # Errors
    /// What the writer says.
    pub fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        self.write_head(out)?;
        self.write_limits(out)?;
        self.write_callers(out)?;
        self.write_notes(out)
    }

    fn write_head(&self, out: &mut impl Write) -> io::Result<()> {
        let tally = self.tally;
        let requests = if tally.requests == 1 { "request" } else { "requests" };
        write!(out, "{} {requests}", count(tally.requests))?;
        if let Some((first, last)) = tally.span_us {
            write!(out, ", {} to {} UTC ({})", moment(first), moment(last), span(last - first))?;
        }
        writeln!(out, "\n")?;
        let mut table = Table::new("  lrr");
        let mut row = |word: &str, number| {
            table.row([word.to_owned(), count(number), share(number, tally.requests)]);
        };
        row("admitted", tally.admitted);
        row("refused", tally.refused);
        if tally.bad_paths > 0 {
            row("refused 400, a path that may not pass", tally.bad_paths);
        }
        table.write(out)
    }

    fn write_limits(&self, out: &mut impl Write) -> io::Result<()> {
        if self.limits.is_empty() {
            return writeln!(out, "\nthe policy has no limits");
        }
        writeln!(out)?;
        let mut table = Table::new("lrrrl");
        table.row(["limit", "charged", "refused", "share", "first refusal"].map(str::to_owned));
        for Row { name, shadow, said } in &self.limits {
            let first = said.first_refusal;
            table.row([
                if *shadow { format!("{name} (shadow)") } else { name.clone() },
                count(said.charged),
                count(said.refused),
                share(said.refused, said.applied),
                first.map_or("-".to_owned(), |(us, place)| format!("{}, {}", moment(us), self.place(place))),
            ]);
        }
        table.write(out)
    }

    fn write_callers(&self, out: &mut impl Write) -> io::Result<()> {
        let mut table = Table::new("ll");
        for Row { name, said, .. } in &self.limits {
            let callers = said.most_refused(MOST_CALLERS);
            if !callers.is_empty() {
                let callers: Vec<_> = callers.iter().map(|(who, times)| format!("{who} ({})", count(*times))).collect();
                table.row([name.clone(), callers.join(", ")]);
            }
        }
        if !table.is_empty() {
            writeln!(out, "\nrefused most")?;
            table.write(out)?;
        }
        let Some(minute) = self.tally.busiest() else { return Ok(()) };
        let (requests, refused) = (count(minute.requests), count(minute.refused));
        let from = moment(minute.from_us);
        let from = from.get(..16).unwrap_or(&from);
        writeln!(out, "\nbusiest minute: {from} UTC with {requests} requests, {refused} of them refused")
    }

    fn write_notes(&self, out: &mut impl Write) -> io::Result<()> {
        let tally = self.tally;
        let mut notes = Vec::new();
        if let Some((place, broken)) = &tally.first_broken {
            let column = broken.column.map_or(String::new(), |column| format!(":{column}"));
            let lines = if tally.broken == 1 { "line is no request" } else { "lines are no requests" };
            let which = if tally.broken == 1 { "" } else { "the first at " };
            notes.push(format!("{} {lines}, {which}{}{column}: {broken}", count(tally.broken), self.place(*place)));
        }
        if tally.late > 0 {
            let lines = if tally.late == 1 { "line is" } else { "lines are" };
            notes
                .push(format!("{} {lines} older than one before; judged at the latest time so far", count(tally.late)));
        }
        if tally.without_path > 0 {
            notes.push(format!("{} requests have no path in the log; judged as `/`", count(tally.without_path)));
        }
        if tally.without_address > 0 {
            notes.push(format!("{} requests have no address in the log", count(tally.without_address)));
        }
        if tally.restarts > 0 {
            let times = if tally.restarts == 1 { "once".to_owned() } else { format!("{} times", tally.restarts) };
            notes.push(format!("the server began anew {times}; budgets are kept, as with `memory.file`"));
        }
        if tally.compared > 0 {
            let first =
                tally.first_differing.map_or(String::new(), |place| format!(", the first at {}", self.place(place)));
            notes.push(format!(
                "{} of {} verdicts differ from the log's{first}",
                count(tally.differing),
                count(tally.compared)
            ));
        }
        if !notes.is_empty() {
            writeln!(out)?;
        }
        notes.iter().try_for_each(|note| writeln!(out, "note: {note}"))
    }

    /// The same for machines. Times are Unix microseconds.
    pub fn to_json(&self) -> Value {
        let tally = self.tally;
        let place = |place: Place| json!({"file": self.files[place.file], "line": place.line});
        let limits = self.limits.iter().map(|Row { name, shadow, said }| {
            let callers = said.most_refused(MOST_CALLERS);
            let callers: Vec<_> = callers.iter().map(|(who, times)| json!({"caller": who, "refused": times})).collect();
            json!({
                "limit": name,
                "shadow": shadow,
                "applied": said.applied,
                "charged": said.charged,
                "refused": said.refused,
                "first_refusal": said.first_refusal.map(|(us, at)| json!({"time_us": us, "at": place(at)})),
                "refused_most": callers,
            })
        });
        json!({
            "requests": tally.requests,
            "admitted": tally.admitted,
            "refused": tally.refused,
            "bad_paths": tally.bad_paths,
            "from_us": tally.span_us.map(|(first, _)| first),
            "to_us": tally.span_us.map(|(_, last)| last),
            "limits": limits.collect::<Vec<_>>(),
            "busiest_minute": tally.busiest().map(|minute| json!({
                "from_us": minute.from_us, "requests": minute.requests, "refused": minute.refused,
            })),
            "logs": self.files.iter().zip(&tally.formats).map(|(file, format)| json!({
                "file": file, "format": format.map(super::formats::Format::name),
            })).collect::<Vec<_>>(),
            "broken": tally.broken,
            "first_broken": tally.first_broken.as_ref().map(|(at, broken)| json!({
                "at": place(*at), "column": broken.column, "why": broken.why,
            })),
            "late": tally.late,
            "without_path": tally.without_path,
            "without_address": tally.without_address,
            "restarts": tally.restarts,
            "compared": tally.compared,
            "differing": tally.differing,
            "first_differing": tally.first_differing.map(place),
        })
    }
}
