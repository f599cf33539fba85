//! `${NAME}` and `${NAME:-default}` in values. Names of fields and of limits are never filled in.

use super::findings::Filled;
use super::surroundings::Surroundings;

/// Why a text can't be filled in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    /// The character of the text where it begins.
    pub(super) at: usize,
    pub(super) message: String,
    pub(super) hint: String,
}

/// Stand-ins for the braces of variables, which would begin and end a mapping where YAML reads `{ token: ${TOKEN} }`.
const BRACES: [char; 2] = ['\u{f8fe}', '\u{f8ff}'];

/// A text in which YAML sees no braces in variables; every character keeps its line and column.
pub(super) fn veil(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        out.push_str(&rest[..=at]);
        let inside = &rest[at + 2..];
        rest = match inside.find(['}', '\n']) {
            Some(end) if inside[end..].starts_with('}') => {
                out.extend([BRACES[0]]);
                out.push_str(&inside[..end]);
                out.extend([BRACES[1]]);
                &inside[end + 1..]
            }
            _ => {
                out.push('{');
                inside
            }
        };
    }
    out.push_str(rest);
    out
}

/// The text with its braces again.
pub(super) fn unveil(text: &str) -> String {
    text.replace(BRACES[0], "{").replace(BRACES[1], "}")
}

/// The text with its variables filled in, and which they were. `$$` is a dollar sign; a value is not looked into again.
pub(super) fn fill(text: &str, surroundings: &dyn Surroundings) -> Result<(String, Vec<Filled>), Trouble> {
    let (mut out, mut filled) = (String::with_capacity(text.len()), Vec::new());
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        out.push_str(&rest[..dollar]);
        let tail = &rest[dollar + 1..];
        let at = text[..text.len() - tail.len() - 1].chars().count();
        if let Some(after) = tail.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some(inside) = tail.strip_prefix('{') {
            let (inside, after) = inside.split_once('}').ok_or_else(|| Trouble {
                at,
                message: "this variable has no end".to_owned(),
                hint: "write ${NAME}, or $$ for a dollar sign".to_owned(),
            })?;
            let value = variable(inside, at, surroundings)?;
            out.push_str(&value);
            filled.push(Filled { written: format!("${{{inside}}}"), value });
            rest = after;
        } else {
            out.push('$');
            rest = tail;
        }
    }
    out.push_str(rest);
    Ok((out, filled))
}

fn variable(inside: &str, at: usize, surroundings: &dyn Surroundings) -> Result<String, Trouble> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let named = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.is_empty() || !name.bytes().all(named) || name.as_bytes()[0].is_ascii_digit() {
        return Err(Trouble {
            at,
            message: "this is no name of a variable".to_owned(),
            hint: "write ${NAME} or ${NAME:-default}; names are letters, digits and _".to_owned(),
        });
    }
    let set = surroundings.variable(name).filter(|value| !value.is_empty());
    set.or_else(|| default.map(str::to_owned)).ok_or_else(|| Trouble {
        at,
        message: format!("the variable `{name}` is not set, or empty"),
        hint: format!("set {name} in the environment, or write ${{{name}:-default}}"),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that unwraps nothing fails")]
mod tests {
    use super::*;

    struct Env;

    impl Surroundings for Env {
        fn variable(&self, name: &str) -> Option<String> {
            match name {
                "PORT" => Some("8080".to_owned()),
                "DOLLARS" => Some("${PORT}".to_owned()),
                "EMPTY" => Some(String::new()),
                _ => None,
            }
        }

        fn file(&self, _: &str) -> std::io::Result<String> {
            unreachable!("no file is named")
        }
    }

    fn filled(text: &str) -> Result<String, String> {
        fill(text, &Env).map(|(text, _)| text).map_err(|trouble| trouble.message)
    }

    #[test]
    fn what_is_not_set_is_refused() {
        assert_eq!(filled("a${NO}").unwrap_err(), "the variable `NO` is not set, or empty");
        assert_eq!(filled("${EMPTY}").unwrap_err(), "the variable `EMPTY` is not set, or empty");
        assert_eq!(fill("ä${NO}", &Env).map(drop).unwrap_err().at, 1);
        assert!(filled("${PORT").is_err() && filled("${}").is_err() && filled("${1A}").is_err());
        assert!(filled("${PORT:?message}").is_err());
    }

    #[test]
    fn a_veil_keeps_places_and_comes_off() {
        for text in ["{ a: ${PORT}, b: x${A:-b}${C} }", "${", "$$${A}", "${A\n}", "ä${Ä}", ""] {
            assert_eq!(veil(text).chars().count(), text.chars().count());
            assert_eq!(unveil(&veil(text)), text);
        }
        assert!(!veil("${A} ${B:-c}").contains(['{', '}']));
    }

    #[test]
    fn what_is_set_goes_in_once() {
        assert_eq!(filled("127.0.0.1:${PORT}/${PORT}").unwrap(), "127.0.0.1:8080/8080");
        assert_eq!(filled("${NO:-1}${EMPTY:-2}${PORT:-3}").unwrap(), "128080");
        assert_eq!(filled("${DOLLARS}").unwrap(), "${PORT}");
        assert_eq!(filled("$$ $${PORT} $x").unwrap(), "$ ${PORT} $x");
    }
}
