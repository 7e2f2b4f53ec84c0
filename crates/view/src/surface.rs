//! What a view is shown on.

use event::View;

/// How a terminal is written to.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    /// Its width in columns.
    pub columns: usize,
    /// Its height in rows.
    pub rows: usize,
    /// Whether colours (and dim and bold) may be used.
    pub colour: bool,
}

/// Where the bytes of a view go.
#[derive(Clone, Copy, Debug)]
pub struct Surface {
    /// The columns and rows of the terminal as they are now; `None` without a terminal, and for one
    /// that cannot move its cursor.
    pub size: fn() -> Option<(usize, usize)>,
    /// Whether it is a terminal of any kind.
    pub is_terminal: bool,
    /// Whether colours are wanted; `None` leaves that to the view.
    pub colour: Option<bool>,
    /// Whether durations are left out.
    pub no_time: bool,
    /// Whether a trace has messages, arguments and results.
    pub contents: bool,
}

/// A row of the table of views.
#[derive(Clone, Copy, Debug)]
pub struct FormRow {
    /// The name that `--format` takes.
    pub name: &'static str,
    /// What it shows, for `--help`.
    pub help: &'static str,
    /// Makes the view.
    pub view: fn(&Surface) -> Box<dyn View>,
}
