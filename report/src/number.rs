//! Numbers with thousands separators.

/// A whole number: `1,234,567`.
pub fn grouped(number: impl Into<i128>) -> String {
    let number = number.into();
    let digits = number.unsigned_abs().to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if number < 0 {
        text.push('-');
    }
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with a fixed number of decimal places: `1,234.5`.
pub fn decimal(number: f64, places: usize) -> String {
    let text = format!("{number:.places$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let sign = if whole.starts_with('-') && number < 0.0 {
        "-"
    } else {
        ""
    };
    let whole = whole
        .trim_start_matches('-')
        .parse::<i128>()
        .map_or_else(|_| whole.to_owned(), grouped);
    if fraction.is_empty() {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (-1_234_567, "-1,234,567"),
        ] {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(grouped(i128::MIN).len(), 1 + 39 + 12);
        assert_eq!(decimal(-1234.56, 1), "-1,234.6");
        assert_eq!(decimal(-0.5, 1), "-0.5");
        assert_eq!(decimal(12.0, 0), "12");
        assert_eq!(decimal(f64::NAN, 1), "NaN");
    }
}
