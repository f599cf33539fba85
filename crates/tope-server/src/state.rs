//! Where buckets outlive a restart: `memory.file`, replaced whole every ten seconds and at the end.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tope::store::memory::Memory;

/// How often the file is replaced.
pub const EVERY: Duration = Duration::from_secs(10);

/// How every file of ours begins, in any version.
const OURS: &[u8] = b"tope buckets ";

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

    /// Finds out whether the file can be written, and changes nothing.
    ///
    /// # Errors
    /// When it can't: there is no such folder, or this user may not write there.
    pub fn probe(&self) -> io::Result<()> {
        if self.0.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
        }
        let fresh = self.fresh();
        let new = !fresh.exists();
        Self::open(&fresh)?;
        if new { fs::remove_file(&fresh) } else { Ok(()) }
    }

    /// Where the next one is written, before it takes the old one's place.
    pub(crate) fn fresh(&self) -> PathBuf {
        beside(&self.0, "new")
    }

    fn open(fresh: &Path) -> io::Result<File> {
        use std::os::unix::fs::OpenOptionsExt;
        File::options().write(true).create(true).truncate(true).mode(0o600).open(fresh)
    }

    /// Reads the buckets back. A file of ours that is damaged is put aside, so that nothing of it is lost and the program
    /// can start. A file that never was ours is somebody else's, and stays where it is.
    ///
    /// # Errors
    /// When the file is there and is none of ours, can't be read at all, or not be put aside.
    pub fn restore(&self, max_keys: usize, now_us: u64) -> io::Result<Restored> {
        let bytes = match fs::read(&self.0) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Restored::Fresh),
            Err(error) => return Err(error),
        };
        // What is cut short was ours too.
        if !bytes.starts_with(OURS) && !OURS.starts_with(&bytes) {
            let message = format!("{} is no file of buckets, and would be overwritten", self.0.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        match Memory::from_snapshot(&bytes, max_keys, now_us) {
            Ok(store) => Ok(Restored::Kept(Box::new(store))),
            Err(why) => {
                let aside = unused(&self.0);
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
        let fresh = self.fresh();
        let file = Self::open(&fresh)?;
        let mut out = BufWriter::new(&file);
        store.write_snapshot(&mut out, now_us)?;
        out.flush()?;
        drop(out);
        file.sync_all()?;
        fs::rename(&fresh, &self.0)
    }
}

/// A name for a damaged file that no other has: what was put aside before is kept.
fn unused(path: &Path) -> PathBuf {
    let others = (2..).map(|number| beside(path, &format!("broken.{number}")));
    let mut names = std::iter::once(beside(path, "broken")).chain(others);
    names.find(|name| !name.exists()).unwrap_or_else(|| beside(path, "broken"))
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("an entry").file_name().display().to_string()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_that_is_not_ours_stays_where_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notes");
        fs::write(&path, "my notes\n").expect("a file");
        let error = StateFile::new(path.clone()).restore(10, 1).expect_err("it is not ours");
        assert!(error.to_string().contains("is no file of buckets"), "{error}");
        assert_eq!(fs::read(&path).expect("it is there"), b"my notes\n");
        assert_eq!(names(folder.path()), ["notes"]);
    }

    #[test]
    fn damaged_files_are_put_aside_one_beside_the_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        for damaged in ["", "tope bu", "tope buckets 1\nrubbish", "tope buckets 99\n"] {
            fs::write(&path, damaged).expect("a file");
            let restored = StateFile::new(path.clone()).restore(10, 1).expect("it is put aside");
            let Restored::PutAside(aside, _) = restored else { panic!("{damaged:?}: {restored:?}") };
            assert_eq!(fs::read(aside).expect("it is there"), damaged.as_bytes());
        }
        assert_eq!(names(folder.path()), ["s.broken", "s.broken.2", "s.broken.3", "s.broken.4"]);
    }

    #[test]
    fn a_probe_finds_what_can_not_be_written_and_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| StateFile::new(folder.path().join(name));
        at("s").probe().expect("it can be written");
        assert_eq!(names(folder.path()), Vec::<String>::new());
        assert!(at("none/s").probe().is_err());
        fs::create_dir(folder.path().join("folder")).expect("a folder");
        assert!(at("folder").probe().is_err());
        assert_eq!(names(folder.path()), ["folder"]);
    }
}
