//! The JSON of tool arguments: whether a text is complete, what it holds, what it was meant to be, and whether it fits a schema.
//!
//! Arguments stay text. Nothing here converts a number, picks one of two values, or finishes a text that was cut; a repair
//! lists every edit. Nothing opens a file or a connection.

mod check;
mod edits;
mod first;
mod lex;
mod repair;
mod scanner;

pub use check::{Checked, JsonError, Shape, check};
pub use edits::{Repair, apply};
pub use first::first_value;
pub use repair::{Repaired, repair};
pub use scanner::Scanner;
