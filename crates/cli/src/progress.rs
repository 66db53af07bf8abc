//! Progress on standard error: nothing where that is no terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar of `count` steps that says what is being done.
pub(crate) fn bar(what: &'static str, count: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(count as u64), ProgressDrawTarget::stderr_with_hz(5));
    let style = ProgressStyle::with_template("{msg} {wide_bar} {human_pos}/{human_len} {eta} left");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())).with_message(what)
}
