//! How far something has got, and waiting for it as long as it gets on.

use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::timeout;

/// How far something has got. Only one thread ever touches it; the atomic is there because tasks must be `Send`.
#[derive(Debug, Default)]
pub(crate) struct Progress(AtomicU32);

impl Progress {
    /// It has got on.
    pub(crate) fn moved(&self) {
        self.0.store(self.seen().wrapping_add(1), Relaxed);
    }

    /// A number that changes whenever it gets on.
    fn seen(&self) -> u32 {
        self.0.load(Relaxed)
    }
}

/// What comes of `work`; `None` when there was no progress for `limit` to twice that.
pub(crate) async fn while_moving<T>(
    mut work: Pin<&mut impl Future<Output = T>>,
    limit: Duration,
    progress: Option<&Progress>,
) -> Option<T> {
    let mut seen = progress.map(Progress::seen);
    loop {
        if let Ok(done) = timeout(limit, work.as_mut()).await {
            return Some(done);
        }
        let now = progress.map(Progress::seen);
        if now == seen {
            return None;
        }
        seen = now;
    }
}
