//! A tool of a server of tools.

use crate::canonical::Hash;

/// A tool of a server of tools. No tools file has this member of `exec`: the tools come from the
/// servers of `mcpServers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpRun {
    /// The server's name in the tools file.
    pub server: String,
    /// The tool's name at the server.
    pub tool: String,
    /// The digest of its definition as it was locked.
    pub definition: Hash,
    /// The working folder of the server's program, relative to the folder of the tools file;
    /// `None`: the caller's own.
    pub cwd: Option<String>,
}
