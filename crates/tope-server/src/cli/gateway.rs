//! `tope gateway`: stand in front of an API.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::run::Options;

/// Stand in front of an API and enforce a policy
#[derive(Debug, clap::Args)]
pub struct Gateway {
    /// The policy file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Count and report everything, refuse nothing
    #[arg(long)]
    pub shadow: bool,
    /// Listen here instead of where the policy says
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// Threads that serve; as many as there are cores unless said
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub workers: Option<u16>,
}

/// Runs the gateway until it is told to stop.
///
/// # Errors
/// When the policy can't be read or the gateway can't begin.
pub fn run(args: &Gateway) -> anyhow::Result<ExitCode> {
    let Gateway { file, shadow, listen, workers } = args;
    crate::run::gateway(&Options { file: file.clone(), shadow: *shadow, listen: *listen, workers: *workers })
}
