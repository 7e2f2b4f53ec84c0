//! Events for people: text as it streams, a card for each call, reports, or the final answer as JSON.
//!
//! What it is: one file for each [`event::View`], and their one table ([`FORMS`]). [`Term`],
//! [`text()`], [`html()`] and [`markdown()`] show the same things on four kinds of page.
//! What it is not: it opens no terminal and
//! reads no clock; a [`Surface`] describes where the view is shown, and times are those of the
//! events.
//!
//! No control character of a model or a tool leaves raw (see [`safe`]); the only escape sequences
//! are our own.

mod card;
mod escape;
mod json;
mod markdown;
mod metrics;
mod otlp;
mod report;
mod semconv;
mod story;
mod surface;
mod terminal;
mod text;

pub use escape::{columns, one_line, safe};
pub use event::is_hidden;
pub use json::JsonView;
pub use metrics::{Metrics, OpenStreams, ServiceState, micros_of};
pub use otlp::{TraceView, response_span};
pub use report::{date, html, html_policy, markdown};
pub use surface::{FormRow, Surface, Terminal};
pub use terminal::Term;
pub use text::text;

/// The style of texts, notes and cards of calls, which the report and the page of `tc-serve` share.
/// Its head lists the elements and classes.
pub const CARDS: &str = include_str!("cards.css");

/// The views; the first one is the default. To add one: a file with the view and its row, its `mod`
/// line and its line in this table.
pub const FORMS: &[FormRow] = &[
    terminal::ROW,
    text::ROW,
    json::ROW,
    report::HTML,
    report::GITHUB,
    metrics::ROW,
    otlp::ROW,
];
