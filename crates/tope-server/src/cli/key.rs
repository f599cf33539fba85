//! `tope key`: a new API key. It is printed once; the key file holds its hash.

use std::fmt::Write as _;
use std::io::Write;
use std::process::ExitCode;

use sha2::{Digest, Sha256};

use super::out::Out;
use crate::talk::BadInput;

/// Make a new API key
///
/// Prints the key, which is shown this once, and the line that belongs into the key file. The line holds the key's
/// SHA-256 and not the key: 256 random bits can't be guessed from it.
#[derive(Debug, clap::Args)]
pub struct Key {
    /// Who gets it: the client's name in logs, metrics and budgets
    #[arg(value_name = "NAME")]
    name: String,
    /// The client's plan in the policy
    #[arg(value_name = "PLAN")]
    plan: String,
}

/// Names longer than this read badly everywhere.
const LONGEST: usize = 100;

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// 43 digits of base 62 hold 256 bits.
const DIGITS: usize = 43;

/// Prints a key and its line.
///
/// # Errors
/// When a name can't stand in the key file, or there is no randomness.
pub fn run(args: &Key) -> anyhow::Result<ExitCode> {
    let (name, plan) = (yaml(&args.name, "NAME")?, yaml(&args.plan, "PLAN")?);
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| BadInput::new(format!("the system gives no random numbers for a key: {error}")))?;
    let key = text(bytes);
    let mut out = Out::new();
    writeln!(out, "{key}\n{}: {{ name: {name}, plan: {plan} }}", hashed(&key))?;
    out.flush()?;
    crate::talk::say("hint: the first line is the key, shown this once; the second belongs into the key file\n");
    Ok(ExitCode::SUCCESS)
}

/// Random bytes as `tope_` and digits of base 62.
fn text(mut bytes: [u8; 32]) -> String {
    let mut digits = [b'0'; DIGITS];
    for digit in digits.iter_mut().rev() {
        // The whole number divided by 62: long division, a byte at a time.
        let rest = bytes.iter_mut().fold(0_u16, |rest, byte| {
            let part = rest << 8 | u16::from(*byte);
            *byte = u8::try_from(part / 62).expect("the rest is below 62, so the quotient is below 256");
            part % 62
        });
        *digit = BASE62[usize::from(rest)];
    }
    format!("tope_{}", digits.map(char::from).iter().collect::<String>())
}

/// The key as the key file names it.
fn hashed(key: &str) -> String {
    let mut line = String::from("sha256:");
    for byte in Sha256::digest(key.as_bytes()) {
        let _ = write!(line, "{byte:02x}");
    }
    line
}

/// A name as YAML reads it back: bare where that is sure, else quoted.
fn yaml(name: &str, what: &str) -> Result<String, BadInput> {
    if name.is_empty() || name.trim() != name {
        return Err(BadInput::new(format!("{what} is empty or begins or ends with a space")));
    }
    if name.chars().count() > LONGEST {
        return Err(BadInput::new(format!("{what} is longer than {LONGEST} characters")));
    }
    // It is sent upstream in X-Tope-Client.
    if let Some(odd) = name.chars().find(|c| !(' '..='~').contains(c)) {
        let hint = "names are sent in header fields: letters of ASCII, digits, punctuation";
        return Err(BadInput::new(format!("{what} has the character {odd:?}")).hint(hint));
    }
    let word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    let plain = word && name.as_bytes()[0].is_ascii_alphabetic() && !is_yaml_word(name);
    Ok(if plain { name.to_owned() } else { serde_json::Value::from(name).to_string() })
}

/// Words that some reader of YAML takes for something else than text.
fn is_yaml_word(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"].contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_hold_all_their_bits() {
        assert_eq!(text([0; 32]), format!("tope_{}", "0".repeat(43)));
        let mut one = [0; 32];
        one[31] = 61;
        assert_eq!(text(one), format!("tope_{}z", "0".repeat(42)));
        one[31] = 62;
        assert_eq!(text(one), format!("tope_{}10", "0".repeat(41)));
        // 2^256 - 1 in base 62, from Python.
        assert_eq!(text([255; 32]), "tope_yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp1");
    }

    #[test]
    fn hashes_are_those_of_the_whole_text() {
        assert_eq!(hashed("abc"), "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn names_are_read_back_as_they_were() {
        for name in ["acme", "acme-2.eu_x"] {
            assert_eq!(yaml(name, "NAME").expect("a good name"), name);
        }
        for name in ["no", "TRUE", "1e3", "a b", "a: b", "*x", "{a}", "a,b", "-", "~", "a#b", "\"", "\\", "a 'b'"] {
            let said = yaml(name, "NAME").expect("a good name");
            assert_eq!(serde_json::from_str::<String>(&said).expect("a good name"), name);
        }
        for name in ["", " a", "a\n", "a\u{7}b", "ä", &"x".repeat(101)] {
            assert!(yaml(name, "NAME").is_err(), "{name:?}");
        }
    }
}
