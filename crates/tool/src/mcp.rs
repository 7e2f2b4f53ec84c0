//! Servers of tools that speak the Model Context Protocol
//! (<https://modelcontextprotocol.io/specification>): which ones a tools file names, what their
//! tools are called here, and whether the tools are still those that a person has seen.
//!
//! Nothing here starts a server or asks one.

mod definition;
mod difference;
mod lock;
mod name;
mod server;
mod variable;

pub use definition::{Definition, hidden};
pub use difference::{Change, differences};
pub use lock::{LOCK_VERSION, Lock, LockError, LockedServer};
pub use name::offered_name;
pub use server::{ClassRule, Endpoint, Link, Program, Server, Servers};
pub use variable::{MissingVariable, fill};
