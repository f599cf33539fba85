//! The program `tope`. Sockets, files and signals live here and nowhere else.
//!
//! | room | what is in it |
//! |---|---|
//! | [`cli`] | one file a command |
//! | [`settings`] | what a policy file says about the program itself |
//! | [`replay`] | a log through the same pass that enforces |

pub mod cli;
pub mod replay;
pub mod settings;
