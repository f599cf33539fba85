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
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    while number >= 100 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(pair(number % 100));
        number /= 100;
    }
    at -= 2;
    digits[at..at + 2].copy_from_slice(pair(number));
    let first = at + usize::from(number < 10);
    core::str::from_utf8(&digits[first..]).map_or(Err(fmt::Error), |digits| out.write_str(digits))
}

/// The two digits of a number below a hundred.
fn pair(number: u64) -> &'static [u8] {
    const PAIRS: &[u8; 200] = b"00010203040506070809101112131415161718192021222324252627282930313233343536373839\
                                40414243444546474849505152535455565758596061626364656667686970717273747576777879\
                                8081828384858687888990919293949596979899";
    let at = usize::from(number.to_le_bytes()[0]) * 2;
    &PAIRS[at..at + 2]
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
