//! Where buckets outlive a restart: `memory.file`, replaced whole every ten seconds and at the end.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tope::store::memory::Memory;

/// How often the file is replaced.
pub const EVERY: Duration = Duration::from_secs(10);

/// The file of a store.
#[derive(Clone, Debug)]
pub struct StateFile(PathBuf);

/// What became of the file at the start.
#[derive(Debug)]
pub enum Restored {
    /// There was none.
    Fresh,
    /// Its buckets are back.
    Kept(Box<Memory>),
    /// It can't be used, and was put aside under this name.
    PutAside(PathBuf, String),
}

impl StateFile {
    /// The file at this path; it need not exist.
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Reads the buckets back. A file that can't be used is put aside, so that nothing of it is lost and the program
    /// can start.
    ///
    /// # Errors
    /// When the file is there and can't be read at all, or not be put aside.
    pub fn restore(&self, max_keys: usize, now_us: u64) -> io::Result<Restored> {
        let bytes = match fs::read(&self.0) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Restored::Fresh),
            Err(error) => return Err(error),
        };
        match Memory::from_snapshot(&bytes, max_keys, now_us) {
            Ok(store) => Ok(Restored::Kept(Box::new(store))),
            Err(why) => {
                let aside = beside(&self.0, "broken");
                fs::rename(&self.0, &aside)?;
                Ok(Restored::PutAside(aside, why.to_string()))
            }
        }
    }

    /// Replaces the file with what is live now: whoever reads it finds the old one or the new one, whole. Only its
    /// owner may read it, for it holds the seed that names buckets.
    ///
    /// # Errors
    /// When it can't be written; then the old one is still there.
    pub fn save(&self, store: &Memory, now_us: u64) -> io::Result<()> {
        use std::os::unix::fs::OpenOptionsExt;
        let fresh = beside(&self.0, "new");
        let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        let mut out = BufWriter::new(&file);
        store.write_snapshot(&mut out, now_us)?;
        out.flush()?;
        drop(out);
        file.sync_all()?;
        fs::rename(&fresh, &self.0)
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}
