//! What a policy file may ask of the world around it. Nothing in this crate reads files or the environment by itself.

use std::io;

/// The environment and the files beside the policy, as the program that embeds us gives them.
pub trait Surroundings {
    /// The value of an environment variable, for `${NAME}`.
    fn variable(&self, name: &str) -> Option<String>;

    /// The text of a file that the policy names, relative to the policy's own folder.
    ///
    /// # Errors
    /// When it can't be read; the policy is refused with this reason.
    fn file(&self, name: &str) -> io::Result<String>;
}

/// Nothing around: no variables, no files.
impl Surroundings for () {
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    fn file(&self, _name: &str) -> io::Result<String> {
        Err(io::Error::new(io::ErrorKind::NotFound, "there are no files here"))
    }
}
