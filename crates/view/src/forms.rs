//! The table of views. To add one: a file with the view and its row, its `mod` line and its line in
//! the table.

mod json;
mod term;
mod text;

use crate::surface::FormRow;
pub use json::Json;
pub use term::Term;
pub use text::text;

/// The views; the first one is the default.
pub const FORMS: &[FormRow] = &[term::ROW, text::ROW, json::ROW];
