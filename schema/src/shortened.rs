//! Text from outside, cut to a length that fits in a message.

/// How many characters of a text a message shows, as they are shown: an escape such as `\u{1f}` counts each of its own.
const KEPT: usize = 50;

pub(crate) fn shortened(text: &str) -> String {
    let mut shown = 0;
    let end = text.char_indices().find(|(_, character)| {
        shown += character.escape_debug().count();
        shown > KEPT
    });
    match end {
        Some((cut, _)) => format!("{}...", &text[..cut]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_counted_not_what_is_meant() {
        let fits = "x".repeat(KEPT);
        assert_eq!(shortened(&fits), fits);
        assert_eq!(shortened(&format!("{fits}x")), format!("{fits}..."));
        assert_eq!(
            shortened(&"\u{1}".repeat(50)),
            format!("{}...", "\u{1}".repeat(10))
        );
        assert_eq!(shortened("\u{e000}"), "\u{e000}");
    }
}
