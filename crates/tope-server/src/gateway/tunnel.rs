//! What follows a switch of protocols (RFC 9110 7.8): bytes both ways until both sides have ended.

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

/// Carries bytes between a client and an upstream that have both switched.
pub(crate) fn open(client: OnUpgrade, upstream: OnUpgrade) {
    tokio::spawn(async move {
        let (Ok(client), Ok(upstream)) = tokio::join!(client, upstream) else { return };
        // Either side may end as it likes: there is nobody left to tell.
        let _ = tokio::io::copy_bidirectional(&mut TokioIo::new(client), &mut TokioIo::new(upstream)).await;
    });
}
