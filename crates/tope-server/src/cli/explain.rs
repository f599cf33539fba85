//! `tope explain`
use std::path::PathBuf;
use std::process::ExitCode;
/// Say what a policy makes of one request
#[derive(Debug, clap::Args)]
pub struct Explain {
    /// The policy file
    #[arg(value_name = "FILE")]
    file: PathBuf,
}
/// Runs.
///
/// # Errors
/// Bad input.
pub fn run(args: &Explain) -> anyhow::Result<ExitCode> {
    super::load::policy(&args.file)?;
    Ok(ExitCode::from(super::NO))
}
