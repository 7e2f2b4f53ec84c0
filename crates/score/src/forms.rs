//! The forms of a report.

mod html;

pub use html::html;
