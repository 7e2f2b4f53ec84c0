//! The JSON of tool arguments: whether a text is complete, which value it holds, how it can be
//! repaired, and whether it fits a schema.
//!
//! Arguments stay text. Nothing here converts a number, picks one of two values, or finishes a text
//! that was cut; a repair lists every edit. Nothing opens a file or a connection.

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

pub use check::{JsonError, Shape, ValidJson, check, equal, is_name};
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
