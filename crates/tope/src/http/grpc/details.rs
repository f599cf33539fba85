//! `google.rpc.Status` and the details of a refusal: googleapis, google/rpc/status.proto and error_details.proto.

use tope_core::wire::draft::listed;
use tope_core::{Outcome, Verdict};

use super::protobuf::Message;

/// The status of a refusal. `amounts`: whether the client may hear how much its limits are.
pub(super) fn status(code: u8, message: &str, verdict: &Verdict<'_>, amounts: bool) -> Vec<u8> {
    let mut status = Message::default().number(1, u64::from(code)).text(2, message);
    if let Some(Outcome::Deny { retry_us }) = verdict.refused_by().map(|entry| entry.decision.outcome()) {
        status = status.message(3, &any("RetryInfo", &retry_info(retry_us)));
    }
    status
        .message(3, &any("QuotaFailure", &quota_failure(verdict, amounts)))
        .message(3, &any("ErrorInfo", &Message::default().text(1, "RATE_LIMIT_EXCEEDED").text(2, "tope")))
        .end()
}

/// `google.protobuf.Any`.
fn any(kind: &str, value: &Message) -> Message {
    Message::default().text(1, &format!("type.googleapis.com/google.rpc.{kind}")).message(2, value)
}

/// `retry_delay`, a Duration: the exact wait.
fn retry_info(retry_us: u64) -> Message {
    let delay = Message::default().number(1, retry_us / 1_000_000).number(2, retry_us % 1_000_000 * 1_000);
    Message::default().message(1, &delay)
}

/// One violation for each limit that refused: `subject`, `description`, `quota_id`, `quota_value`. The subject is the
/// limit, never the caller.
fn quota_failure(verdict: &Verdict<'_>, amounts: bool) -> Message {
    listed(verdict).filter(|entry| !entry.decision.allowed()).fold(Message::default(), |failure, entry| {
        let violation = Message::default()
            .text(1, &format!("limit:{}", entry.name))
            .text(2, &format!("The budget of the limit '{}' is used up.", entry.name))
            .text(5, entry.name)
            .number(7, if amounts { entry.quota.capacity() } else { 0 });
        failure.message(1, &violation)
    })
}
