//! Modes in words.

use maud::{Markup, html};
use zae_limiter::{ConfigOrigin, Mode};

use super::level_name;

/// What a mode other than `enforce` does to calls; nothing for `enforce`.
pub(super) fn note(mode: Mode, from: ConfigOrigin) -> Markup {
    let effect = match mode {
        Mode::Enforce => return html! {},
        Mode::Observe => "Calls that the limits do not allow pass and take nothing.",
        Mode::Bypass => "Every call passes, and nothing is counted.",
        Mode::Disabled => "Every call is refused.",
    };
    html! {
        p.mode { strong { "Mode: " (mode) } " (from " (level_name::source(from)) "). " (effect) }
    }
}
