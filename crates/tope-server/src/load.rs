//! A policy file, read, and the store it is judged with.

use std::io;
use std::path::{Path, PathBuf};

use tope::Policy;
use tope::policy::{self, Surroundings};
use tope::store::memory::Memory;

use crate::settings::Settings;
use crate::talk::BadInput;

/// A policy that was read, and what it says about the program itself.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The policy.
    pub(crate) policy: Policy,
    /// The program's part.
    pub(crate) settings: Settings,
}

impl Loaded {
    /// All files that it was read from: the policy at `path`, and those that it names.
    pub(crate) fn files(&self, path: &Path) -> Vec<PathBuf> {
        files(path, &self.policy)
    }
}

/// All files of the policy that was read from `path`.
pub(crate) fn files(path: &Path, policy: &Policy) -> Vec<PathBuf> {
    let named = policy.files().iter().map(|name| beside(path, name));
    std::iter::once(path.to_owned()).chain(named).collect()
}

/// A file that the policy at `path` names.
pub(crate) fn beside(path: &Path, name: &str) -> PathBuf {
    path.parent().unwrap_or(Path::new("")).join(name)
}

/// Reads the policy at `path`.
pub(crate) fn policy(path: &Path) -> anyhow::Result<Loaded> {
    let text = text(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut settings = None;
    let policy = policy::read_and(&text, &path.display().to_string(), &Beside(folder), |file, findings| {
        settings = Settings::compile(file, path, findings);
    })?;
    let settings = settings.ok_or_else(|| BadInput::new("the settings are wrong"))?;
    Ok(Loaded { policy, settings })
}

/// A fresh store, as large as the policy says.
pub(crate) fn store(loaded: &Loaded) -> anyhow::Result<Memory> {
    Ok(Memory::new(loaded.settings.max_keys)?)
}

/// The environment, and the files beside the policy.
struct Beside<'a>(&'a Path);

impl Surroundings for Beside<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn file(&self, name: &str) -> io::Result<String> {
        let path = self.0.join(name);
        if std::fs::metadata(&path)?.len() > LONGEST {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the file is larger than 16 MiB"));
        }
        std::fs::read_to_string(path)
    }
}

/// A policy is written by people; what is longer than this is something else.
const LONGEST: u64 = 16 << 20;

/// The text of a policy file.
fn text(path: &Path) -> Result<String, BadInput> {
    let name = path.display();
    let about = std::fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    if about.is_dir() {
        let hint = format!("name a file in it: {}", path.join("policy.yaml").display());
        return Err(BadInput::new(format!("{name}: this is a directory, not a policy file")).hint(hint));
    }
    if about.len() > LONGEST {
        return Err(BadInput::new(format!(
            "{name}: the file is larger than {} MiB, which no policy is",
            LONGEST >> 20
        )));
    }
    let bytes = std::fs::read(path).map_err(|error| unreadable(path, &error))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        let column =
            before.iter().rev().take_while(|byte| **byte != b'\n').filter(|byte| (**byte & 0xc0) != 0x80).count() + 1;
        BadInput::new(format!("{name}:{line}:{column}: the file is not UTF-8")).hint("save it as UTF-8")
    })?;
    if text.trim().is_empty() {
        let hint = "a policy has at least `limits:`; examples/quickstart.yaml is one to begin with";
        return Err(BadInput::new(format!("{name}: the file is empty")).hint(hint));
    }
    Ok(text)
}

fn unreadable(path: &Path, error: &io::Error) -> BadInput {
    let name = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => {
            let near = near(path).map(|near| format!("did you mean {}?", near.display()));
            let message = BadInput::new(format!("{name}: there is no such file"));
            match near {
                Some(near) => message.hint(near),
                None => message,
            }
        }
        io::ErrorKind::PermissionDenied => BadInput::new(format!("{name}: the file may not be read by this user")),
        _ => BadInput::new(format!("{name}: the file can't be read: {error}")),
    }
}

/// The same name with the other of the usual endings.
fn near(path: &Path) -> Option<PathBuf> {
    ["yaml", "yml"].map(|ending| path.with_extension(ending)).into_iter().find(|other| other.is_file())
}
