//! Replaces `session.rs` in a build without the feature `mcp`. Such a build starts no servers, but
//! it can use the servers of a hub started by another build.

use super::{CallOutcome, Confines};
use redact::Redactor;
use std::convert::Infallible;
use std::path::Path;
use tool::mcp::{Definition, McpServer};
use trace::TraceContext;

/// The message to the user if a server would have to be started.
const ABSENT: &str = "this build has no MCP; build it with the feature \"mcp\" (on by default)";

/// A session with one server. Cannot exist in this build.
#[derive(Debug)]
pub(crate) struct McpSession(Infallible);

/// A call that was sent to a server. Cannot exist in this build.
pub(crate) enum SessionCall {}

/// Reports that this build does not support MCP servers.
///
/// # Errors
/// Always.
pub(super) fn check() -> anyhow::Result<()> {
    anyhow::bail!("the servers of mcpServers cannot be used: {ABSENT}")
}

impl McpSession {
    /// Reports that this build does not support MCP servers.
    ///
    /// # Errors
    /// Always.
    pub(crate) async fn start(
        _: &McpServer,
        _: &Path,
        _: &Confines,
        _: &Redactor,
    ) -> Result<McpSession, String> {
        Err(ABSENT.to_owned())
    }

    pub(crate) fn is_lost(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn changes(&self) -> u64 {
        match self.0 {}
    }

    pub(crate) async fn tools(&self, _: &str) -> Result<Vec<Definition>, String> {
        match self.0 {}
    }

    pub(crate) async fn call(
        &self,
        _: &str,
        _: &str,
        _: Option<&TraceContext>,
    ) -> Result<SessionCall, String> {
        match self.0 {}
    }

    pub(crate) async fn next(&self, _: &mut SessionCall) -> CallOutcome {
        match self.0 {}
    }

    pub(crate) async fn cancel(&self, _: &SessionCall, _: &str) {
        match self.0 {}
    }

    pub(crate) async fn close(self) {
        match self.0 {}
    }
}
