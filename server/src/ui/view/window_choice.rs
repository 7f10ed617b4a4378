//! Links that choose the length of windows.

use maud::{Markup, html};
use zae_limiter::usage::WindowKind;

use crate::ui::url::Url;

/// One link per length; the current one is marked.
pub(super) fn window_choice(here: &Url, current: WindowKind) -> Markup {
    html! {
        div.choice role="group" aria-label="Length of windows" {
            @for kind in WindowKind::ALL {
                a href=(here.clone().with("window", kind)) aria-current=[(kind == current).then_some("true")] {
                    (title(kind))
                }
            }
        }
    }
}

const fn title(kind: WindowKind) -> &'static str {
    match kind {
        WindowKind::Hourly => "Hours",
        WindowKind::Daily => "Days",
        WindowKind::Monthly => "Months",
    }
}
