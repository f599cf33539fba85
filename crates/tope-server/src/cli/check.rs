//! `tope check`
use std::path::PathBuf;
use std::process::ExitCode;
/// Say in plain words what a policy means, and run its tests
#[derive(Debug, clap::Args)]
pub struct Check {
    /// The policy file
    #[arg(value_name = "FILE")]
    file: PathBuf,
}
/// Runs.
///
/// # Errors
/// Bad input.
pub fn run(args: &Check) -> anyhow::Result<ExitCode> {
    super::load::policy(&args.file)?;
    Ok(ExitCode::from(super::NO))
}
