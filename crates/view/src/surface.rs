//! The surface on which a view is shown.

use event::View;

/// The properties of a terminal.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    /// The width in columns.
    pub columns: usize,
    /// The height in rows.
    pub rows: usize,
    /// Whether colours (and dim and bold) may be used.
    pub colour: bool,
}

/// The destination of a view's output.
#[derive(Clone, Copy, Debug)]
pub struct Surface<'a> {
    /// Returns the current columns and rows of the terminal; `None` if there is no terminal, or if
    /// it cannot move its cursor.
    pub size: fn() -> Option<(usize, usize)>,
    /// Whether the output goes to a terminal of any kind.
    pub is_terminal: bool,
    /// Whether to use colours; `None` leaves the choice to the view.
    pub colour: Option<bool>,
    /// Whether to omit durations.
    pub no_time: bool,
    /// Whether a trace includes messages, arguments and results.
    pub contents: bool,
    /// The name under which the conversation is stored; `None` if it is not stored.
    pub conversation: Option<&'a str>,
}

/// A row of the table of views.
#[derive(Clone, Copy, Debug)]
pub struct FormRow {
    /// The name that `--format` takes.
    pub name: &'static str,
    /// The description of the view for `--help`.
    pub help: &'static str,
    /// Creates the view.
    pub view: fn(&Surface<'_>) -> Box<dyn View>,
}
