//! Colors.

use anstyle::{AnsiColor, Style};

use super::Color;

/// Applies colors, or leaves text unchanged if colors are off.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    pub(crate) fn new(color: Color, is_terminal: bool) -> Self {
        let wanted = || std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let on = match color {
            Color::Auto => is_terminal && wanted(),
            Color::Always => true,
            Color::Never => false,
        };
        Self { on }
    }

    pub(crate) fn is_on(self) -> bool {
        self.on
    }

    fn with(self, style: Style, text: &str) -> String {
        if self.on {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }

    pub(crate) fn faint(self, text: &str) -> String {
        self.with(Style::new().dimmed(), text)
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.with(AnsiColor::Green.on_default(), text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.with(AnsiColor::Red.on_default().bold(), text)
    }

    pub(crate) fn changed(self, text: &str) -> String {
        self.with(AnsiColor::Yellow.on_default(), text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_follow_the_option_and_the_terminal() {
        assert_eq!(Paint::new(Color::Never, true).bad("x"), "x");
        assert_eq!(Paint::new(Color::Auto, false).bad("x"), "x");
        assert!(Paint::new(Color::Always, false).bad("x").starts_with('\u{1b}'));
    }
}
