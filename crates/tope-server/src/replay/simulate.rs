//! The loop of a replay: every line once, judged at the log's time and never at ours.

use std::fmt;
use std::io;

use http::HeaderMap;
use tope::core::Decision;
use tope::store::StoreError;

use super::decisions::Decisions;
use super::formats::{Broken, Format, Line};
use super::lines::Raw;
use super::order::{Held, MOST, Order, Turn};
use super::progress::Progress;
use super::source::Source;
use super::tally::{Place, Tally};
use crate::pass::Pass;

/// Why a replay can't go on.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReplayError {
    /// A log can't be read, after so many lines.
    Log(String, u64, io::Error),
    /// The decisions can't be written.
    Decisions(io::Error),
    /// The store failed.
    Store(StoreError),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Log(name, 0, _) => write!(f, "{name}: the log can't be read"),
            Self::Log(name, lines, _) => write!(f, "{name}:{lines}: the log can't be read beyond this line"),
            Self::Decisions(_) => f.write_str("the decisions can't be written"),
            Self::Store(_) => f.write_str("the store failed"),
        }
    }
}

impl std::error::Error for ReplayError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Log(_, _, error) | Self::Decisions(error) => Some(error),
            Self::Store(error) => Some(error),
        }
    }
}

/// Judges every line of all logs, one log after the other. Without `format` each log's own is found.
///
/// # Errors
/// When a log can't be read, the decisions can't be written or the store fails.
pub fn replay(
    pass: &mut impl Pass,
    logs: &[Source],
    format: Option<Format>,
    decisions: Option<Decisions>,
    progress: &mut Progress,
) -> Result<Tally, ReplayError> {
    let tally = Tally::new(pass.budgets(), logs.len());
    let (rows, headers) = (Vec::new(), HeaderMap::new());
    let mut replay = Replay { pass, tally, decisions, rows, headers, order: Order::new(MOST), latest_us: 0 };
    for (file, log) in logs.iter().enumerate() {
        let mut number = 0;
        let trouble = |number| move |error| ReplayError::Log(log.name(), number, error);
        let mut lines = log.open(progress.read()).map_err(trouble(0))?;
        let mut known = format;
        while let Some(raw) = lines.read().map_err(trouble(number))? {
            number += 1;
            progress.line();
            let place = Place { file, line: number };
            match raw {
                Raw::Bytes(line) => replay.line(place, line, &mut known)?,
                Raw::TooLong => replay.tally.broken(place, Broken::new("the line is longer than 1 MiB")),
            }
        }
        replay.tally.formats[file] = known;
    }
    replay.order.finish();
    replay.ready()?;
    replay.tally.restarts = replay.order.restarts();
    if let Some(decisions) = &mut replay.decisions {
        decisions.finish().map_err(ReplayError::Decisions)?;
    }
    Ok(replay.tally)
}

struct Replay<'p, P> {
    pass: &'p mut P,
    tally: Tally,
    decisions: Option<Decisions>,
    rows: Vec<(u16, Decision)>,
    headers: HeaderMap,
    order: Order,
    latest_us: u64,
}

impl<P: Pass> Replay<'_, P> {
    fn line(&mut self, place: Place, bytes: &[u8], known: &mut Option<Format>) -> Result<(), ReplayError> {
        let bytes = if place.line == 1 { bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes) } else { bytes };
        if bytes.trim_ascii().is_empty() {
            return Ok(());
        }
        if known.is_none() {
            *known = Format::detect(bytes);
        }
        self.headers.clear();
        let format = known.unwrap_or_else(|| Format::guess(bytes));
        match format.parse(bytes, &mut self.headers) {
            Ok(line) => self.request(place, &line, bytes),
            Err(broken) => {
                self.tally.broken(place, broken);
                Ok(())
            }
        }
    }

    fn request(&mut self, place: Place, line: &Line<'_>, bytes: &[u8]) -> Result<(), ReplayError> {
        let Some(ours) = &line.ours else {
            // Time only goes forward: a line older than the latest is judged at the latest.
            self.tally.late += u64::from(line.time_us < self.latest_us);
            self.latest_us = self.latest_us.max(line.time_us);
            return self.judge(place, line, self.latest_us);
        };
        let turn = self.order.turn(ours.seq, line.time_us);
        self.ready()?;
        match turn {
            Turn::Now => self.judge(place, line, line.time_us),
            Turn::Later => {
                let held = Held { file: place.file, line: place.line, time_us: line.time_us, bytes: bytes.into() };
                self.order.hold(ours.seq, held);
                self.ready()
            }
        }
    }

    /// Judges the lines of our own log whose turn it is.
    fn ready(&mut self) -> Result<(), ReplayError> {
        while let Some(held) = self.order.ready() {
            let place = Place { file: held.file, line: held.line };
            let line = Format::Access.parse(&held.bytes, &mut self.headers);
            let line = line.expect("a line that waits was read before");
            self.judge(place, &line, held.time_us)?;
        }
        Ok(())
    }

    fn judge(&mut self, place: Place, line: &Line<'_>, now_us: u64) -> Result<(), ReplayError> {
        let judged = self.pass.judge(line, &self.headers, now_us, &mut self.rows);
        let outcome = judged.map_err(ReplayError::Store)?;
        let rows: &[_] = if matches!(outcome, crate::pass::Outcome::BadPath) { &[] } else { &self.rows };
        self.tally.request(place, line, now_us, outcome, rows);
        match &mut self.decisions {
            Some(decisions) => decisions.write(place.file, place.line, outcome, rows).map_err(ReplayError::Decisions),
            None => Ok(()),
        }
    }
}
