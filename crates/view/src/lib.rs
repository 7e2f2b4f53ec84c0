//! Shows events to people: text as it streams, a card for each call, reports, or the final answer
//! as JSON.
//!
//! The crate has one file per [`event::View`], and the table of all views ([`FORMS`]). [`Term`],
//! [`text()`], [`html()`] and [`markdown()`] show the same content on four kinds of page. The crate
//! opens no terminal and reads no clock: a [`Surface`] describes where a view is shown, and times
//! come from the events.
//!
//! Control characters written by a model or a tool are always escaped (see [`safe`]), except in the
//! form `answer` outside of a terminal; the only raw escape sequences are those of the views.

mod answer;
mod card;
mod escape;
mod events;
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

/// The stylesheet for texts, notes and call cards, shared by the report and the page of `tc-serve`.
/// Its header lists the elements and classes.
pub const CARDS: &str = include_str!("cards.css");

/// The views: the values of `--format` of `tc-view` and of `react`. The first one is the default of
/// `tc-view`. To add a view, write a file with the view and its row, then add its `mod` line and its
/// entry in this table.
pub const FORMS: &[FormRow] = &[
    terminal::ROW,
    text::ROW,
    answer::ROW,
    json::ROW,
    events::ROW,
    report::HTML,
    report::GITHUB,
    metrics::ROW,
    otlp::ROW,
];
