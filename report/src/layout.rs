//! How a report is laid out.

use zae_limiter_schema::Timestamp;

/// How tables and charts are laid out.
///
/// The default is plain text of unlimited width, with times in RFC 3339.
///
/// ```
/// use zae_limiter_report::Layout;
///
/// let layout = Layout::default().width(100).bold_headings(true);
/// ```
#[derive(Debug, Clone, Copy)]
#[must_use = "a layout does nothing until it is passed to a report"]
pub struct Layout {
    pub(crate) width: Option<usize>,
    bold_headings: bool,
    format_time: fn(Timestamp) -> String,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            width: None,
            bold_headings: false,
            format_time: |time| time.to_string(),
        }
    }
}

impl Layout {
    /// Fits the output to this many columns. Text in tables is truncated, numbers are not.
    pub fn width(mut self, columns: usize) -> Self {
        self.width = Some(columns);
        self
    }

    /// Prints headings in bold, with ANSI escape codes.
    pub fn bold_headings(mut self, bold: bool) -> Self {
        self.bold_headings = bold;
        self
    }

    /// Formats times with this function, for example in another time zone.
    ///
    /// ```
    /// use zae_limiter_report::Layout;
    ///
    /// let dates_only = Layout::default().format_time(|time| time.to_string()[..10].to_owned());
    /// ```
    pub fn format_time(mut self, format: fn(Timestamp) -> String) -> Self {
        self.format_time = format;
        self
    }

    pub(crate) fn heading(&self, text: &str) -> String {
        if self.bold_headings {
            format!("\u{1b}[1m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    pub(crate) fn time(&self, time: Timestamp) -> String {
        (self.format_time)(time)
    }
}
