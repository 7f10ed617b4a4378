//! The level of a limit as a bar.

use maud::{Markup, html};

use super::text::amount;

/// How much of a limit is available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Level {
    pub(crate) available: i64,
    pub(crate) burst: u64,
    /// Whether it counts money.
    pub(crate) money: bool,
}

impl Level {
    /// How full it is in thousandths, 0 for debt.
    fn filled(self) -> u64 {
        let available = u64::try_from(self.available).unwrap_or(0);
        if self.burst == 0 {
            return 0;
        }
        let filled = u128::from(available.min(self.burst)) * 1000 / u128::from(self.burst);
        u64::try_from(filled).unwrap_or(1000)
    }

    fn tone(self) -> &'static str {
        match self.filled() {
            _ if self.available < 0 => "debt",
            0..100 => "low",
            _ => "fill",
        }
    }

    fn description(self) -> String {
        let (burst, unit) = (
            amount(self.burst, self.money),
            if self.money { "" } else { " tokens" },
        );
        if self.available < 0 {
            let debt = amount(self.available.unsigned_abs(), self.money);
            format!("{debt}{unit} of debt, burst {burst}")
        } else {
            format!(
                "{} of {burst}{unit} available",
                amount(self.available, self.money)
            )
        }
    }

    /// A bar that is as long as the burst. Debt has a color of its own, and its text says so.
    pub(crate) fn to_svg(self) -> Markup {
        let width = if self.available < 0 { 1000 } else { self.filled() };
        html! {
            svg.level viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" aria-label=(self.description()) {
                title { (self.description()) }
                rect.track width="1000" height="10" {}
                rect class=(self.tone()) width=(width) height="10" {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(available: i64, burst: u64) -> (u64, &'static str, String) {
        let level = Level {
            available,
            burst,
            money: false,
        };
        (level.filled(), level.tone(), level.description())
    }

    #[test]
    fn a_bar_is_as_long_as_what_is_available() {
        assert_eq!(
            shown(45, 60),
            (750, "fill", "45 of 60 tokens available".to_owned())
        );
        assert_eq!(shown(5, 60), (83, "low", "5 of 60 tokens available".to_owned()));
        assert_eq!(shown(70, 60).0, 1000, "never beyond the end");
        assert_eq!(shown(i64::MAX, u64::MAX).0, 499);
    }

    #[test]
    fn money_is_said_in_dollars() {
        let level = |available| Level {
            available,
            burst: 5_000_000,
            money: true,
        };
        assert_eq!(level(1_250_000).description(), "$1.25 of $5.00 available");
        assert_eq!(level(-10_000).description(), "$0.01 of debt, burst $5.00");
    }

    #[test]
    fn debt_is_said_in_words() {
        assert_eq!(
            shown(-20, 60),
            (0, "debt", "20 tokens of debt, burst 60".to_owned())
        );
    }
}
