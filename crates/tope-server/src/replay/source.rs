//! Logs as they lie: plain or gzip, by their first bytes and not by their name; `-` is standard input.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;

use super::lines::Lines;

/// One log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    path: PathBuf,
}

impl Source {
    /// The log at `path`, or standard input for `-`.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Its name in messages.
    pub fn name(&self) -> String {
        if self.is_stdin() { "standard input".to_owned() } else { self.path.display().to_string() }
    }

    /// Its file; `None` for standard input.
    pub fn path(&self) -> Option<&Path> {
        (!self.is_stdin()).then_some(self.path.as_path())
    }

    /// Bytes on disk; `None` where they can't be known.
    ///
    /// # Errors
    /// When there is no such file, or it is a directory.
    pub fn length(&self) -> io::Result<Option<u64>> {
        if self.is_stdin() {
            return Ok(None);
        }
        let about = std::fs::metadata(&self.path)?;
        if about.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Ok(about.is_file().then_some(about.len()))
    }

    /// Its lines. Bytes are counted in `read` as they are taken from disk.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(&self, read: &Rc<Cell<u64>>) -> io::Result<Lines<Box<dyn Read>>> {
        let bytes: Box<dyn Read> =
            if self.is_stdin() { Box::new(io::stdin().lock()) } else { Box::new(File::open(&self.path)?) };
        let mut bytes = BufReader::with_capacity(1 << 16, Counted { bytes, read: Rc::clone(read) });
        let gzip = bytes.fill_buf()?.starts_with(&[0x1f, 0x8b]);
        Ok(Lines::new(if gzip { Box::new(MultiGzDecoder::new(bytes)) } else { Box::new(bytes) }))
    }

    fn is_stdin(&self) -> bool {
        self.path.as_os_str() == "-"
    }
}

struct Counted<R> {
    bytes: R,
    read: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.bytes.read(into)?;
        self.read.set(self.read.get() + length as u64);
        Ok(length)
    }
}
