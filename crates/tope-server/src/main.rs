//! The program `tope`.

use std::process::ExitCode;

fn main() -> ExitCode {
    tope_server::cli::main()
}
