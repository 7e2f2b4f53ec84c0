//! Servers of tools that speak the Model Context Protocol
//! (<https://modelcontextprotocol.io/specification>): which ones a tools file names, what their
//! tools are called here, and whether the tools are still those that a person has seen.
//!
//! Nothing here starts a server or asks one.

mod definition;
mod lock;
mod server;

pub use definition::{Definition, hidden, offered_name};
pub use lock::{Change, LOCK_VERSION, Lock, LockError, LockedServer, differences};
pub use server::{ClassRule, Endpoint, McpServer, Program, ServerLink, Servers};
