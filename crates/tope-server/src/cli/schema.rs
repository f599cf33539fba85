//! `tope schema`: the JSON Schema of policy files.

use std::io::Write;
use std::process::ExitCode;

use super::out::Out;

/// Print the JSON Schema of policy files, for editors
///
/// Point an editor at it with a first line in the policy:
/// `# yaml-language-server: $schema=tope.schema.json`
#[derive(Debug, clap::Args)]
pub struct Schema {}

/// Prints it.
///
/// # Errors
/// When it can't be written.
pub fn run(_: &Schema) -> anyhow::Result<ExitCode> {
    let mut out = Out::new();
    writeln!(out, "{:#}", tope::policy::schema())?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
