//! One strict normalisation of paths.

/// How paths are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// `/LOGIN` is `/login`.
    pub ignore_case: bool,
    /// What becomes of `%2F`, `%5C` and a raw backslash.
    pub encoded_slash: EncodedSlash,
}

/// What becomes of an encoded slash in a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EncodedSlash {
    /// The request is refused with 400.
    #[default]
    Reject,
    /// Limits that match either reading apply: the one with the slash decoded, and the one without.
    Both,
}
