//! What a browser needs to be able to read an answer of ours.

/// Which pages may read answers.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Origins as browsers send them, `https://app.example.org`; `*` is any.
    pub origins: Vec<String>,
}
