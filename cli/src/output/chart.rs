//! Charts in the terminal: one column a point, in eighths of a line.

use super::{View, grouped};

const HEIGHT: usize = 8;
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Where nobody says how wide the terminal is.
const USUAL_WIDTH: usize = 80;

/// A value with the name of its place on the axis.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    pub(crate) label: String,
    pub(crate) value: i128,
}

/// Values in order of time.
#[derive(Debug, Clone)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) points: Vec<Point>,
}

impl Chart {
    /// The chart as text. Only as many of the latest points as fit are drawn.
    pub(crate) fn render(&self, view: &View) -> String {
        let most = self
            .points
            .iter()
            .map(|point| point.value)
            .max()
            .unwrap_or(0)
            .max(0);
        let scale = grouped(most);
        let margin = scale.chars().count() + 2;
        let room = view.width.unwrap_or(USUAL_WIDTH).saturating_sub(margin).max(1);
        let points = &self.points[self.points.len().saturating_sub(room)..];
        // Few points get wide columns.
        let each = (room / points.len().max(1)).clamp(1, 6);

        let mut lines = vec![view.paint.strong(&self.title)];
        for level in (0..HEIGHT).rev() {
            let side = match level {
                _ if level == HEIGHT - 1 => scale.clone(),
                0 => "0".to_owned(),
                _ => String::new(),
            };
            // A gap keeps neighbours apart where there is room.
            let filled = if each > 1 { each - 1 } else { 1 };
            let mut bars = String::new();
            for point in points {
                let column = column_at(point.value, most, level);
                bars.extend(std::iter::repeat_n(column, filled));
                bars.extend(std::iter::repeat_n(' ', each - filled));
            }
            let line = format!("{side:>width$} │{bars}", width = margin - 2);
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

fn column_at(value: i128, most: i128, level: usize) -> char {
    if value <= 0 || most <= 0 {
        return ' ';
    }
    // Rounded up, so that a little is not nothing.
    let eighths = (value * (HEIGHT * 8) as i128 + most - 1) / most;
    let here = eighths - (level * 8) as i128;
    EIGHTHS[usize::try_from(here.clamp(0, 8)).unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::super::{Color, Paint, Zone};
    use super::*;

    fn chart(values: &[i128]) -> Chart {
        Chart {
            title: "rpm".to_owned(),
            points: values
                .iter()
                .enumerate()
                .map(|(place, value)| Point {
                    label: format!("t{place}"),
                    value: *value,
                })
                .collect(),
        }
    }

    fn view(width: usize) -> View {
        View {
            width: Some(width),
            paint: Paint::new(Color::Never, false),
            zone: Zone::Utc,
        }
    }

    #[test]
    fn the_largest_fills_its_column_and_the_smallest_is_still_seen() {
        let text = chart(&[8_000, 1, 4_000]).render(&view(20));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1].trim_end(), "8,000 │███");
        assert_eq!(lines[8], "    0 │███ ▁▁▁ ███");
        assert_eq!(lines[5].trim_end(), "      │███     ███");
        assert_eq!(lines[9], "      └ t0 … t2");
    }

    #[test]
    fn many_points_are_cut_to_the_latest_that_fit() {
        let values: Vec<i128> = (1..=500).collect();
        let text = chart(&values).render(&view(40));
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
        assert!(text.contains("… t499"));
    }

    #[test]
    fn nothing_and_debts_are_drawn_as_nothing() {
        assert!(!chart(&[0, -5]).render(&view(40)).contains('█'));
        assert!(chart(&[]).render(&view(40)).contains("rpm"));
    }
}
