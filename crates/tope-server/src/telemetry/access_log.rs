//! The access log: one JSON line a request, written by hand, never a key and never a query string.
//!
//! Workers fill a block each, a [`Writer`]; one thread, the [`Log`], writes the blocks. When the reader of the log is
//! slow, workers wait rather than lose lines; when it has gone, lines are counted as lost.

use std::io::{self, Write};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::Handle;

/// Bytes of one text that are written; what is longer is cut and ends in an ellipsis.
pub const TEXT: usize = 2048;
/// Bytes after which a block is handed on.
const BLOCK: usize = 64 << 10;
/// How long a line waits for others.
const DELAY: Duration = Duration::from_millis(80);
/// Blocks that may wait for the writing thread: with [`BLOCK`], 64 MiB.
const BLOCKS: usize = 1024;

/// What was decided of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// Within every limit.
    Allow,
    /// Refused by a limit, for now.
    Deny,
    /// Refused by a limit, whenever it is tried.
    Never,
    /// No limit applied.
    None,
}

/// One request, as the log tells it.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// When it was decided, in Unix microseconds.
    pub time: u64,
    /// Which request of the process it was.
    pub seq: u64,
    /// Its method.
    pub method: &'a str,
    /// Its path; a query string is cut off here in any case.
    pub path: &'a str,
    /// The host that it asked for.
    pub host: &'a str,
    /// The status of its answer.
    pub status: u16,
    /// The address that it is counted by.
    pub address: IpAddr,
    /// The name of the client, never its key.
    pub client: Option<&'a str>,
    /// The client's plan.
    pub plan: Option<&'a str>,
    /// Whether it was a CORS preflight.
    pub preflight: bool,
    /// What was decided.
    pub verdict: Said,
    /// The limit that refused it.
    pub refused_by: Option<&'a str>,
    /// The limits in shadow mode that would have refused it.
    pub shadow_refused: &'a [&'a str],
    /// Microseconds from the head of the request to the head of the answer.
    pub took_us: u64,
}

impl Line<'_> {
    /// Appends the line, with its LF.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"time\":\"");
        time(out, self.time);
        number(out, "\",\"seq\":", self.seq);
        text(out, ",\"method\":", Some(self.method));
        text(out, ",\"path\":", self.path.split('?').next());
        text(out, ",\"host\":", Some(self.host));
        number(out, ",\"status\":", u64::from(self.status));
        out.extend_from_slice(b",\"address\":\"");
        address(out, self.address);
        text(out, "\",\"client\":", self.client);
        text(out, ",\"plan\":", self.plan);
        if self.preflight {
            out.extend_from_slice(b",\"preflight\":true");
        }
        out.extend_from_slice(match self.verdict {
            Said::Allow => b",\"verdict\":\"allow\"",
            Said::Deny => b",\"verdict\":\"deny\"",
            Said::Never => b",\"verdict\":\"never\"",
            Said::None => b",\"verdict\":\"none\"",
        });
        text(out, ",\"refused_by\":", self.refused_by);
        for (number, limit) in self.shadow_refused.iter().enumerate() {
            text(out, if number == 0 { ",\"shadow_refused\":[" } else { "," }, Some(limit));
        }
        if !self.shadow_refused.is_empty() {
            out.push(b']');
        }
        number(out, ",\"took_us\":", self.took_us);
        out.extend_from_slice(b"}\n");
    }
}

fn number(out: &mut Vec<u8>, name: &str, value: u64) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn address(out: &mut Vec<u8>, value: IpAddr) {
    // A Vec takes whatever is written to it.
    let _ = write!(out, "{}", value.to_canonical());
}

fn text(out: &mut Vec<u8>, name: &str, value: Option<&str>) {
    out.extend_from_slice(name.as_bytes());
    let Some(value) = value else { return out.extend_from_slice(b"null") };
    let cut = value.len() > TEXT;
    let value = &value[..value.floor_char_boundary(TEXT)];
    out.push(b'"');
    let mut plain = 0;
    for (at, &byte) in value.as_bytes().iter().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' && byte != 0x7f {
            continue;
        }
        out.extend_from_slice(&value.as_bytes()[plain..at]);
        plain = at + 1;
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            _ => out.extend_from_slice(&[b'\\', b'u', b'0', b'0', hex(byte >> 4), hex(byte & 15)]),
        }
    }
    out.extend_from_slice(&value.as_bytes()[plain..]);
    out.extend_from_slice(if cut { "…\"".as_bytes() } else { b"\"" });
}

fn hex(digit: u8) -> u8 {
    b"0123456789abcdef"[usize::from(digit)]
}

/// RFC 3339 in UTC with six decimals; days to a date as in Howard Hinnant's `civil_from_days`.
fn time(out: &mut Vec<u8>, micros: u64) {
    let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    digits::<4>(out, year, b'-');
    digits::<2>(out, month, b'-');
    digits::<2>(out, day, b'T');
    digits::<2>(out, second / 3600, b':');
    digits::<2>(out, second / 60 % 60, b':');
    digits::<2>(out, second % 60, b'.');
    digits::<6>(out, micros, b'Z');
}

fn digits<const N: usize>(out: &mut Vec<u8>, mut value: u64, end: u8) {
    let mut text = [0; N];
    for place in text.iter_mut().rev() {
        *place = b'0' + u8::try_from(value % 10).unwrap_or_default();
        value /= 10;
    }
    out.extend_from_slice(&text);
    out.push(end);
}

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
    use std::time::Instant;

    const PLAIN: Line<'_> = Line {
        time: 1_796_150_096_000_123,
        seq: 7,
        method: "GET",
        path: "/api/x?key=secret",
        host: "a.example",
        status: 429,
        address: IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)),
        client: None,
        plan: Some("free"),
        preflight: false,
        verdict: Said::Deny,
        refused_by: Some("api"),
        shadow_refused: &[],
        took_us: 12,
    };

    fn written(line: &Line<'_>) -> String {
        let mut out = Vec::new();
        line.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_is_this() {
        let expected = r#"{"time":"2026-12-01T18:34:56.000123Z","seq":7,"method":"GET","path":"/api/x","host":"a.example","status":429,"address":"192.0.2.1","client":null,"plan":"free","verdict":"deny","refused_by":"api","took_us":12}"#;
        assert_eq!(written(&PLAIN), format!("{expected}\n"));
    }

    #[test]
    fn any_text_is_json_and_bounded() {
        let nasty = format!("/\"\\\u{1}\n\u{7f}é{}", "ü".repeat(3000));
        let line = Line {
            path: &nasty,
            preflight: true,
            shadow_refused: &["a\"", "b"],
            address: "::ffff:192.0.2.1".parse().unwrap(),
            ..PLAIN
        };
        let text = written(&line);
        assert_eq!(text.matches('\n').count(), 1);
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let path = json["path"].as_str().unwrap();
        assert!(path.len() <= TEXT + 3 && path.ends_with('…'), "{}", path.len());
        assert!(nasty.starts_with(path.trim_end_matches('…')));
        assert_eq!(json["shadow_refused"], serde_json::json!(["a\"", "b"]));
        assert_eq!((&json["preflight"], &json["address"]), (&true.into(), &"192.0.2.1".into()));
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for micros in [0, 951_782_400_000_000, 951_868_799_999_999, 4_107_542_399_000_001, 1_709_164_800_500_000] {
            let expected = jiff::Timestamp::from_microsecond(i64::try_from(micros).unwrap()).unwrap();
            let line = written(&Line { time: micros, ..PLAIN });
            assert_eq!(line[9..36], format!("{expected:.6}"), "{micros}");
        }
    }

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
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            log.finish();
            let out = count(&sink.0.lock().unwrap());
            assert_eq!((out, lost.load(Relaxed)), if broken { (0, 10_000) } else { (10_000, 0) });
        }
    }
}
