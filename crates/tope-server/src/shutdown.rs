//! The end of the program: first what is in flight is finished, then, when asked again or when it takes too long, not.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};

use tokio::signal::unix::{Signal, SignalKind, signal as listen};
use tokio::sync::Notify;

/// How far the program has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// It serves.
    Running,
    /// It takes nothing new and finishes what it has.
    Draining,
    /// It ends at once.
    Ending,
}

/// Tells every part of the program to end; clones are one. Phases only go forward.
#[derive(Clone, Debug, Default)]
pub struct Shutdown(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    phase: AtomicU8,
    changed: Notify,
}

impl Shutdown {
    /// A program that runs.
    pub fn new() -> Self {
        Self::default()
    }

    /// The present phase: one load.
    pub fn phase(&self) -> Phase {
        match self.0.phase.load(SeqCst) {
            0 => Phase::Running,
            1 => Phase::Draining,
            _ => Phase::Ending,
        }
    }

    /// Stops what is new, finishes what is in flight.
    pub fn drain(&self) {
        self.advance(Phase::Draining);
    }

    /// Ends at once.
    pub fn end(&self) {
        self.advance(Phase::Ending);
    }

    fn advance(&self, phase: Phase) {
        self.0.phase.fetch_max(phase as u8, SeqCst);
        self.0.changed.notify_waiters();
    }

    /// Waits until this phase, or a later one, has come.
    pub async fn reached(&self, phase: Phase) {
        loop {
            let mut changed = std::pin::pin!(self.0.changed.notified());
            changed.as_mut().enable();
            if self.phase() >= phase {
                return;
            }
            changed.await;
        }
    }

    /// The same, with signals that are listened to from now on.
    ///
    /// # Errors
    ///
    /// When the operating system doesn't let us listen to signals.
    pub async fn follow_signals(&self) -> io::Result<()> {
        self.follow(Signals::new()?).await;
        Ok(())
    }

    /// Drains at the first SIGTERM or SIGINT and ends at the second; never returns before that.
    pub async fn follow(&self, mut signals: Signals) {
        signals.next().await;
        self.drain();
        signals.next().await;
        self.end();
    }
}

/// Waits for the first SIGTERM or SIGINT.
///
/// # Errors
///
/// When the operating system doesn't let us listen to signals.
pub async fn signal() -> io::Result<()> {
    Signals::new()?.next().await;
    Ok(())
}

/// SIGTERM and SIGINT, which from now on do not kill: who says that it runs must be able to end well.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Begins to listen, on the runtime that it is called on.
    ///
    /// # Errors
    ///
    /// When the operating system doesn't let us listen to signals.
    pub fn new() -> io::Result<Self> {
        Ok(Self { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn phases_go_forward_only_and_wake_who_waits() {
        let shutdown = Shutdown::new();
        let waiting = tokio::spawn({
            let shutdown = shutdown.clone();
            async move { shutdown.reached(Phase::Draining).await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        shutdown.end();
        shutdown.drain();
        waiting.await.unwrap();
        assert_eq!(shutdown.phase(), Phase::Ending);
        shutdown.reached(Phase::Ending).await;
    }
}
