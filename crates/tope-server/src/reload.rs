//! A policy that changes while it is in force: whole or not at all.
//!
//! The files are looked at twice a second rather than watched: that sees editors' renames, Kubernetes' swaps of
//! `..data`, network file systems and bind mounts alike, of which no one kind of notification sees all. A change
//! counts once two looks in a row have found the same, so that a file which is being written is not read.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

/// How often the files are looked at.
pub const EVERY: Duration = Duration::from_millis(500);

/// Files, and how they looked.
#[derive(Debug)]
pub struct Watch {
    paths: Vec<PathBuf>,
    in_force: Vec<Look>,
    last: Vec<Look>,
}

/// What changes when a file does; all zeros when there is none. A symbolic link is followed.
type Look = [i128; 5];

impl Watch {
    /// Watches these files, beginning with how they look now.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        let in_force = look(&paths);
        Self { last: in_force.clone(), in_force, paths }
    }

    /// Whether the files have changed and have come to rest since the policy in force was read.
    pub fn changed(&mut self) -> bool {
        let now = look(&self.paths);
        let rests = now == self.last;
        self.last = now;
        rests && self.last != self.in_force
    }

    /// Which files these are.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Reads these files and watches them from before they were read, so that no change falls between the two. `read`
    /// also says which files it did read: when they are others, it is asked again.
    pub fn read<T>(paths: Vec<PathBuf>, mut read: impl FnMut() -> (T, Vec<PathBuf>)) -> (T, Self) {
        let mut watch = Self::new(paths);
        loop {
            let (content, paths) = read();
            if paths == watch.paths {
                return (content, watch);
            }
            watch = Self::new(paths);
        }
    }
}

fn look(paths: &[PathBuf]) -> Vec<Look> {
    let one = |path: &PathBuf| {
        fs::metadata(path).map_or([0; 5], |about| {
            let nanoseconds = |seconds: i64, ns: i64| i128::from(seconds) * 1_000_000_000 + i128::from(ns);
            [
                i128::from(about.dev()),
                i128::from(about.ino()),
                i128::from(about.size()),
                nanoseconds(about.mtime(), about.mtime_nsec()),
                nanoseconds(about.ctime(), about.ctime_nsec()),
            ]
        })
    };
    paths.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_counts_when_it_has_come_to_rest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy.yaml");
        fs::write(&path, "one").unwrap();
        let mut watch = Watch::new(vec![path.clone()]);
        assert!(!watch.changed());
        fs::write(&path, "two, longer").unwrap();
        assert!(!watch.changed(), "it may still be written");
        assert!(watch.changed());
        watch = Watch::new(vec![path.clone()]);
        assert!(!watch.changed());
        // An editor's rename, and Kubernetes' link.
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "three").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        fs::rename(&link, &path).unwrap();
        assert!(!watch.changed());
        assert!(watch.changed());
        watch = Watch::new(vec![path.clone()]);
        fs::remove_file(&path).unwrap();
        assert!(!watch.changed());
        assert!(watch.changed(), "that it has gone is a change");
    }
    #[test]
    fn a_change_while_it_is_read_counts() {
        let folder = tempfile::tempdir().unwrap();
        let (policy, keys) = (folder.path().join("policy.yaml"), folder.path().join("keys.yaml"));
        fs::write(&policy, "one").unwrap();
        let mut reads = 0;
        let (text, mut watch) = Watch::read(vec![policy.clone()], || {
            reads += 1;
            let text = fs::read_to_string(&policy).unwrap();
            fs::write(&policy, format!("{text}, more")).unwrap();
            (text, vec![policy.clone(), keys.clone()])
        });
        assert_eq!((reads, text.as_str()), (2, "one, more"), "which other file there is was known after the first");
        assert!(!watch.changed(), "it may still be written");
        assert!(watch.changed());
    }
}
