//! `Retry-After` in whole seconds, RFC 9110 section 10.2.3.

use crate::Verdict;

/// The name of the field, lower case.
pub const NAME: &str = "retry-after";

/// Seconds to wait, at least 1; `None` when the request passes or never can. Obeyed to the second it means admitted,
/// if nothing else arrives meanwhile.
pub fn value(verdict: &Verdict<'_>) -> Option<u64> {
    verdict.retry_after_s()
}
