//! Decimal numbers as text, scaled to whole numbers without binary fractions.

/// Longer text is not a price.
const MAX_LENGTH: usize = 64;

/// A number from 0 on: `digits` times ten to the power of `exponent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal {
    digits: u128,
    exponent: i32,
}

/// A decimal times a power of ten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scaled {
    /// Rounded up.
    pub(super) whole: u128,
    /// Nothing was rounded.
    pub(super) exact: bool,
}

impl Decimal {
    /// Parses digits with an optional fraction, such as `12.5`.
    pub(super) fn plain(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let complete = !whole.is_empty() && (text.len() == whole.len() || !fraction.is_empty());
        if text.len() > MAX_LENGTH || !complete || !is_number(whole) || !is_number(fraction) {
            return None;
        }
        let fraction = fraction.trim_end_matches('0');
        Some(Self {
            digits: format!("{whole}{fraction}").parse().ok()?,
            exponent: -i32::try_from(fraction.len()).ok()?,
        })
    }

    /// Parses a number as JSON writes it, such as `1.5e-07`.
    pub(super) fn scientific(text: &str) -> Option<Self> {
        let Some((number, power)) = text.split_once(['e', 'E']) else {
            return Self::plain(text);
        };
        let Self { digits, exponent } = Self::plain(number)?;
        let power: i32 = power.parse().ok()?;
        Some(Self {
            digits,
            exponent: exponent.checked_add(power)?,
        })
    }

    /// Times ten to the power of `places`; nothing if it is too large.
    pub(super) fn scaled(self, places: i32) -> Option<Scaled> {
        if self.digits == 0 {
            return Some(Scaled {
                whole: 0,
                exact: true,
            });
        }
        let exponent = self.exponent.checked_add(places)?;
        let power = 10_u128.checked_pow(exponent.unsigned_abs());
        if exponent >= 0 {
            let whole = self.digits.checked_mul(power?)?;
            return Some(Scaled { whole, exact: true });
        }
        // A divisor that does not fit is larger than any digits.
        Some(match power {
            Some(divisor) => Scaled {
                whole: self.digits.div_ceil(divisor),
                exact: self.digits.is_multiple_of(divisor),
            },
            None => Scaled {
                whole: 1,
                exact: false,
            },
        })
    }
}
