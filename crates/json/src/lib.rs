//! The JSON of tool arguments: whether a text is complete, which value it holds, how it can be
//! repaired, and whether it fits a schema.
//!
//! Arguments stay text. Nothing here converts a number, picks one of two values, or finishes a text
//! that was cut; a repair lists every edit. Nothing opens a file or a connection.

mod balance;
mod check;
mod edits;
mod equal;
mod lex;
mod literal;
mod name;
mod partial;
mod python;
mod repair;
mod scanner;
mod schema;
mod tools;
mod typed;

pub use balance::Balance;
pub use check::{JsonError, Shape, ValidJson, check, check_balanced};
pub use edits::{Repair, apply};
pub use equal::equal;
pub use literal::{Literal, Notation, Progress};
pub use name::is_name;
pub use partial::best_reading;
pub use repair::{Repaired, repair};
pub use scanner::Scanner;
pub use schema::{Misfit, Schema, SchemaError, Violation};
pub use tools::{
    NO_PARAMETERS, ProviderTool, ToolEntry, ToolFault, ToolList, ToolPlace, ToolsError, Unfit,
};
pub use typed::{Conversion, JsonType, ValueType};
