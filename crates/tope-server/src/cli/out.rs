//! Standard output: data, and nothing but data. When whoever reads it has gone, the rest is dropped quietly and the
//! command still ends with its own exit code.

use std::io::{self, BufWriter, StdoutLock, Write};

/// Standard output, locked and buffered.
#[derive(Debug)]
pub(crate) struct Out {
    inner: BufWriter<StdoutLock<'static>>,
    closed: bool,
}

impl Out {
    /// Locks it.
    pub(crate) fn new() -> Self {
        Self { inner: BufWriter::new(io::stdout().lock()), closed: false }
    }

    fn quietly<T>(&mut self, did: io::Result<T>, instead: T) -> io::Result<T> {
        match did {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(instead)
            }
            Err(error) => Err(io::Error::new(error.kind(), format!("standard output can't be written: {error}"))),
            did => did,
        }
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.closed {
            return Ok(bytes.len());
        }
        let did = self.inner.write(bytes);
        self.quietly(did, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        let did = self.inner.flush();
        self.quietly(did, ())
    }
}
