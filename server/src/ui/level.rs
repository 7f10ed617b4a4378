//! The level of a limit as a bar.

use maud::{Markup, html};

use zae_limiter::{Counted, Limit};

use super::text::amount;

/// How much of a limit is available, used or held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Level {
    available: i64,
    /// Of a quota's period, or held.
    used: Option<i64>,
    burst: u64,
    /// What the bar shows.
    pub(crate) counted: Counted,
    /// Whether it counts money.
    money: bool,
}

impl Level {
    /// Used is what a quota or a limit on calls in flight has used, of its amount and what it was topped up with.
    pub(crate) fn of(limit: &Limit, topped_up: u64, available: i64, used: Option<i64>, money: bool) -> Self {
        Self {
            available,
            used,
            burst: limit.burst().get().saturating_add(topped_up),
            counted: used.map_or(Counted::Available, |_| limit.kind().counted()),
            money,
        }
    }

    /// What the bar shows, in tokens or permits. Below zero is debt.
    fn shown(self) -> i64 {
        self.used.unwrap_or(self.available)
    }

    /// How long the bar is in thousandths, 0 for debt.
    fn filled(self) -> u64 {
        let shown = u64::try_from(self.shown()).unwrap_or(0);
        if self.burst == 0 {
            return 0;
        }
        let filled = u128::from(shown.min(self.burst)) * 1000 / u128::from(self.burst);
        u64::try_from(filled).unwrap_or(1000)
    }

    /// By what is left, whatever the bar shows.
    fn tone(self) -> &'static str {
        let left = u128::from(u64::try_from(self.available).unwrap_or(0)) * 1000;
        if self.available < 0 {
            "debt"
        } else if left < u128::from(self.burst) * 100 {
            "low"
        } else {
            "fill"
        }
    }

    /// What the bar shows, and of how much: `45` of `60 tokens`.
    pub(crate) fn amounts(self) -> (String, String) {
        let unit = match self.counted {
            Counted::Used if self.money => " used",
            _ if self.money => "",
            Counted::Available => " tokens",
            Counted::Used => " tokens used",
            Counted::Held => " permits held",
        };
        let most = amount(self.burst, self.money);
        (amount(self.shown(), self.money), format!("{most}{unit}"))
    }

    fn description(self) -> String {
        let (shown, most) = self.amounts();
        match self.counted {
            Counted::Available if self.available < 0 => {
                let burst = amount(self.burst, self.money);
                let unit = if self.money { "" } else { " tokens" };
                let debt = amount(self.available.unsigned_abs(), self.money);
                format!("{debt}{unit} of debt, burst {burst}")
            }
            Counted::Available => format!("{shown} of {most} available"),
            Counted::Used | Counted::Held => format!("{shown} of {most}"),
        }
    }

    /// A bar that is as long as the burst. Debt has a color of its own, and its text says so.
    pub(crate) fn to_svg(self) -> Markup {
        let width = if self.shown() < 0 { 1000 } else { self.filled() };
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
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn shown(available: i64, burst: u64) -> (u64, &'static str, String) {
        let level = Level {
            available,
            used: None,
            burst,
            counted: Counted::Available,
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
            used: None,
            burst: 5_000_000,
            counted: Counted::Available,
            money: true,
        };
        assert_eq!(level(1_250_000).description(), "$1.25 of $5.00 available");
        assert_eq!(level(-10_000).description(), "$0.01 of debt, burst $5.00");
    }

    #[test]
    fn a_quota_shows_what_was_used_and_a_concurrency_limit_what_is_held() {
        let level = |limit: &str, available, used, money| {
            let level = Level::of(&limit.parse().unwrap(), 0, available, Some(used), money);
            (level.filled(), level.tone(), level.description())
        };
        let shown = |limit: &str, available, money| {
            let most = limit.parse::<Limit>().unwrap().burst().get().cast_signed();
            level(limit, available, most - available, money)
        };
        let quota = "spend:500 per month";
        let used = |text: &str| text.to_owned();
        assert_eq!(
            shown(quota, 125, false),
            (750, "fill", used("375 of 500 tokens used"))
        );
        assert_eq!(
            shown(quota, 0, false),
            (1000, "low", used("500 of 500 tokens used"))
        );
        assert_eq!(
            shown(quota, -20, false),
            (1000, "debt", used("520 of 500 tokens used"))
        );
        assert_eq!(
            shown("usd:5000000 per day", 4_000_000, true),
            (200, "fill", used("$1.00 of $5.00 used"))
        );
        let permits = "parallel:8 at once for 10min";
        assert_eq!(
            shown(permits, 5, false),
            (375, "fill", used("3 of 8 permits held"))
        );
        assert_eq!(shown(permits, 8, false), (0, "fill", used("0 of 8 permits held")));
    }

    #[test]
    fn what_was_used_before_a_top_up_stays_used() {
        let level = Level::of(
            &"usd:10000000 per month".parse().unwrap(),
            5_000_000,
            3_000_000,
            Some(12_000_000),
            true,
        );
        assert_eq!(level.description(), "$12.00 of $15.00 used");
    }

    #[test]
    fn debt_is_said_in_words() {
        assert_eq!(
            shown(-20, 60),
            (0, "debt", "20 tokens of debt, burst 60".to_owned())
        );
    }
}
