//! Numbers and strings of structured fields, RFC 9651, into any [`fmt::Write`]. Digits are made by hand: a header is
//! written for every request, and the machinery of `format_args!` costs more than the limit itself.

use core::fmt;

/// The largest Integer of a structured field, RFC 9651 section 3.3.1: fifteen digits.
pub const MAX_INTEGER: u64 = 999_999_999_999_999;

/// Writes an Integer, RFC 9651 section 4.1.4: a number above [`MAX_INTEGER`] is told as that, for a longer one would
/// make the whole field unreadable.
///
/// # Errors
/// As the writer does.
pub fn write_integer(out: &mut impl fmt::Write, number: u64) -> fmt::Result {
    write_digits(out, number.min(MAX_INTEGER))
}

/// Writes a number in decimal digits.
///
/// # Errors
/// As the writer does.
pub fn write_digits(out: &mut impl fmt::Write, mut number: u64) -> fmt::Result {
    if let Some(short) = SHORT.get(usize::try_from(number).unwrap_or(usize::MAX)) {
        return out.write_str(short);
    }
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    while number > 0 {
        at -= 1;
        digits[at] = DIGITS[usize::try_from(number % 10).expect("a digit")];
        number /= 10;
    }
    out.write_str(core::str::from_utf8(&digits[at..]).expect("digits are ASCII"))
}

/// Writes a String, RFC 9651 section 4.1.6: in quotes, `"` and `\` escaped. What a String can't hold becomes `_`; a
/// policy has no such names.
///
/// # Errors
/// As the writer does.
pub fn write_string(out: &mut impl fmt::Write, text: &str) -> fmt::Result {
    out.write_char('"')?;
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\') {
        out.write_str(text)?;
    } else {
        for char in text.chars() {
            match char {
                '"' => out.write_str("\\\"")?,
                '\\' => out.write_str("\\\\")?,
                ' '..='~' => out.write_char(char)?,
                _ => out.write_char('_')?,
            }
        }
    }
    out.write_char('"')
}

const DIGITS: &[u8; 10] = b"0123456789";

/// The commonest numbers, ready.
const SHORT: [&str; 20] =
    ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19"];
