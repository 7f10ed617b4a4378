//! Where in which stream a record is, as text that sorts like the stream.

use std::fmt;

use crate::Rules;

/// The longest sequence number that DynamoDB makes.
const DIGITS: usize = 40;

/// The stream's label, `/`, and the sequence number padded with zeros to 40 digits.
///
/// Conditions compare text bytewise, and sequence numbers grow in length, so only padded ones sort like the stream. The
/// label is the time at which the stream was made: a later stream has a later label, wherever its numbers start.
///
/// ```
/// use zae_limiter_aggregator::Token;
///
/// let arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/limiter/stream/2026-01-31T12:00:00.000";
/// let parent = Token::new(arn, "820400000000000001192334")?;
/// let child = Token::new(arn, "1683700000000000001135967")?;
/// assert!(parent < child);
/// assert_eq!(parent.as_str(), "2026-01-31T12:00:00.000/0000000000000000820400000000000001192334");
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(String);

impl Token {
    /// The token of a record, or what is wrong with its numbers.
    pub fn new(stream_arn: &str, sequence_number: &str) -> Result<Self, String> {
        Self::by(Rules::default(), stream_arn, sequence_number)
    }

    pub(crate) fn by(rules: Rules, stream_arn: &str, sequence_number: &str) -> Result<Self, String> {
        let label = stream_arn.split_once("/stream/").map(|(_, label)| label);
        let label = label
            .filter(|label| !label.is_empty() && label.len() <= 64 && !label.contains('/'))
            .ok_or_else(|| format!("eventSourceARN {stream_arn:?} does not name a stream by its label"))?;
        let digits = !sequence_number.is_empty() && sequence_number.bytes().all(|byte| byte.is_ascii_digit());
        if !digits || sequence_number.len() > DIGITS {
            return Err(format!(
                "SequenceNumber {sequence_number:.60?} is not a number of at most {DIGITS} digits"
            ));
        }
        let label = if rules.labelled { label } else { "" };
        let width = if rules.padded { DIGITS } else { 0 };
        Ok(Self(format!("{label}/{sequence_number:0>width$}")))
    }

    /// The token as the snapshot keeps it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True if a snapshot that has counted up to `counted` has counted this record.
    pub fn is_counted(&self, counted: &str) -> bool {
        self.as_str() <= counted
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    fn arn(label: &str) -> String {
        format!("arn:aws:dynamodb:us-east-1:1:table/t/stream/{label}")
    }

    proptest! {
        #[test]
        fn tokens_of_a_stream_sort_like_its_numbers(a in 0u128..=u128::MAX, b in 0u128..=u128::MAX, shift in 0u32..127) {
            let (a, b) = (a >> shift, b);
            let token = |n: u128| Token::new(&arn("2026-01-01T00:00:00.000"), &n.to_string()).unwrap();
            prop_assert_eq!(a.cmp(&b), token(a).cmp(&token(b)));
        }

        #[test]
        fn a_later_stream_sorts_later_wherever_its_numbers_start(a: u128, b: u128) {
            let token = |label: &str, n: u128| Token::new(&arn(label), &n.to_string()).unwrap();
            prop_assert!(token("2026-01-01T00:00:00.000", a) < token("2026-01-01T00:00:00.001", b));
        }
    }

    #[test]
    fn numbers_and_streams_that_are_none_are_refused() {
        for number in ["", "12a", "-1", " 1", &"9".repeat(41)] {
            assert!(Token::new(&arn("2026"), number).is_err(), "{number}");
        }
        for stream in [
            "",
            "arn:aws:dynamodb:us-east-1:1:table/t",
            "x/stream/",
            "x/stream/a/b",
        ] {
            assert!(Token::new(stream, "1").is_err(), "{stream}");
        }
        assert!(Token::new(&arn("2026"), &"9".repeat(40)).is_ok());
    }
}
