//! Events for people: text as it streams, a card for each call, or the final answer as JSON.
//!
//! What it is: one file for each [`event::View`], and their one table ([`FORMS`]). [`Term`] and
//! [`text()`] show the same things on two kinds of page. What it is not: it opens no terminal and
//! reads no clock; a [`Surface`] describes where the view is shown, and times are those of the
//! events.
//!
//! No control character of a model or a tool leaves raw (see [`safe`]); the only escape sequences
//! are our own.

mod escape;
mod forms;
mod story;
mod surface;
mod terminal;
mod value;

pub use escape::{columns, safe};
pub use event::is_hidden;
pub use forms::{FORMS, Json, Term, text};
pub use surface::{FormRow, Surface, Terminal};
