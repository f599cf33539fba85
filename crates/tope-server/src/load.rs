//! A policy file, read, and the store it is judged with.

use std::io;
use std::path::{Path, PathBuf};

use tope::Policy;

use super::talk::BadInput;
use super::view::View;
use tope::store::memory::Memory;

/// A policy that was read.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The policy.
    pub(crate) policy: Policy,
    /// The same for people.
    pub(crate) view: View,
}

/// Reads the policy at `path`.
pub(crate) fn policy(path: &Path) -> anyhow::Result<Loaded> {
    let text = text(path)?;
    let _ = text;
    Err(BadInput::new("the policy room is not connected yet").into())
}

/// A fresh store, as large as the policy says.
pub(crate) fn store(_loaded: &Loaded) -> anyhow::Result<Memory> {
    Ok(Memory::new(1_000_000)?)
}

/// The JSON Schema of policy files.
pub(crate) fn schema() -> String {
    "{}".to_owned()
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
