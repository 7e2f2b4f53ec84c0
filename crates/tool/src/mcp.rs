//! Tool servers that speak the Model Context Protocol
//! (<https://modelcontextprotocol.io/specification>): the servers named in a tools file, the names
//! under which their tools are offered, and checks that the tools are still the ones that a person
//! accepted.
//!
//! This module never starts or contacts a server.

mod definition;
mod lock;
mod server;

pub use definition::{Definition, hidden, offered_name};
pub use lock::{Change, LOCK_VERSION, Lock, LockError, LockedServer, differences};
pub use server::{ClassRule, Endpoint, McpServer, Program, ServerLink, Servers};
