//! JSON as DynamoDB reads it, appended to a buffer.

use aws_smithy_types::base64;
use zae_limiter_schema::AttributeValue;
use zae_limiter_schema::bucket::Scalar;

/// Appends text in quotes.
pub(super) fn push_text(json: &mut String, text: &str) {
    json.push('"');
    let plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    if text.bytes().all(plain) {
        json.push_str(text);
    } else {
        text.chars().for_each(|letter| push_escaped(json, letter));
    }
    json.push('"');
}

fn push_escaped(json: &mut String, letter: char) {
    match letter {
        '"' => json.push_str("\\\""),
        '\\' => json.push_str("\\\\"),
        control if control < ' ' => {
            json.push_str(if u32::from(control) < 16 {
                "\\u000"
            } else {
                "\\u001"
            });
            json.extend(char::from_digit(u32::from(control) % 16, 16));
        }
        other => json.push(other),
    }
}

/// Appends the digits of a number. A write has a dozen of them, and the formatting machinery takes several times as long.
pub(super) fn push_digits(text: &mut String, number: i128) {
    /// The largest power of ten in 64 bits.
    const CHUNK: u128 = 10_000_000_000_000_000_000;
    if number < 0 {
        text.push('-');
    }
    let magnitude = number.unsigned_abs();
    if let Ok(small) = u64::try_from(magnitude) {
        return push_u64(text, small);
    }
    // Both parts of a number of 128 bits fit into 64.
    push_u64(text, u64::try_from(magnitude / CHUNK).unwrap_or_default());
    push_padded(text, u64::try_from(magnitude % CHUNK).unwrap_or_default());
}

fn push_u64(text: &mut String, number: u64) {
    let (digits, start) = digits(number);
    text.push_str(std::str::from_utf8(&digits[start..]).unwrap_or_default());
}

/// With zeros in front, so that there are nineteen digits.
fn push_padded(text: &mut String, number: u64) {
    let (digits, _) = digits(number);
    text.push_str(std::str::from_utf8(&digits[1..]).unwrap_or_default());
}

/// The twenty digits of a number, and where the first one that counts is.
fn digits(mut number: u64) -> ([u8; 20], usize) {
    let mut digits = [b'0'; 20];
    let mut start = digits.len();
    while number > 0 || start == digits.len() {
        start -= 1;
        // A remainder of ten fits into a byte.
        digits[start] = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
    }
    (digits, start)
}

/// Appends a value with its type.
pub(super) fn push_scalar(json: &mut String, value: &Scalar) {
    match value {
        Scalar::Number(number) => push_number(json, *number),
        Scalar::Text(text) => typed(json, "S", |json| push_text(json, text)),
        Scalar::Flag(flag) => typed(json, "BOOL", |json| push_flag(json, *flag)),
        Scalar::Other(value) => push_value(json, value),
    }
}

/// Appends a number with its type.
pub(super) fn push_number(json: &mut String, number: i128) {
    json.push_str("{\"N\":\"");
    push_digits(json, number);
    json.push_str("\"}");
}

fn push_flag(json: &mut String, flag: bool) {
    json.push_str(if flag { "true" } else { "false" });
}

fn typed(json: &mut String, name: &str, value: impl FnOnce(&mut String)) {
    json.push_str("{\"");
    json.push_str(name);
    json.push_str("\":");
    value(json);
    json.push('}');
}

fn push_value(json: &mut String, value: &AttributeValue) {
    match value {
        AttributeValue::S(text) => typed(json, "S", |json| push_text(json, text)),
        AttributeValue::N(digits) => typed(json, "N", |json| push_text(json, digits)),
        AttributeValue::Bool(flag) => typed(json, "BOOL", |json| push_flag(json, *flag)),
        AttributeValue::Null(null) => typed(json, "NULL", |json| push_flag(json, *null)),
        AttributeValue::B(bytes) => typed(json, "B", |json| push_text(json, &base64::encode(bytes))),
        AttributeValue::Ss(set) => typed(json, "SS", |json| {
            push_list(json, set, |json, text| push_text(json, text));
        }),
        AttributeValue::Ns(set) => typed(json, "NS", |json| {
            push_list(json, set, |json, text| push_text(json, text));
        }),
        AttributeValue::Bs(set) => typed(json, "BS", |json| {
            push_list(json, set, |json, bytes| push_text(json, &base64::encode(bytes)));
        }),
        AttributeValue::L(list) => typed(json, "L", |json| push_list(json, list, push_value)),
        AttributeValue::M(map) => typed(json, "M", |json| {
            for (index, (name, value)) in map.iter().enumerate() {
                json.push(if index == 0 { '{' } else { ',' });
                push_text(json, name);
                json.push(':');
                push_value(json, value);
            }
            json.push_str(if map.is_empty() { "{}" } else { "}" });
        }),
    }
}

fn push_list<T>(json: &mut String, list: &[T], push: impl Fn(&mut String, &T)) {
    json.push('[');
    for (index, one) in list.iter().enumerate() {
        if index > 0 {
            json.push(',');
        }
        push(json, one);
    }
    json.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_number() {
        let chunk = 10_000_000_000_000_000_000;
        let edges = [
            0,
            1,
            9,
            10,
            99,
            100,
            i128::from(u64::MAX),
            chunk,
            chunk * 10,
            i128::MAX - 1,
        ];
        for edge in edges {
            for number in [edge - 1, edge, edge + 1, -edge, -edge - 1] {
                let mut text = String::new();
                push_digits(&mut text, number);
                assert_eq!(text, number.to_string());
            }
        }
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..10_000 {
            let number = random.i128(..) >> random.u32(0..127);
            let mut text = String::new();
            push_digits(&mut text, number);
            assert_eq!(text, number.to_string());
        }
    }
}
