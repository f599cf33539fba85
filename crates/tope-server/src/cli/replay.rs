//! `tope replay`: what a policy would have done to the requests of a log.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use tope::Limiter;

use super::out::Out;
use crate::load;
use crate::pass::{Limited, Pass};
use crate::replay::decisions::Decisions;
use crate::replay::formats::Format;
use crate::replay::progress::Progress;
use crate::replay::report::Report;
use crate::replay::simulate;
use crate::replay::source::Source;
use crate::replay::tally::Tally;
use crate::talk::BadInput;

/// Say what a policy would have done to the requests of a log
///
/// Judges every line with the code that enforces, at the line's time. Reads JSON lines
/// ({"time", "ip", "method", "path", "headers", "status", "cost"}; the time in RFC 3339 or Unix seconds, read to the
/// microsecond), tope's own access log, and the common and combined formats of Apache and nginx; plain or gzip.
#[derive(Debug, clap::Args)]
pub struct Replay {
    /// The policy file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Logs, oldest first; `-` is standard input
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
    /// How the logs are written, where their first good line would mislead
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Write a JSON line for every request: which limits applied and what each decided
    #[arg(long, value_name = "OUT.jsonl")]
    decisions: Option<PathBuf>,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

/// Replays the logs and prints the summary.
///
/// # Errors
/// When the policy or a log can't be read, or a log holds no request.
pub fn run(args: &Replay) -> anyhow::Result<ExitCode> {
    let policy = load::policy(&args.file)?;
    let logs: Vec<Source> = args.logs.iter().map(|log| Source::new(log)).collect();
    let bytes = length(&logs)?;
    let names: Vec<String> = logs.iter().map(Source::name).collect();

    let store = load::store(&policy)?;
    let mut pass = Limited::new(Limiter::new(store, policy.policy)?);
    let decisions = match &args.decisions {
        Some(path) => Some(Decisions::new(create(path, args)?, pass.budgets(), &names)),
        None => None,
    };
    let mut progress = Progress::new(bytes);
    let tally = simulate::replay(&mut pass, &logs, args.format, decisions, &mut progress);
    progress.finish();
    let tally = tally?;
    if tally.requests == 0 {
        return Err(no_requests(&tally, &names).into());
    }
    let report = Report::new(&tally, pass.budgets(), &names);
    let mut out = Out::new();
    if args.json {
        writeln!(out, "{:#}", report.to_json())?;
    } else {
        report.write_text(&mut out)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Bytes in all logs, if they can be known. Every log is looked at before the first is judged.
fn length(logs: &[Source]) -> anyhow::Result<Option<u64>> {
    let mut sum = Some(0);
    for log in logs {
        let length = match log.length() {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                let hint = format!("name the logs in it: {}/*.log", log.name().trim_end_matches('/'));
                return Err(BadInput::new(format!("{}: this is a directory, not a log", log.name())).hint(hint).into());
            }
            Err(error) => return Err(error).with_context(|| format!("{}: the log can't be read", log.name())),
        };
        sum = sum.zip(length).map(|(sum, length)| sum + length);
    }
    if logs.iter().filter(|log| log.path().is_none()).count() > 1 {
        return Err(BadInput::new("standard input is named twice").into());
    }
    Ok(sum)
}

/// The file for decisions, which must not be one that is read.
fn create(path: &Path, args: &Replay) -> anyhow::Result<Box<dyn Write>> {
    let same = |read: &PathBuf| matches!((read.canonicalize(), path.canonicalize()), (Ok(a), Ok(b)) if a == b);
    if std::iter::once(&args.file).chain(&args.logs).any(same) {
        let message = format!("{}: the decisions would be written over what is read", path.display());
        return Err(BadInput::new(message).hint("give --decisions a file of its own").into());
    }
    let file = File::create(path).with_context(|| format!("{}: the decisions can't be written", path.display()))?;
    Ok(Box::new(BufWriter::with_capacity(1 << 16, file)))
}

fn no_requests(tally: &Tally, names: &[String]) -> BadInput {
    match &tally.first_broken {
        Some((place, broken)) => {
            let column = broken.column.map_or(String::new(), |column| format!(":{column}"));
            BadInput::new(format!("{}:{}{column}: {broken}; no other line is a request", names[place.file], place.line))
                .hint("logs are JSON lines, tope's access log, or the combined format; see `tope help replay`")
        }
        None => BadInput::new(format!("{}: the log is empty", names.join(", "))),
    }
}
