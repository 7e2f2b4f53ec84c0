//! Handles the JSON of tool arguments: detects whether it is complete, parses it, repairs it, and
//! checks it against a schema.
//!
//! Arguments stay text. This crate never converts a number, chooses between two values, or
//! completes a text that was cut off, and a repair lists every edit. The crate performs no I/O.

mod check;
mod decimal;
mod difference;
mod lex;
mod literal;
mod names;
mod partial;
mod recent;
mod repair;
mod scanner;
mod schema;
mod tools;
mod typed;

pub use check::{JsonError, Shape, ValidJson, check, check_scanned, equal, is_name};
pub use difference::difference;
pub use literal::{Literal, LiteralProgress, Notation};
pub use names::{NAMESPACES, without_namespace, without_token};
pub use partial::{LiveArguments, best_reading};
pub use recent::RecentTools;
pub use repair::{Repair, Repaired, apply, repair};
pub use scanner::{Balance, JsonScanner};
pub use schema::{Misfit, Schema, SchemaError, Violation};
pub use tools::{
    NO_PARAMETERS, ProviderTool, ToolEntry, ToolFault, ToolList, ToolPlace, ToolsError, Unfit,
};
pub use typed::{Conversion, JsonType, ValueType};
