//! Where YAML reads something else than was meant, and what to do then.

use super::error::Place;

/// The parser's message without the place that it ends with.
pub(super) fn without_place(message: &str) -> String {
    let message = message.split(" at line ").next().unwrap_or(message);
    match message {
        m if m.starts_with("alias references unknown anchor") => "this begins with `*`, which in YAML is an alias",
        m if m.starts_with("multiple YAML documents") => "a policy is one YAML document; a second one begins here",
        m if m.starts_with("expected string scalar") => "a list or a mapping can't be a name",
        m if m.contains("recursive") => "this alias contains itself",
        m if m.starts_with("budget breached: Depth") => "this is nested too deep",
        m if m.starts_with("alias ") || m.starts_with("budget breached") => {
            "the aliases of this file make it too large"
        }
        m => m,
    }
    .to_owned()
}

/// What to do about a text that is no YAML.
pub(super) fn hint(text: &str, place: Place, message: &str) -> Option<&'static str> {
    let line = text.lines().nth(usize::try_from(place.line()).ok()?.checked_sub(1)?)?;
    let before: String = line.chars().take(usize::try_from(place.column()).ok()?.saturating_sub(1)).collect();
    let rest: String = line.chars().skip(before.chars().count()).collect();
    let begins = |what: &str| rest.trim_start().starts_with(what);
    if message.ends_with("too large") || message.ends_with("too deep") {
        return Some("no policy needs that; write it out");
    }
    if begins("*") {
        return Some("put it in quotes: \"**\", \"*/…\"; paths begin with `/`, and `/**` is every path");
    }
    if begins("{") && before.ends_with(['/', '-', '_', '.']) || line.contains("/{") {
        return Some("a named segment is written `:id`; `{` begins a mapping unless the whole value is in quotes");
    }
    if begins("@") || begins("`") || begins("%") || begins("&") || begins("!") {
        return Some("a value that begins with this character has to be in quotes");
    }
    if line.trim_start_matches(' ').starts_with('\t') || before.contains('\t') {
        return Some("YAML is indented with spaces, never with tabs");
    }
    if message.contains("unclosed quote") {
        return Some("close the quote that begins here");
    }
    if message.contains("mapping values are not allowed") {
        return Some(
            "a colon is followed by a space, and lines of one mapping begin in the same column; put a value that has `: ` in it in quotes",
        );
    }
    if message.contains("flow") || message.contains("illegal placement") {
        return Some("a list or mapping in brackets is not closed, or lacks a comma");
    }
    None
}

/// Where the tab is that a message is about: readers of YAML blame what stands behind it.
pub(super) fn tab(text: &str, place: Place, message: &str) -> Option<Place> {
    let line = text.lines().nth(usize::try_from(place.line()).ok()?.checked_sub(1)?)?;
    let before = line.chars().position(|c| c == '\t').filter(|_| message.starts_with("tabs "))?;
    Some(Place { column: u32::try_from(before + 1).ok()?.min(place.column()), ..place })
}

/// Whether the line may hold an API key or a secret, as far as can be told of a text that is no YAML.
pub(super) fn may_show_a_key(text: &str, line: u32) -> bool {
    let lines: Vec<&str> = text.lines().take(usize::try_from(line).unwrap_or(usize::MAX)).collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let Some(last) = lines.last() else { return false };
    let telling = |line: &str| ["keys:", "secret:", "token:", "headers:"].iter().any(|word| line.contains(word));
    if telling(last) {
        return true;
    }
    // The lines that contain this one, by their indentation.
    let mut depth = indent(last);
    for above in lines.iter().rev().skip(1).filter(|above| !above.trim().is_empty()) {
        let continues = above.trim_end().ends_with([',', '{', '[']);
        if indent(above) < depth || continues {
            if telling(above) {
                return true;
            }
            depth = depth.min(indent(above));
        }
    }
    false
}

/// What to do about a plain value that other readers of YAML take for a number of seconds: `1:30`.
pub(super) fn is_sexagesimal(text: &str) -> bool {
    text.split_once(':').is_some_and(|(minutes, seconds)| {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits(minutes) && digits(seconds)
    })
}

/// Whether a plain name is a truth value to readers of YAML 1.1.
pub(super) fn is_truth(name: &str) -> bool {
    ["on", "off", "yes", "no", "true", "false", "y", "n"].iter().any(|word| word.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_may_hold_a_key_are_told_from_others() {
        let text =
            "upstream: demo\nclients:\n  keys:\n    sesame: { plan: x\n    other: {}\nlimits:\n  a: { rate: 1/s\n";
        let shown: Vec<bool> = (1..=7).map(|line| may_show_a_key(text, line)).collect();
        assert_eq!(shown, [false, false, true, true, true, false, false]);
        assert!(may_show_a_key("secret: \"abc\n", 1));
        assert!(may_show_a_key("clients: { keys: { a: {},\n  sesame: }\n", 2));
    }
}
