//! The program `tope`. Sockets, files and signals live here and nowhere else.

pub mod gateway;
pub mod lingering;
pub mod listen;
pub mod shutdown;
pub mod telemetry;
