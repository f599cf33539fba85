//! How things are said on standard output: columns, numbers and times, for whoever says them.
//!
//! | room | what is in it |
//! |---|---|
//! | `table` | columns of text that stand under each other |
//! | `words` | numbers and times in plain words |

pub(crate) mod table;
pub(crate) mod words;
