//! Usage over time as a bar chart in SVG, with axes and units.

use maud::{Markup, html};
use zae_limiter::Timestamp;
use zae_limiter::usage::{Window, WindowKind};

use super::text::{amount, grouped, utc};

const WIDTH: i64 = 720;
const HEIGHT: i64 = 220;
/// Where bars may be drawn: right of the labels of the y axis, above those of the x axis.
const LEFT: i64 = 64;
const RIGHT: i64 = 12;
const TOP: i64 = 12;
const BOTTOM: i64 = 44;
/// About how many times the x axis names.
const LABELS: usize = 6;

/// One bar per window.
#[derive(Debug, Clone)]
pub(crate) struct Chart {
    /// What is counted, such as `tpm`.
    pub(crate) title: String,
    /// Of what the y axis shows numbers, such as `tokens`.
    pub(crate) unit: &'static str,
    pub(crate) kind: WindowKind,
    /// Whether values are millionths of a dollar.
    pub(crate) money: bool,
    /// Every window of the range in order, those without usage too.
    pub(crate) bars: Vec<(Window, i64)>,
}

impl Chart {
    pub(crate) fn to_svg(&self) -> Markup {
        let top = nice_ceiling(self.bars.iter().map(|(_, value)| *value).max().unwrap_or(0));
        let every = self.bars.len().div_ceil(LABELS).max(1);
        html! {
            figure.chart {
                figcaption { (self.title) span.unit { " " (self.axis()) } }
                svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(self.summary()) {
                    g.grid aria-hidden="true" {
                        @for tick in [0, top / 2, top] {
                            line x1=(LEFT) x2=(WIDTH - RIGHT) y1=(y(tick, top)) y2=(y(tick, top)) {}
                            text x=(LEFT - 8) y=(y(tick, top) + 4) text-anchor="end" { (self.tick(tick)) }
                        }
                    }
                    g.bars {
                        @for (index, (window, value)) in self.bars.iter().enumerate() {
                            @let height = y(0, top) - y(*value, top);
                            rect x=(self.x(index)) width=(self.bar_width()) y=(y(*value, top)) height=(height) {
                                title { (utc(window.start())) ": " (self.amount(*value)) }
                            }
                        }
                    }
                    g.axis aria-hidden="true" {
                        @for (index, (window, _)) in self.bars.iter().enumerate().step_by(every) {
                            text x=(self.x(index) + self.bar_width() / 2) y=(HEIGHT - BOTTOM + 18) text-anchor="middle"
                                data-time=(window.start()) data-window=(self.kind) { (self.label(window.start())) }
                        }
                        text.axis-title x=(LEFT + (WIDTH - LEFT - RIGHT) / 2) y=(HEIGHT - 6) text-anchor="middle"
                            data-axis { (self.time_axis()) }
                    }
                }
            }
        }
    }

    fn axis(&self) -> String {
        format!("{} per {}", self.unit, noun(self.kind))
    }

    fn time_axis(&self) -> String {
        format!("{} that starts at this time (UTC)", noun(self.kind))
    }

    fn summary(&self) -> String {
        let most = self.bars.iter().max_by_key(|(_, value)| *value);
        let total: i64 = self
            .bars
            .iter()
            .fold(0, |sum, (_, value)| sum.saturating_add(*value));
        let peak = most.map_or(String::new(), |(window, value)| {
            format!(
                ", at most {} at {}",
                amount(*value, self.money),
                utc(window.start())
            )
        });
        format!(
            "{}, {}: {} in all{peak}",
            self.title,
            self.axis(),
            amount(total, self.money)
        )
    }

    /// A value with its unit.
    fn amount(&self, value: i64) -> String {
        let number = amount(value, self.money);
        if self.money {
            number
        } else {
            format!("{number} {}", self.unit)
        }
    }

    /// A value at the axis.
    fn tick(&self, value: i64) -> String {
        if self.money {
            amount(value, true)
        } else {
            short(value)
        }
    }

    fn label(&self, start: Timestamp) -> String {
        let text = start.to_string();
        match self.kind {
            WindowKind::Hourly => text[11..16].to_owned(),
            WindowKind::Daily => text[5..10].to_owned(),
            WindowKind::Monthly => text[..7].to_owned(),
        }
    }

    /// The left edge of a bar. Computed as a whole so that rounding does not add up.
    fn x(&self, index: usize) -> i64 {
        let index = i64::try_from(index).unwrap_or(0);
        LEFT + index * (WIDTH - LEFT - RIGHT) / self.count()
    }

    fn bar_width(&self) -> i64 {
        let slot = (WIDTH - LEFT - RIGHT) / self.count();
        (slot - (slot / 5).max(1)).clamp(1, 40)
    }

    fn count(&self) -> i64 {
        i64::try_from(self.bars.len()).unwrap_or(1).max(1)
    }
}

pub(crate) const fn noun(kind: WindowKind) -> &'static str {
    match kind {
        WindowKind::Hourly => "hour",
        WindowKind::Daily => "day",
        WindowKind::Monthly => "month",
    }
}

/// The height at which a value is drawn. Values below zero are drawn as none; the table shows them.
fn y(value: i64, top: i64) -> i64 {
    let height = i128::from(HEIGHT - TOP - BOTTOM);
    let drawn = i128::from(value.clamp(0, top)) * height / i128::from(top.max(1));
    HEIGHT - BOTTOM - i64::try_from(drawn).unwrap_or(0)
}

/// The least of 2, 4, 10, 20, 40, 100, … that is not below: half of it is a round number too.
fn nice_ceiling(most: i64) -> i64 {
    let mut scale = 1_i64;
    loop {
        for step in [2, 4, 10] {
            match scale.checked_mul(step) {
                Some(ceiling) if ceiling >= most => return ceiling,
                Some(_) => {}
                None => return i64::MAX,
            }
        }
        scale = scale.saturating_mul(10);
    }
}

/// A number that fits beside the axis, such as `20 k`.
fn short(number: i64) -> String {
    for (unit, size) in [
        ("T", 1_000_000_000_000),
        ("G", 1_000_000_000),
        ("M", 1_000_000),
        ("k", 1_000),
    ] {
        if number >= size * 2 || number == size {
            return if number % size == 0 {
                format!("{}\u{a0}{unit}", grouped(number / size))
            } else {
                format!("{}.{}\u{a0}{unit}", number / size, number % size * 10 / size)
            };
        }
    }
    grouped(number)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn chart(values: &[i64]) -> Chart {
        let start = Timestamp::parse("2026-01-31T00:00:00Z").unwrap();
        let hours = (0..).map(|hour| WindowKind::Hourly.window_at(start.plus_millis(hour * 3_600_000)));
        Chart {
            title: "tpm".to_owned(),
            unit: "tokens",
            kind: WindowKind::Hourly,
            money: false,
            bars: hours.zip(values.iter().copied()).collect(),
        }
    }

    #[test]
    fn the_y_axis_ends_at_a_round_number_that_no_bar_exceeds() {
        for (most, ceiling) in [
            (0, 2),
            (2, 2),
            (3, 4),
            (5, 10),
            (11, 20),
            (401, 1_000),
            (9_999, 10_000),
        ] {
            assert_eq!(nice_ceiling(most), ceiling, "{most}");
        }
        assert_eq!(nice_ceiling(i64::MAX), i64::MAX);
    }

    #[test]
    fn axes_have_units_and_the_summary_has_total_and_peak() {
        let svg = chart(&[0, 40, 7]).to_svg().into_string();
        assert!(svg.contains("tokens per hour"), "{svg}");
        assert!(svg.contains("hour that starts at this time (UTC)"), "{svg}");
        assert!(
            svg.contains("tpm, tokens per hour: 47 in all, at most 40 at 2026-01-31 01:00:00 UTC"),
            "{svg}"
        );
    }

    #[test]
    fn bars_stay_inside_however_many_there_are() {
        for count in [1, 24, 200] {
            let chart = chart(&vec![1; count]);
            let last = chart.x(count - 1) + chart.bar_width();
            assert!(last <= WIDTH - RIGHT, "{count}: {last}");
        }
    }

    #[test]
    fn labels_of_the_axis_are_short() {
        assert_eq!(short(200), "200");
        assert_eq!(short(1_000), "1\u{a0}k");
        assert_eq!(short(20_000), "20\u{a0}k");
        assert_eq!(short(2_500), "2.5\u{a0}k");
    }

    #[test]
    fn money_is_drawn_in_dollars() {
        let chart = Chart {
            title: "usd".to_owned(),
            unit: "dollars",
            money: true,
            ..chart(&[1_250_000, 3_000_000])
        };
        let svg = chart.to_svg().into_string();
        for text in [
            "dollars per hour",
            ">$4.00<",
            ">$2.00<",
            ": $1.25<",
            "$4.25 in all, at most $3.00",
        ] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
    }
}
