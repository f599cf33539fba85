//! Numbers and times in plain words.

/// `1,234,567`
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `5.9 %`, rounded to a tenth; what is not nothing is never shown as `0.0 %`, what is not all never as `100.0 %`.
pub(crate) fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    let tenths = (u128::from(part) * 2000 / u128::from(whole)).div_ceil(2);
    let tenths = match (part, tenths) {
        (0, _) => 0,
        (_, 0) => 1,
        (_, 1000) if part < whole => 999,
        _ => tenths,
    };
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// `2015-05-17 10:05:03`, in UTC, down to the second.
pub(crate) fn moment(us: u64) -> String {
    let time = i64::try_from(us).ok().and_then(|us| jiff::Timestamp::from_microsecond(us).ok());
    time.map_or_else(|| us.to_string(), |time| time.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// `3 d 11 h`: a length of time in its two largest units.
pub(crate) fn span(us: u64) -> String {
    const UNITS: [(&str, u64); 4] = [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)];
    let seconds = us / 1_000_000;
    let Some(first) = UNITS.iter().position(|(_, unit)| seconds >= *unit) else { return format!("{} ms", us / 1_000) };
    let (name, unit) = UNITS[first];
    let rest = seconds % unit;
    match UNITS.get(first + 1) {
        Some((smaller, length)) if rest >= *length => format!("{} {name} {} {smaller}", seconds / unit, rest / length),
        _ => format!("{} {name}", seconds / unit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([0, 12, 999, 1000, 1_234_567].map(count), ["0", "12", "999", "1,000", "1,234,567"]);
        let shares = [(0, 10), (1, 3), (1, 1_000_000), (999_999, 1_000_000), (10, 10), (1, 0)];
        let said = shares.map(|(part, whole)| share(part, whole));
        assert_eq!(said, ["0.0 %", "33.3 %", "0.1 %", "99.9 %", "100.0 %", "-"]);
        let spans = [5_000, 1_000_000, 61_000_000, 3_600_000_000, 299_000_000_000, 86_400_000_000];
        assert_eq!(spans.map(span), ["5 ms", "1 s", "1 min 1 s", "1 h", "3 d 11 h", "1 d"]);
        assert_eq!(moment(1_431_857_103_999_999), "2015-05-17 10:05:03");
    }
}
