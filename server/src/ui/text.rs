//! Numbers and times as people read them.

use maud::{Markup, html};
use zae_limiter::money::dollars;
use zae_limiter::{Limit, LimitKind, Timestamp};

/// A number with a comma every three digits.
pub(crate) fn grouped(number: impl Into<i128>) -> String {
    let number: i128 = number.into();
    let digits = number.unsigned_abs().to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if number < 0 {
        text.push('\u{2212}');
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// An amount of a limit: dollars if it counts money, in millionths of a dollar, else a number.
pub(crate) fn amount(number: impl Into<i128>, money: bool) -> String {
    if money {
        dollars(number.into()).replace('-', "\u{2212}")
    } else {
        grouped(number)
    }
}

/// A time: UTC on hover and without the script, the viewer's zone with it.
pub(crate) fn time(timestamp: Timestamp) -> Markup {
    let utc = utc(timestamp);
    html! { time datetime=(timestamp) title=(utc) { (utc) } }
}

/// `2026-01-31 12:00:00 UTC`.
pub(crate) fn utc(timestamp: Timestamp) -> String {
    format!(
        "{} UTC",
        timestamp.to_string().replace('T', " ").trim_end_matches('Z')
    )
}

/// How fast a limit refills, such as `100 / min`.
pub(crate) fn rate(refill: u64, period_ms: u64, money: bool) -> String {
    let period = match period_ms {
        1_000 => "s".to_owned(),
        60_000 => "min".to_owned(),
        3_600_000 => "h".to_owned(),
        86_400_000 => "day".to_owned(),
        other if other % 1_000 == 0 => format!("{} s", grouped(other / 1_000)),
        other => format!("{} ms", grouped(other)),
    };
    format!("{} / {period}", amount(refill, money))
}

/// How fast a limit refills, or when it comes back.
pub(crate) fn rate_of(limit: &Limit, money: bool) -> String {
    match limit.kind() {
        LimitKind::Rate(refill) => {
            let period = refill.refill_period_seconds().saturating_mul(1_000);
            rate(refill.refill_amount().get(), period, money)
        }
        LimitKind::Quota(quota) => {
            let text = format!("{} per {}", amount(quota.amount().get(), money), quota.period());
            if quota.alerts().is_empty() {
                text
            } else {
                format!("{text} alert at {}", quota.alerts())
            }
        }
        kind @ LimitKind::Concurrency(_) => kind.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_three_digits() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (-1_234_567, "\u{2212}1,234,567"),
        ] {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn rates_name_the_period_in_common_units() {
        assert_eq!(rate(100, 60_000, false), "100 / min");
        assert_eq!(rate(10_000, 90_000, false), "10,000 / 90 s");
        assert_eq!(rate(1, 1_500, false), "1 / 1,500 ms");
        assert_eq!(rate(2_500_000, 86_400_000, true), "$2.50 / day");
    }

    #[test]
    fn money_is_in_dollars() {
        assert_eq!(amount(1_250_000, true), "$1.25");
        assert_eq!(amount(-1_250_000, true), "\u{2212}$1.25");
        assert_eq!(amount(1_250_000, false), "1,250,000");
    }

    #[test]
    fn a_time_without_the_script_is_in_utc() {
        let timestamp = Timestamp::from_seconds(1_769_860_800);
        assert_eq!(
            time(timestamp).into_string(),
            "<time datetime=\"2026-01-31T12:00:00Z\" title=\"2026-01-31 12:00:00 UTC\">2026-01-31 12:00:00 UTC</time>"
        );
    }
}
