//! Numbers and texts one after the other in as few bytes as they need. Only this process reads what it wrote.

use std::time::Duration;

/// Seven bits of a number go into each byte; the eighth says that more follow.
const MORE: u8 = 0x80;

/// Writes one after the other.
#[derive(Debug, Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn into_bytes(self) -> Box<[u8]> {
        self.0.into_boxed_slice()
    }

    /// Any number; one near zero takes one byte.
    pub(super) fn number(&mut self, number: i128) {
        // The sign goes into the lowest bit.
        let mut bits = ((number << 1) ^ (number >> 127)).cast_unsigned();
        while bits >= u128::from(MORE) {
            self.0.push(bits.to_le_bytes()[0] | MORE);
            bits >>= 7;
        }
        self.0.push(bits.to_le_bytes()[0]);
    }

    pub(super) fn flag(&mut self, flag: bool) {
        self.number(i128::from(flag));
    }

    pub(super) fn time(&mut self, time: Duration) {
        self.number(i128::try_from(time.as_nanos()).unwrap_or(i128::MAX));
    }

    pub(super) fn text(&mut self, text: &str) {
        self.number(i128::try_from(text.len()).unwrap_or(i128::MAX));
        self.0.extend_from_slice(text.as_bytes());
    }

    pub(super) fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.flag(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
    }
}

/// Reads in the order in which it was written. Nothing where the bytes end too early or have no sense.
#[derive(Debug)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn number(&mut self) -> Option<i128> {
        let (mut bits, mut shift) = (0_u128, 0);
        loop {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            bits |= u128::from(byte & !MORE).checked_shl(shift)?;
            shift += 7;
            if byte & MORE == 0 {
                return Some((bits >> 1).cast_signed() ^ -(bits & 1).cast_signed());
            }
        }
    }

    pub(super) fn small<T: TryFrom<i128>>(&mut self) -> Option<T> {
        self.number()?.try_into().ok()
    }

    pub(super) fn flag(&mut self) -> Option<bool> {
        self.number().map(|number| number != 0)
    }

    pub(super) fn time(&mut self) -> Option<Duration> {
        let nanos: u128 = self.small()?;
        let (seconds, nanos) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
        Some(Duration::new(
            u64::try_from(seconds).ok()?,
            u32::try_from(nanos).ok()?,
        ))
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        let length = self.small()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }

    /// Nothing inside if nothing was written.
    #[expect(
        clippy::option_option,
        reason = "the outer one says whether the bytes have a sense"
    )]
    pub(super) fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.flag()? {
            read(self).map(Some)
        } else {
            Some(None)
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            number: i128, time: Duration, text in ".*", flag: bool, optional: Option<i64>
        ) {
            let mut writer = Writer::default();
            writer.number(number);
            writer.time(time);
            writer.text(&text);
            writer.flag(flag);
            writer.optional(optional, |writer, number| writer.number(number.into()));
            let bytes = writer.into_bytes();
            let mut reader = Reader(&bytes);
            prop_assert_eq!(reader.number(), Some(number));
            prop_assert_eq!(reader.time(), Some(time));
            prop_assert_eq!(reader.text(), Some(&*text));
            prop_assert_eq!(reader.flag(), Some(flag));
            prop_assert_eq!(reader.optional(Reader::small::<i64>), Some(optional));
            prop_assert!(reader.0.is_empty());
        }

        #[test]
        fn bytes_without_sense_are_no_panic(bytes: Vec<u8>) {
            let mut reader = Reader(&bytes);
            while reader.time().is_some() && reader.text().is_some() && reader.number().is_some() {}
        }
    }

    #[test]
    fn numbers_near_zero_take_one_byte_and_large_ones_what_they_need() {
        let bytes = |number| {
            let mut writer = Writer::default();
            writer.number(number);
            writer.into_bytes().len()
        };
        assert_eq!([0, -1, 63, -64, 64].map(bytes), [1, 1, 1, 1, 2]);
        assert_eq!([i128::MAX, i128::MIN].map(bytes), [19, 19]);
    }
}
