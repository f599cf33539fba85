//! The command line: one file a command. Standard output is data, standard error is talk.
//!
//! | room | what is in it |
//! |---|---|
//! | [`gateway`] | `tope gateway`: stand in front of an API |
//! | [`check`] | `tope check`: a policy in plain words, its warnings, its tests |
//! | [`explain`] | `tope explain`: one request under a policy |
//! | [`replay`] | `tope replay`: a log under a policy |
//! | [`key`] | `tope key`: a new API key |
//! | [`schema`] | `tope schema`: the JSON Schema of policy files |
//! | [`completions`] | `tope completions`: for a shell |
//! | `view` | a policy as plain data, in the words of its file |
//! | `plain` | limits in plain words |
//! | `trial` | a policy's tests, run |
//! | `request` | a request as it is written on a command line or in a test |
//! | `out` | standard output |

pub mod check;
pub mod completions;
pub mod explain;
pub mod gateway;
pub mod key;
mod out;
mod plain;
pub mod replay;
mod request;
pub mod schema;
mod trial;
mod view;

use std::process::ExitCode;

use crate::talk;
use clap::{Parser, Subcommand};

/// The answer is no: a test of the policy fails.
pub(crate) const NO: u8 = 1;

/// What was given can't be used: arguments, a policy, a log.
const BAD_INPUT: u8 = 2;

const EXAMPLES: &str = "\
Begin here:
  tope check policy.yaml                        what does this file mean?
  tope explain policy.yaml 'POST /login'        what happens to this request?
  tope replay policy.yaml access.log            what would it have refused yesterday?
  tope gateway policy.yaml                      put it in front of the API

Exit codes: 0 yes or done, 1 the answer is no (a test of the policy fails), 2 bad input.";

/// tope puts a ceiling on the traffic of an API before that traffic can hurt.
///
/// One YAML file says what to protect, who is calling, and how much each may have.
#[derive(Debug, Parser)]
#[command(name = "tope", version, after_help = EXAMPLES, max_term_width = 110, propagate_version = false)]
pub struct Tope {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Gateway(gateway::Gateway),
    Check(check::Check),
    Explain(explain::Explain),
    Replay(replay::Replay),
    Key(key::Key),
    Schema(schema::Schema),
    Completions(completions::Completions),
}

/// Reads the command line, does what it says, and gives the exit code.
pub fn main() -> ExitCode {
    let command = match Tope::try_parse() {
        Ok(tope) => tope.command,
        Err(error) => {
            let _ = error.print(); // a closed pipe ends quietly
            return ExitCode::from(if error.use_stderr() { BAD_INPUT } else { 0 });
        }
    };
    let done = match &command {
        Command::Gateway(args) => gateway::run(args),
        Command::Check(args) => check::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Key(args) => key::run(args),
        Command::Schema(args) => schema::run(args),
        Command::Completions(args) => completions::run(args),
    };
    done.unwrap_or_else(|error| {
        talk::error(&error);
        ExitCode::from(BAD_INPUT)
    })
}
