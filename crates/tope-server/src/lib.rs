//! The program `tope`. Sockets, files and signals live here and nowhere else.

pub mod admin;
pub mod gateway;
pub mod lingering;
pub mod listen;
pub mod reload;
pub mod shutdown;
pub mod state;
pub mod telemetry;
