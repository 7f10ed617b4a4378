//! Bar charts: one column per point, with a resolution of an eighth of a line.

use crate::{Layout, grouped};

const HEIGHT: usize = 8;
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The width of a chart if the layout has none.
const DEFAULT_WIDTH: usize = 80;

/// A value with its label on the x-axis.
#[derive(Debug, Clone)]
pub struct Point {
    /// The label; only those of the first and the last point are printed.
    pub label: String,
    /// The value. Zero and negative values draw no bar.
    pub value: i128,
}

/// A bar chart of values over time, oldest first.
///
/// ```
/// use zae_limiter_report::{Chart, Layout, Point};
///
/// let point = |label: &str, value| Point { label: label.to_owned(), value };
/// let chart = Chart::new("requests", [point("Monday", 120), point("Tuesday", 80)]);
/// assert!(chart.render(Layout::default().width(40)).ends_with("└ Monday … Tuesday"));
/// ```
#[derive(Debug, Clone)]
pub struct Chart {
    title: String,
    points: Vec<Point>,
    number: fn(i128) -> String,
}

impl Chart {
    /// A chart with this title.
    pub fn new(title: impl Into<String>, points: impl IntoIterator<Item = Point>) -> Self {
        Self {
            title: title.into(),
            points: points.into_iter().collect(),
            number: grouped,
        }
    }

    /// Prints the number at the axis with this function instead of as a number with grouped digits.
    #[must_use]
    pub fn number(mut self, number: fn(i128) -> String) -> Self {
        self.number = number;
        self
    }

    /// The chart as text. If not all points fit, only the latest are drawn.
    pub fn render(&self, layout: impl Into<Layout>) -> String {
        let layout = layout.into();
        let highest = self
            .points
            .iter()
            .map(|point| point.value)
            .max()
            .unwrap_or(0)
            .max(0);
        let scale = (self.number)(highest);
        let margin = scale.chars().count() + 2;
        let room = layout
            .width
            .unwrap_or(DEFAULT_WIDTH)
            .saturating_sub(margin)
            .max(1);
        let points = &self.points[self.points.len().saturating_sub(room)..];
        // The fewer the points, the wider the columns.
        let column_width = (room / points.len().max(1)).clamp(1, 6);

        let mut lines = vec![layout.heading(&self.title)];
        for row in (0..HEIGHT).rev() {
            let axis_label = match row {
                _ if row == HEIGHT - 1 => scale.clone(),
                0 => "0".to_owned(),
                _ => String::new(),
            };
            // A gap separates neighboring columns if there is room.
            let filled = if column_width > 1 { column_width - 1 } else { 1 };
            let mut bars = String::new();
            for point in points {
                let column = column_at(point.value, highest, row);
                bars.extend(std::iter::repeat_n(column, filled));
                bars.extend(std::iter::repeat_n(' ', column_width - filled));
            }
            let line = format!("{axis_label:>width$} │{bars}", width = margin - 2);
            lines.push(line.trim_end().to_owned());
        }
        if let (Some(first), Some(last)) = (points.first(), points.last()) {
            let ends = if points.len() == 1 {
                first.label.clone()
            } else {
                format!("{} … {}", first.label, last.label)
            };
            lines.push(format!("{:>width$} └ {ends}", "", width = margin - 2));
        }
        lines.join("\n")
    }
}

fn column_at(value: i128, highest: i128, row: usize) -> char {
    if value <= 0 || highest <= 0 {
        return ' ';
    }
    // Leave headroom for the multiplication below.
    let divisor = if highest > i128::MAX / 128 { 128 } else { 1 };
    let (value, highest) = (value.max(divisor) / divisor, highest / divisor);
    // Rounded up, so that every positive value is visible.
    let eighths = (value * (HEIGHT * 8) as i128 + highest - 1) / highest;
    let in_row = eighths - (row * 8) as i128;
    EIGHTHS[usize::try_from(in_row.clamp(0, 8)).unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(values: &[i128]) -> Chart {
        let points = values.iter().enumerate().map(|(index, value)| Point {
            label: format!("t{index}"),
            value: *value,
        });
        Chart::new("rpm", points)
    }

    fn layout(width: usize) -> Layout {
        Layout::default().width(width)
    }

    #[test]
    fn the_largest_value_fills_its_column_and_the_smallest_is_visible() {
        let text = chart(&[8_000, 1, 4_000]).render(layout(20));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1].trim_end(), "8,000 │███");
        assert_eq!(lines[8], "    0 │███ ▁▁▁ ███");
        assert_eq!(lines[5].trim_end(), "      │███     ███");
        assert_eq!(lines[9], "      └ t0 … t2");
    }

    #[test]
    fn only_the_latest_points_that_fit_are_drawn() {
        let values: Vec<i128> = (1..=500).collect();
        let text = chart(&values).render(layout(40));
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
        assert!(text.contains("… t499"));
    }

    #[test]
    fn zero_and_negative_values_draw_no_bar() {
        assert!(!chart(&[0, -5]).render(layout(40)).contains('█'));
        assert!(chart(&[]).render(layout(40)).contains("rpm"));
    }

    #[test]
    fn the_largest_numbers_can_be_drawn() {
        let text = chart(&[i128::MAX, i128::MAX / 2, 1]).render(layout(80));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].ends_with("│█████"), "{text}");
        assert!(lines[8].ends_with("│█████ █████ ▁▁▁▁▁"), "{text}");
    }

    #[test]
    fn headings_are_bold_if_the_layout_says_so() {
        let text = chart(&[1]).render(layout(40).bold_headings(true));
        assert!(text.starts_with("\u{1b}[1mrpm\u{1b}[0m\n"), "{text:?}");
    }
}
