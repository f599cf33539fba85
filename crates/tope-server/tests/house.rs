//! The house keeps its shape: a room that names one it must not fails this test, with the file and the arrow.

use std::fs;
use std::path::{Path, PathBuf};

/// A room, and what no line of code in it may hold.
struct Wall {
    room: &'static str,
    never: &'static [&'static str],
    /// Files in it that may all the same, each for its reason.
    but: &'static [&'static str],
}

/// Inside a crate `crate::policy` and `super::policy` are arrows to a room; a `use crate::{…}` is taken apart first.
const WALLS: &[Wall] = &[
    Wall {
        room: "tope-core/src",
        never: &["std::", "alloc::", "tope::", "tope_server::", "tope_client::", "f64", "f32"],
        but: &[],
    },
    Wall { room: "tope-client/src", never: &["tope::", "tope_core::", "tope_server::"], but: &[] },
    Wall {
        room: "tope/src",
        never: &["std::fs", "std::process", "std::net::Tcp", "std::net::Udp", "tokio::", "hyper::", "tope_server::"],
        but: &[],
    },
    Wall {
        room: "tope/src/policy",
        never: &["crate::store", "crate::limiter", "crate::tower", "crate::observe"],
        but: &[],
    },
    Wall {
        room: "tope/src/store",
        never: &["crate::policy", "crate::limiter", "crate::http", "crate::tower", "crate::observe", "crate::facts"],
        but: &[],
    },
    Wall {
        room: "tope/src/http",
        never: &["crate::store", "crate::limiter", "crate::policy", "crate::tower"],
        but: &[],
    },
    Wall { room: "tope/src/observe", never: &["crate::store", "crate::http", "crate::tower"], but: &[] },
    Wall { room: "tope-server/src", never: &["tope_client::"], but: &[] },
    Wall {
        room: "tope-server/src/gateway",
        never: &["crate::replay", "crate::admin", "crate::cli", "crate::run", "crate::telemetry", "tope::"],
        // What the layer in front leaves for the proxy.
        but: &["gateway/caller.rs"],
    },
    Wall {
        room: "tope-server/src/replay",
        never: &[
            "crate::gateway",
            "crate::admin",
            "crate::run",
            "crate::telemetry",
            "crate::cli",
            "SystemTime",
            "tope::clock",
        ],
        but: &[],
    },
    Wall {
        room: "tope-server/src/pass",
        never: &[
            "crate::gateway",
            "crate::admin",
            "crate::run",
            "crate::telemetry",
            "crate::cli",
            "crate::replay",
            "SystemTime",
            "tope::clock",
        ],
        but: &[],
    },
    // How things are said knows nothing of what is said.
    Wall { room: "tope-server/src/text", never: &["crate::", "tope::"], but: &[] },
    // One command looks at logs; the others ask the pass.
    Wall { room: "tope-server/src/cli", never: &["crate::replay"], but: &["cli/replay.rs"] },
    Wall {
        room: "tope-server/src/admin.rs",
        never: &["crate::gateway", "crate::replay", "crate::cli", "crate::run"],
        but: &[],
    },
    Wall { room: "tope-server/src/telemetry", never: &["crate::gateway", "crate::replay", "crate::cli"], but: &[] },
    Wall { room: "tope-server/src/settings", never: &["crate::gateway", "crate::replay", "crate::cli"], but: &[] },
];

/// What each crate may depend on among ours.
const CRATES: &[(&str, &[&str])] =
    &[("tope-core", &[]), ("tope", &["tope-core"]), ("tope-client", &[]), ("tope-server", &["tope", "tope-client"])];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All Rust files at or below a path, by their names under `crates/`.
fn sources(room: &str) -> Vec<(String, String)> {
    let mut todo = vec![crates().join(room)];
    let mut found = Vec::new();
    while let Some(path) = todo.pop() {
        if path.is_dir() {
            todo.extend(fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()));
        } else if path.extension().is_some_and(|end| end == "rs") {
            let name = path.strip_prefix(crates()).expect("it is below").display().to_string();
            found.push((name, fs::read_to_string(&path).expect("a source")));
        }
    }
    found.sort();
    found
}

/// The lines of code with their numbers: no comments, and no tests, which may name what they like. A `use` is one line.
fn code(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let (mut open, mut test) = (false, false);
    for (at, line) in text.lines().enumerate() {
        test = (test || line == "mod tests {") && line != "}";
        if test {
            continue;
        }
        let line = line.split("//").next().unwrap_or_default().trim();
        match lines.last_mut().filter(|_| open) {
            Some((_, begun)) => begun.push_str(line),
            None => lines.push((at + 1, line.to_owned())),
        }
        open = (open || line.starts_with("use ") || line.contains(" use ")) && !line.contains(';');
    }
    lines
}

/// What a line names: `use crate::{a::b, c}` is `crate::a::b` and `crate::c`, and `super` is the room it means.
fn names(file: &str, line: &str) -> String {
    let Some((stem, list)) = line.split_once("::{") else { return above(file, line) };
    let stem = stem.rsplit([' ', '(']).next().unwrap_or_default();
    let each = list.split(',').map(|one| format!("{stem}::{}", one.trim().trim_end_matches(['}', ';'])));
    above(file, &format!("{line} {}", each.collect::<Vec<_>>().join(" ")))
}

/// `super::super::store` in `tope/src/policy/key/mod.rs` is `crate::store`.
fn above(file: &str, line: &str) -> String {
    let inside = file.split_once("/src/").map_or(file, |(_, inside)| inside).trim_end_matches(".rs");
    let room: Vec<&str> = inside.trim_end_matches("/mod").split('/').collect();
    let (mut out, mut rest) = (line.to_owned(), line);
    while let Some(at) = rest.find("super::") {
        let path = rest[at..].trim_start_matches("super::");
        let ups = (rest.len() - at - path.len()) / "super::".len();
        let end = path.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').unwrap_or(path.len());
        let above = &room[..room.len().saturating_sub(ups)];
        out.extend([" ", &[&["crate"], above, &[&path[..end]]].concat().join("::")]);
        rest = path;
    }
    out
}

/// Whether `word` stands in `line` as the beginning of a path, and not within another name.
fn holds(line: &str, word: &str) -> bool {
    let within = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':';
    let ends = |at: usize| {
        word.ends_with(':')
            || !line.as_bytes().get(at + word.len()).is_some_and(|b| b.is_ascii_lowercase() || *b == b'_')
    };
    line.match_indices(word).any(|(at, _)| (at == 0 || !within(line.as_bytes()[at - 1])) && ends(at))
}

fn broken(walls: &[Wall], room: impl Fn(&str) -> Vec<(String, String)>) -> Vec<String> {
    let mut broken = Vec::new();
    for wall in walls {
        for (file, text) in room(wall.room) {
            let own_test = file.ends_with("/tests.rs") || wall.but.iter().any(|but| file.ends_with(but));
            for (number, line) in code(&text).into_iter().filter(|_| !own_test) {
                let names = names(&file, &line);
                for never in wall.never.iter().filter(|never| holds(&names, never)) {
                    broken.push(format!("crates/{file}:{number}: {} -> {never}: {}", wall.room, line));
                }
            }
        }
    }
    broken
}

#[test]
fn no_room_names_one_that_it_must_not() {
    for wall in WALLS {
        assert!(!sources(wall.room).is_empty(), "the room {} is gone: mend the list", wall.room);
    }
    let broken = broken(WALLS, sources);
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn a_broken_arrow_is_found() {
    let cases = [
        ("tope/src/policy/x.rs", "use crate::store::Store;"),
        ("tope/src/policy/x.rs", "use crate::{charge::Charge, store::Store};"),
        ("tope/src/policy/x.rs", "use super::super::store;"),
        ("tope/src/policy/x.rs", "use super::{limit::Limit, super::store::Store};"),
        ("tope/src/policy/x.rs", "pub use crate::{\n    charge::Charge,\n    store::Store,\n};"),
        ("tope/src/policy/mod.rs", "fn f() -> super::store::Charged {"),
        ("tope/src/store/memory/x.rs", "let policy: crate::Policy = crate::policy::read();"),
        ("tope-core/src/x.rs", "use std::time::Instant;"),
        ("tope-server/src/gateway/x.rs", "let limiter: tope::Limiter<S>;"),
        ("tope-server/src/replay/x.rs", "use crate::gateway;"),
        ("tope-server/src/replay/x.rs", "use crate::cli::out;"),
        ("tope-server/src/pass/x.rs", "use crate::replay::formats::Line;"),
        ("tope-server/src/cli/check.rs", "use crate::replay::tally;"),
    ];
    for (file, line) in cases {
        let inside = |room: &str| {
            if file.starts_with(room) { vec![(file.to_owned(), format!("//! A.\n{line}\n"))] } else { vec![] }
        };
        assert_eq!(broken(WALLS, inside).len(), 1, "{file}: {line}");
    }
    let fine = [
        ("tope/src/policy/x.rs", "use crate::http::path; // not crate::store"),
        ("tope/src/policy/x.rs", "let restore = crate::storehouse();"),
        ("tope-server/src/gateway/x.rs", "use crate::settings::upstream;"),
        ("tope/src/store/memory/mod.rs", "use super::{Answer, Charged};"),
    ];
    for (file, line) in fine {
        let inside =
            |room: &str| if file.starts_with(room) { vec![(file.to_owned(), line.to_owned())] } else { vec![] };
        assert_eq!(broken(WALLS, inside), Vec::<String>::new());
    }
}

#[test]
fn crates_depend_downwards() {
    for (name, may) in CRATES {
        let manifest = fs::read_to_string(crates().join(name).join("Cargo.toml")).expect("a manifest");
        let dependencies = manifest.split_once("\n[dependencies]").map_or("", |(_, rest)| rest);
        let dependencies = dependencies.split("\n[dev-dependencies]").next().unwrap_or_default();
        for (other, _) in CRATES.iter().filter(|(other, _)| !may.contains(other)) {
            let named = |line: &str| line.split(['.', ' ', '=']).next() == Some(*other);
            assert!(!dependencies.lines().any(named), "crates/{name}/Cargo.toml: {name} -> {other}");
        }
        let core = *name == "tope-core";
        let none = dependencies.split("\n[").next().unwrap_or_default().trim().is_empty();
        assert!(!core || none, "crates/tope-core/Cargo.toml: the numbers depend on nothing");
    }
}

#[test]
fn files_are_short_and_folders_begin_with_their_map() {
    for (name, _) in CRATES {
        for (file, text) in sources(name) {
            let lines = text.lines().count();
            assert!(lines <= 500, "crates/{file} has {lines} lines: there is a second noun in it");
            let map = file.ends_with("/mod.rs") || file.ends_with("/lib.rs") || file.ends_with("/main.rs");
            assert!(!map || text.starts_with("//! "), "crates/{file} begins with what the folder is");
        }
    }
}
