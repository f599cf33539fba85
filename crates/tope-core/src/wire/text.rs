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
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10).to_le_bytes()[0];
        number /= 10;
        if number == 0 {
            break;
        }
    }
    // One by one costs less than to prove again that they are UTF-8.
    digits[at..].iter().try_for_each(|digit| out.write_char(char::from(*digit)))
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
