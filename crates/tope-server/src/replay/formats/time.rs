//! Times as logs write them to Unix microseconds: decimal text to integers, never through a float. Digits beyond the
//! microsecond are cut off.

const US: u64 = 1_000_000;

/// Times lie below 2^53 microseconds: the year 2255.
const BOUND_US: u64 = 1 << 53;

/// Why a text is no time.
pub type Why = &'static str;

const EARLY: Why = "the time lies before 1970";
const LATE: Why = "the time lies beyond the year 2255: Unix time is wanted in seconds";

/// Unix seconds in decimal: `1790000000`, `1790000000.123456`.
///
/// # Errors
/// Why it is no time; exponents are refused.
pub fn unix(text: &[u8]) -> Result<u64, Why> {
    if text.first() == Some(&b'-') {
        return Err(EARLY);
    }
    let (whole, fraction) = match memchr::memchr(b'.', text) {
        Some(dot) => (&text[..dot], Some(&text[dot + 1..])),
        None => (text, None),
    };
    if text.first().is_some_and(u8::is_ascii_digit) && memchr::memchr2(b'e', b'E', text).is_some() {
        return Err("the time has an exponent: plain decimal seconds are wanted");
    }
    if whole.is_empty() || !whole.iter().all(u8::is_ascii_digit) {
        return Err("the time is neither RFC 3339 nor Unix seconds");
    }
    let seconds = whole.iter().try_fold(0_u64, |sum, digit| {
        let sum = sum * 10 + u64::from(digit - b'0');
        (sum < BOUND_US / US + 1).then_some(sum).ok_or(LATE)
    })?;
    let fraction = fraction.map_or(Ok(0), micros)?;
    bounded(seconds * US + fraction)
}

/// RFC 3339: `2026-09-21T14:13:20.123456Z`, `2026-09-21 16:13:20+02:00`.
///
/// # Errors
/// Why it is no time.
pub fn rfc3339(text: &[u8]) -> Result<u64, Why> {
    const WHY: Why = "the time is not as in 2026-09-21T14:13:20.123456Z";
    let (day, rest) = text.split_at_checked(10).ok_or(WHY)?;
    let (clock, rest) = rest.split_at_checked(9).ok_or(WHY)?;
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = day else { return Err(WHY) };
    let [b'T' | b't' | b' ', clock @ ..] = clock else { return Err(WHY) };
    let year = number(&[*y1, *y2, *y3, *y4]).ok_or(WHY)?;
    let (month, date) = (number(&[*m1, *m2]).ok_or(WHY)?, number(&[*d1, *d2]).ok_or(WHY)?);
    let of_day = clock_s(clock).ok_or(WHY)?;

    let digits = match rest {
        [b'.' | b',', tail @ ..] => tail.iter().take_while(|byte| byte.is_ascii_digit()).count(),
        _ => 0,
    };
    let (fraction, zone) = if digits > 0 { (&rest[1..=digits], &rest[digits + 1..]) } else { (&rest[..0], rest) };
    let east = match zone {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => offset_s(*sign, [*h1, *h2, *m1, *m2]).ok_or(WHY)?,
        [] => return Err("the time has no offset: Z or +02:00"),
        _ => return Err(WHY),
    };
    let fraction = if fraction.is_empty() { 0 } else { micros(fraction)? };
    moment(year, month, date, of_day, east, fraction).unwrap_or(Err(WHY))
}

/// The time of the common log format, without its brackets: `17/May/2015:10:05:03 +0000`.
///
/// # Errors
/// Why it is no time.
pub fn common(text: &[u8]) -> Result<u64, Why> {
    const WHY: Why = "the time is not as in [17/May/2015:10:05:03 +0000]";
    const MONTHS: &[u8; 36] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    let [d1, d2, b'/', name @ .., b' ', sign, h1, h2, m1, m2] = text else { return Err(WHY) };
    let (name, rest) = name.split_at_checked(3).ok_or(WHY)?;
    let [b'/', y1, y2, y3, y4, b':', clock @ ..] = rest else { return Err(WHY) };
    let month = MONTHS.chunks_exact(3).zip(1..).find(|(month, _)| *month == name).ok_or(WHY)?.1;
    let date = number(&[*d1, *d2]).ok_or(WHY)?;
    let year = number(&[*y1, *y2, *y3, *y4]).ok_or(WHY)?;
    let of_day = clock_s(clock).ok_or(WHY)?;
    let east = offset_s(*sign, [*h1, *h2, *m1, *m2]).ok_or(WHY)?;
    moment(year, month, date, of_day, east, 0).unwrap_or(Err(WHY))
}

/// `None`: there is no such date.
fn moment(year: u64, month: u64, date: u64, of_day: u64, east: i64, micros: u64) -> Option<Result<u64, Why>> {
    let days = days(year, month, date)?;
    let seconds = days.checked_mul(86_400)?.checked_add_unsigned(of_day)?.checked_sub(east)?;
    let Ok(seconds) = u64::try_from(seconds) else { return Some(Err(EARLY)) };
    Some(bounded(seconds.saturating_mul(US).saturating_add(micros)))
}

fn bounded(us: u64) -> Result<u64, Why> {
    if us < BOUND_US { Ok(us) } else { Err(LATE) }
}

/// The first six digits after the point, as microseconds.
fn micros(digits: &[u8]) -> Result<u64, Why> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err("the time's fraction is no decimal number");
    }
    let padded = digits.iter().copied().chain(std::iter::repeat(b'0')).take(6);
    Ok(padded.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + u64::from(digit - b'0')))
}

/// `10:05:03` as seconds of the day. A leap second is the first second of the next minute, as Unix time has it.
fn clock_s(text: &[u8]) -> Option<u64> {
    let [h1, h2, b':', m1, m2, b':', s1, s2] = text else { return None };
    let (hour, minute, second) = (number(&[*h1, *h2])?, number(&[*m1, *m2])?, number(&[*s1, *s2])?);
    (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3600 + minute * 60 + second)
}

/// Seconds east of Greenwich.
fn offset_s(sign: u8, digits: [u8; 4]) -> Option<i64> {
    let (hours, minutes) = (number(&digits[..2])?, number(&digits[2..])?);
    let seconds = i64::try_from(hours * 3600 + minutes * 60).ok().filter(|_| hours < 24 && minutes < 60)?;
    match sign {
        b'+' => Some(seconds),
        b'-' => Some(-seconds),
        _ => None,
    }
}

/// Days since 1970-01-01 in the Gregorian calendar; `None` for a date that does not exist. Years begin in March here,
/// so that the leap day is the last.
fn days(year: u64, month: u64, date: u64) -> Option<i64> {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let length = match month {
        2 => 28 + u64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => return None,
    };
    if date == 0 || date > length || year == 0 {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let of_year = (153 * month + 2) / 5 + date - 1;
    let days = year * 365 + year / 4 - year / 100 + year / 400 + of_year;
    i64::try_from(days).ok().map(|days| days - 719_468)
}
