//! Where in which stream a record is, as text that sorts like the stream.

use std::fmt;

use crate::rules::{Rule, Rules};

/// The length of the longest sequence number that DynamoDB makes.
const DIGITS: usize = 40;

/// The stream's label, `/`, and the sequence number padded with zeros to 40 digits.
///
/// Conditions compare text by bytes, and sequence numbers grow in length, so only padded ones sort like the stream. The
/// label is the time at which the stream was created: a later stream has a later label, wherever its numbers start.
///
/// ```
/// use zae_limiter_aggregator::Position;
///
/// let arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/limiter/stream/2026-01-31T12:00:00.000";
/// let parent = Position::new(arn, "820400000000000001192334")?;
/// let child = Position::new(arn, "1683700000000000001135967")?;
/// assert!(parent < child);
/// assert_eq!(parent.as_str(), "2026-01-31T12:00:00.000/0000000000000000820400000000000001192334");
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(String);

impl Position {
    /// The position of a record, or what is wrong with its numbers.
    pub fn new(stream_arn: &str, sequence_number: &str) -> Result<Self, String> {
        Self::by(Rules::default(), stream_arn, sequence_number)
    }

    pub(crate) fn by(rules: Rules, stream_arn: &str, sequence_number: &str) -> Result<Self, String> {
        let label = stream_arn.split_once("/stream/").map(|(_, label)| label);
        let label = label
            .filter(|label| !label.is_empty() && label.len() <= 64 && !label.contains(['/', ' ']))
            .ok_or_else(|| format!("eventSourceARN {stream_arn:?} does not name a stream by its label"))?;
        let digits = !sequence_number.is_empty() && sequence_number.bytes().all(|byte| byte.is_ascii_digit());
        if !digits || sequence_number.len() > DIGITS {
            return Err(format!(
                "SequenceNumber {sequence_number:.60?} is not a number of at most {DIGITS} digits"
            ));
        }
        let label = if rules.hold(Rule::StreamLabel) { label } else { "" };
        let width = if rules.hold(Rule::PaddedNumbers) {
            DIGITS
        } else {
            0
        };
        Ok(Self(format!("{label}/{sequence_number:0>width$}")))
    }

    /// The position as a snapshot stored it.
    pub(crate) fn stored(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The position as a snapshot stores it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Position {
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
        fn positions_in_a_stream_sort_like_its_numbers(a in 0u128..=u128::MAX, b in 0u128..=u128::MAX, shift in 0u32..127) {
            let (a, b) = (a >> shift, b);
            let position = |n: u128| Position::new(&arn("2026-01-01T00:00:00.000"), &n.to_string()).unwrap();
            prop_assert_eq!(a.cmp(&b), position(a).cmp(&position(b)));
        }

        #[test]
        fn a_later_stream_sorts_later_wherever_its_numbers_start(a: u128, b: u128) {
            let position = |label: &str, n: u128| Position::new(&arn(label), &n.to_string()).unwrap();
            prop_assert!(position("2026-01-01T00:00:00.000", a) < position("2026-01-01T00:00:00.001", b));
        }
    }

    #[test]
    fn invalid_numbers_and_streams_are_refused() {
        for number in ["", "12a", "-1", " 1", &"9".repeat(41)] {
            assert!(Position::new(&arn("2026"), number).is_err(), "{number}");
        }
        for stream in [
            "",
            "arn:aws:dynamodb:us-east-1:1:table/t",
            "x/stream/",
            "x/stream/a/b",
            "x/stream/a b",
        ] {
            assert!(Position::new(stream, "1").is_err(), "{stream}");
        }
        assert!(Position::new(&arn("2026"), &"9".repeat(40)).is_ok());
    }
}
