//! The forms of a report.

mod html;
mod json;
mod junit;
mod markdown;
mod number;
mod sheet;
mod table;
mod words;

pub use html::html;
pub use json::json;
pub use junit::junit;
pub use markdown::markdown;
pub use table::{Layout, table};
pub use words::regressions;
