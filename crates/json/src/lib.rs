//! The JSON of tool arguments: whether a text is complete, what it holds, what it was meant to be, and whether it fits a schema.
//!
//! Arguments stay text. Nothing here converts a number, picks one of two values, or finishes a text that was cut; a repair
//! lists every edit. Nothing opens a file or a connection.

mod absent;
mod balance;
mod check;
mod cost;
mod edits;
mod first;
mod lex;
mod literal;
mod misfit;
mod partial;
mod python;
mod references;
mod repair;
mod scanner;
mod schema;
mod size;
mod tools;
mod typed;

pub use balance::Balance;
pub use check::{Checked, JsonError, Shape, check, check_balanced};
pub use edits::{Repair, apply};
pub use first::first_value;
pub use literal::{Literal, Notation, Progress};
pub use misfit::{Misfit, Violation};
pub use partial::best_reading;
pub use repair::{Repaired, repair};
pub use scanner::Scanner;
pub use schema::{Schema, SchemaError};
pub use tools::{Tools, ToolsError, Unfit};
pub use typed::{Converted, JsonType, Typed};
