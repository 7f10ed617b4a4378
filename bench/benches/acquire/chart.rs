//! A bar chart as SVG, on a logarithmic scale: rates differ by orders of magnitude.

use std::fmt::Write as _;

const ROW: usize = 20;
const LABELS: usize = 330;
const WIDTH: f64 = 420.0;

/// One bar for each name.
pub(crate) fn bars(title: &str, bars: &[(String, f64)]) -> String {
    let height = ROW * (bars.len() + 2);
    let most = bars
        .iter()
        .map(|(_, value)| value.max(1.0).log10())
        .fold(1.0, f64::max);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 840 {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"840\" height=\"{height}\" fill=\"#fff\"/>\n\
         <text x=\"10\" y=\"18\" font-size=\"14\" font-weight=\"bold\">{title} (logarithmic)</text>\n"
    );
    for (index, (name, value)) in bars.iter().enumerate() {
        let y = ROW * (index + 1) + 10;
        let width = WIDTH * value.max(1.0).log10() / most;
        let color = if name.ends_with(crate::cases::OURS) {
            "#2563eb"
        } else {
            "#9ca3af"
        };
        let _ = writeln!(
            svg,
            "<text x=\"{x}\" y=\"{text}\" text-anchor=\"end\">{name}</text>\
             <rect x=\"{bar}\" y=\"{y}\" width=\"{width:.1}\" height=\"14\" fill=\"{color}\"/>\
             <text x=\"{end:.1}\" y=\"{text}\">{value:.0}</text>",
            x = LABELS - 8,
            bar = LABELS,
            text = y + 11,
            end = LABELS as f64 + width + 5.0,
        );
    }
    svg.push_str("</svg>\n");
    svg
}
