//! How lines get out: workers fill a block each, one thread writes the blocks.
//!
//! When the reader of the log is slow, workers wait rather than lose lines; when it has gone, lines are counted as lost.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::Handle;

use super::Line;

/// Bytes after which a block is handed on.
const BLOCK: usize = 64 << 10;
/// How long a line waits for others.
const DELAY: Duration = Duration::from_millis(80);
/// Blocks that may wait for the writing thread: with [`BLOCK`], 64 MiB.
const BLOCKS: usize = 1024;

/// The writing thread and its end of the channel.
#[derive(Debug)]
pub struct Log {
    blocks: Option<SyncSender<Vec<u8>>>,
    lost: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Log {
    /// Starts to write to `out`.
    ///
    /// # Errors
    ///
    /// When the thread can't be started.
    pub fn start(out: impl Write + Send + 'static) -> io::Result<Self> {
        let (blocks, received) = sync_channel(BLOCKS);
        let lost = Arc::<AtomicU64>::default();
        let counted = Arc::clone(&lost);
        let thread = std::thread::Builder::new().name("access-log".into());
        let thread = thread.spawn(move || write_blocks(out, &received, &counted))?;
        Ok(Self { blocks: Some(blocks), lost, thread: Some(thread) })
    }

    /// A worker's end. It must be dropped before [`Log::finish`] can return.
    pub fn writer(&self) -> Writer {
        let block = Block { lines: Vec::new(), to: self.blocks.clone(), lost: Arc::clone(&self.lost) };
        Writer(Arc::new(Mutex::new(block)))
    }

    /// Lines that could not be written because nobody reads them any more.
    pub fn lost(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.lost)
    }

    /// Waits until everything is written that the writers have handed on, once they have gone.
    pub fn finish(mut self) {
        self.blocks = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has lost what it had; there is nobody to tell.
            let _ = thread.join();
        }
    }
}

fn write_blocks(mut out: impl Write, blocks: &Receiver<Vec<u8>>, lost: &AtomicU64) {
    let mut broken = false;
    for block in blocks {
        broken = broken || out.write_all(&block).and_then(|()| out.flush()).is_err();
        if broken {
            lost.fetch_add(count(&block), Relaxed);
        }
    }
}

fn count(block: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', block).count() as u64
}

/// A worker's end of the log; clones are one. Lines wait in a block until it is full, or for less than 100 ms.
#[derive(Clone, Debug)]
pub struct Writer(Arc<Mutex<Block>>);

impl Writer {
    /// Adds a line.
    pub fn write(&self, line: &Line<'_>) {
        let mut block = self.block();
        let first = block.lines.is_empty();
        line.write(&mut block.lines);
        let late = || Handle::try_current().map(|runtime| drop(runtime.spawn(Self::flush_late(self.clone()))));
        if block.lines.len() >= BLOCK || (first && late().is_err()) {
            block.flush();
        }
    }

    /// Hands on what there is; waits while the writing thread is 64 MiB behind.
    pub fn flush(&self) {
        self.block().flush();
    }

    async fn flush_late(writer: Self) {
        tokio::time::sleep(DELAY).await;
        writer.flush();
    }

    fn block(&self) -> MutexGuard<'_, Block> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Block {
    lines: Vec<u8>,
    to: Option<SyncSender<Vec<u8>>>,
    lost: Arc<AtomicU64>,
}

impl Block {
    fn flush(&mut self) {
        if self.lines.is_empty() {
            return;
        }
        let lines = std::mem::replace(&mut self.lines, Vec::with_capacity(BLOCK / 4));
        let refused = match &self.to {
            Some(to) => to.send(lines).err().map(|refused| refused.0),
            None => Some(lines),
        };
        if let Some(lines) = refused {
            self.lost.fetch_add(count(&lines), Relaxed);
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::access_log::tests::PLAIN;
    use std::time::Instant;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>, bool);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.1 {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "the delay is a real one")]
    async fn a_single_line_is_out_soon_without_another() {
        let sink = Sink::default();
        let log = Log::start(sink.clone()).unwrap();
        let writer = log.writer();
        writer.write(&PLAIN);
        let begun = Instant::now();
        while sink.0.lock().unwrap().is_empty() {
            assert!(begun.elapsed().as_secs() < 10);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(writer);
        log.finish();
    }

    #[test]
    fn everything_is_out_at_the_end_or_counted_as_lost() {
        for broken in [false, true] {
            let sink = Sink(Arc::default(), broken);
            let log = Log::start(sink.clone()).unwrap();
            let lost = log.lost();
            let threads: Vec<_> = (0..2)
                .map(|_| log.writer())
                .map(|writer| std::thread::spawn(move || (0..5000).for_each(|_| writer.write(&PLAIN))))
                .collect();
            for thread in threads {
                thread.join().unwrap();
            }
            log.finish();
            let out = count(&sink.0.lock().unwrap());
            assert_eq!((out, lost.load(Relaxed)), if broken { (0, 10_000) } else { (10_000, 0) });
        }
    }
}
