//! `tope completions`: what a shell needs to complete our commands.

use std::io::Write;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use super::Tope;
use super::out::Out;

/// Print completions for a shell
///
/// For example: `tope completions bash > ~/.local/share/bash-completion/completions/tope`
#[derive(Debug, clap::Args)]
pub struct Completions {
    /// Which shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Prints them.
///
/// # Errors
/// When they can't be written.
pub fn run(args: &Completions) -> anyhow::Result<ExitCode> {
    // The generator writes at once and panics when it can't, so it is given a buffer.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Tope::command(), "tope", &mut script);
    let mut out = Out::new();
    out.write_all(&script)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
