//! A session with one server: initialization, the list of tools, and calls.

mod http;
mod program;
mod stdio;

use super::answer::NO_RESULT;
use super::{CallOutcome, Confines, LONGEST_STEP};
use crate::command::scratch::unused_name;
use program::ServerProcess;
use redact::Redactor;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientCapabilities,
    ClientConfig, ClientRequest, Implementation, ListToolsRequest, PaginatedRequestParams,
    ProgressNotificationParam, ProgressToken, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, NotificationContext, PeerRequestOptions, RequestHandle, RunningService,
    ServiceError,
};
use rmcp::transport::Transport;
use rmcp::{ClientHandler, RoleClient, ServiceExt};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use stdio::ServerFaults;
use tokio::sync::mpsc;
use tool::mcp::{Definition, McpServer, ServerLink};
use tool::{CallFailure, CallStep, MayHaveRun};
use trace::TraceContext;

/// The maximum number of tools of one server.
const MOST_TOOLS: usize = 1024;
/// The longest part of a tool name that is shown, in characters.
const NAME: usize = 128;
/// The maximum number of pages in a list of tools.
const MOST_PAGES: usize = 256;
/// How many progress notifications of a call are queued for a slow reader.
const STEPS: usize = 64;
/// How long closing a session, or collecting the errors of a failed start, may take.
const CLOSE: Duration = Duration::from_secs(1);
/// How long a program may take to exit after its input has closed.
const MOMENT: Duration = Duration::from_millis(100);

/// Checks that this build supports MCP servers.
///
/// # Errors
/// Never fails here; see `session/absent.rs`.
pub(super) fn check() -> anyhow::Result<()> {
    Ok(())
}

/// A session with one server. It ends on drop.
#[derive(Debug)]
pub(crate) struct McpSession {
    service: RunningService<RoleClient, SessionListener>,
    listener: SessionListener,
    faults: ServerFaults,
    process: Option<RefCell<ServerProcess>>,
}

/// A call that was sent to a server.
pub(crate) struct SessionCall {
    steps: mpsc::Receiver<CallStep>,
    handle: RequestHandle<RoleClient>,
    listener: SessionListener,
}

impl Drop for SessionCall {
    fn drop(&mut self) {
        self.listener.forget(&self.handle.progress_token);
    }
}

impl McpSession {
    /// Starts a server of the tools file in `folder`, or connects to it, and initializes the
    /// session. `confines` applies to server programs; `redactor` redacts secrets in messages.
    ///
    /// # Errors
    /// The message to the user if the session cannot be opened.
    pub(crate) async fn start(
        server: &McpServer,
        folder: &Path,
        confines: &Confines,
        redactor: &Redactor,
    ) -> Result<McpSession, String> {
        let faults = ServerFaults::new(&server.name, redactor);
        match &server.link {
            ServerLink::Stdio(program) => {
                let home = unused_name();
                let (process, transport) =
                    ServerProcess::start(program, folder, &home, confines, faults.clone()).await?;
                McpSession::open(transport, faults, Some(process)).await
            }
            ServerLink::Http(endpoint) => {
                McpSession::open(http::connect(endpoint)?, faults, None).await
            }
        }
    }

    /// Initializes the session with a server.
    ///
    /// # Errors
    /// The message to the user if the session cannot be opened.
    async fn open<T>(
        transport: T,
        faults: ServerFaults,
        mut process: Option<ServerProcess>,
    ) -> Result<McpSession, String>
    where
        T: Transport<RoleClient> + Send + 'static,
    {
        let listener = SessionListener::default();
        match listener.clone().serve(transport).await {
            Ok(service) => Ok(McpSession {
                service,
                listener,
                faults,
                process: process.map(RefCell::new),
            }),
            Err(e) => {
                let what = match (faults.last(), &e) {
                    (Some(fault), _) => format!("it {fault}"),
                    (None, ClientInitializeError::ConnectionClosed(_)) => {
                        "it ended before it answered".to_owned()
                    }
                    (None, ClientInitializeError::TransportError { .. }) if process.is_some() => {
                        "it ended before it answered".to_owned()
                    }
                    (None, ClientInitializeError::TransportError { error, .. }) => error
                        .error
                        .to_string()
                        .trim_start_matches("Client error: ")
                        .to_owned(),
                    (None, e) => e.to_string(),
                };
                if let Some(process) = &mut process {
                    // Wait for the exit, so that all of its standard error has been read.
                    let _ = tokio::time::timeout(CLOSE, process.ended()).await;
                }
                let errors = process.and_then(|process| process.errors());
                Err(with_errors(what, errors))
            }
        }
    }

    /// Whether the connection is lost.
    pub(crate) fn is_lost(&self) -> bool {
        self.service.peer().is_transport_closed() || self.faults.last().is_some()
    }

    /// Returns how many times the server has reported that its tools changed.
    pub(crate) fn changes(&self) -> u64 {
        self.listener.changes()
    }

    /// Returns all tools of the server `name`, from all pages of the list. An unusable tool, such
    /// as one without `inputSchema`, is reported and omitted.
    ///
    /// # Errors
    /// What is wrong with the list, for the user.
    pub(crate) async fn tools(&self, name: &str) -> Result<Vec<Definition>, String> {
        let mut all: Vec<Definition> = Vec::new();
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let (tools, next) = self.page(cursor).await?;
            for tool in tools {
                let definition = match Definition::read(name, &tool) {
                    Ok(definition) => definition,
                    Err(why) => {
                        let why: String = why.chars().take(2 * NAME).collect();
                        self.faults
                            .report(&format!("lists a tool that is left out: {why}"));
                        continue;
                    }
                };
                if all.iter().any(|known| known.tool == definition.tool) {
                    let name: String = definition.tool.chars().take(NAME).collect();
                    return Err(format!(
                        "it lists two tools of the name {}",
                        event::quoted(&name)
                    ));
                }
                all.push(definition);
            }
            if all.len() > MOST_TOOLS {
                return Err(format!("it lists more than {MOST_TOOLS} tools"));
            }
            cursor = next;
            if cursor.is_none() {
                return Ok(all);
            }
        }
        Err(format!(
            "its list of tools has more than {MOST_PAGES} pages"
        ))
    }

    /// Returns a page of the list of tools, and the cursor of the next page, or `None` if it is the
    /// last.
    async fn page(&self, cursor: Option<String>) -> Result<(Vec<Value>, Option<String>), String> {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        let result = self.service.send_request(request).await;
        let page = match result.map_err(|e| self.why(&e))? {
            ServerResult::ListToolsResult(page) => {
                serde_json::to_value(page).map_err(|e| e.to_string())?
            }
            // rmcp cannot parse a page if one of its tools lacks a required member.
            ServerResult::CustomResult(page) => page.0,
            _ => Value::Null,
        };
        let Some(tools) = page.get("tools").and_then(Value::as_array) else {
            return Err("its answer is not a list of tools".to_owned());
        };
        let next = page.get("nextCursor").and_then(Value::as_str);
        Ok((tools.clone(), next.map(str::to_owned)))
    }

    /// Sends a call of a tool to the connection. `arguments` is a JSON object; `trace` is sent in
    /// `params._meta`.
    ///
    /// # Errors
    /// The reason why nothing was sent, for the model.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: &str,
        trace: Option<&TraceContext>,
    ) -> Result<SessionCall, String> {
        let arguments = serde_json::from_str(arguments).map_err(|e| e.to_string())?;
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let mut options = PeerRequestOptions::no_options();
        if let Some(trace) = trace {
            // MCP reserves these keys without a prefix: https://modelcontextprotocol.io/seps/414-request-meta
            let meta = options.meta.get_or_insert_default();
            for (name, value) in trace.headers() {
                meta.insert(name.to_owned(), value.into());
            }
        }
        let sent = self
            .service
            .send_request_with_option(request, options)
            .await;
        let handle = sent.map_err(|e| self.why(&e))?;
        let (send, steps) = mpsc::channel(STEPS);
        // No await since the request was queued, so no progress can have been missed.
        self.listener.watch(handle.progress_token.clone(), send);
        Ok(SessionCall {
            steps,
            handle,
            listener: self.listener.clone(),
        })
    }

    /// Waits for the next report of a call. Cancel-safe, and may be called again.
    pub(crate) async fn next(&self, call: &mut SessionCall) -> CallOutcome {
        let response = tokio::select! {
            biased;
            Some(step) = call.steps.recv() => return CallOutcome::Step(step),
            response = &mut call.handle.rx => response,
        };
        CallOutcome::Done(match response {
            Ok(Ok(result)) => match result {
                ServerResult::CallToolResult(result) => serde_json::to_value(result)
                    .map_err(|e| CallFailure::may_have_run(e.to_string())),
                // A result with a content type that rmcp does not know.
                ServerResult::CustomResult(result) => Ok(result.0),
                _ => Err(CallFailure::may_have_run(NO_RESULT)),
            },
            Ok(Err(e)) => Err(self.failure(&e)),
            Err(_) => Err(self.failure(&ServiceError::TransportClosed)),
        })
    }

    /// Tells the server that a call is cancelled.
    pub(crate) async fn cancel(&self, call: &SessionCall, reason: &str) {
        let told =
            CancelledNotificationParam::new(Some(call.handle.id.clone()), Some(reason.to_owned()));
        // A server that does not read its input must not delay the answer.
        let _ = tokio::time::timeout(
            Duration::from_millis(200),
            self.service.notify_cancelled(told),
        )
        .await;
    }

    /// Ends the session, giving the server a moment to exit by itself.
    pub(crate) async fn close(mut self) {
        let Some(process) = self.process else {
            // Ending the session sends a last request over the network.
            let _ = self.service.close_with_timeout(CLOSE).await;
            return;
        };
        let _ = self.service.close_with_timeout(MOMENT).await;
        let mut process = process.into_inner();
        // The server's input has closed. If it does not exit, it is ended.
        if tokio::time::timeout(MOMENT, process.ended()).await.is_err() {
            process.end().await;
        }
    }

    /// Converts an error into the failure of a call that was passed to the connection.
    fn failure(&self, error: &ServiceError) -> CallFailure {
        let why = self.why(error);
        match error {
            ServiceError::McpError(_) => CallFailure {
                why,
                ran: MayHaveRun::Answered,
            },
            ServiceError::TransportSend(e) if http::is_before_sending(&*e.error) => {
                CallFailure::not_run(why)
            }
            _ => CallFailure::may_have_run(why),
        }
    }

    /// Returns the text of an error, with the end of the server's standard error.
    fn why(&self, error: &ServiceError) -> String {
        match error {
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
                let what = match (self.faults.last(), error) {
                    (Some(fault), _) => format!("it {fault}"),
                    (None, ServiceError::TransportSend(e)) => {
                        let text = e.error.to_string();
                        let text = text.trim_start_matches("Client error: ");
                        if http::is_before_sending(&*e.error) {
                            format!("the call could not be sent: {text}")
                        } else {
                            format!("the call has no result: {text}")
                        }
                    }
                    _ => "it has ended".to_owned(),
                };
                with_errors(
                    what,
                    self.process
                        .as_ref()
                        .and_then(|process| process.borrow().errors()),
                )
            }
            ServiceError::McpError(e) => e.message.to_string(),
            other => other.to_string(),
        }
    }
}

fn with_errors(what: String, errors: Option<String>) -> String {
    match errors {
        Some(errors) => format!("{what}\nstderr:\n{errors}"),
        None => what,
    }
}

// Unsolicited server messages: progress of calls, and changes of the tools.

/// Handles unsolicited messages of a server. No client features are offered: no roots, no sampling,
/// no elicitation.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionListener {
    calls: Arc<Mutex<HashMap<ProgressToken, mpsc::Sender<CallStep>>>>,
    changes: Arc<AtomicU64>,
}

impl SessionListener {
    /// Sends the progress of the call with this token to `steps` from now on.
    pub(super) fn watch(&self, token: ProgressToken, steps: mpsc::Sender<CallStep>) {
        self.calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(token, steps);
    }

    /// Stops reporting progress of the call with this token.
    pub(super) fn forget(&self, token: &ProgressToken) {
        self.calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(token);
    }

    /// Returns how many times the server has reported that its tools changed.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }
}

impl ClientHandler for SessionListener {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new("toolpipe", env!("CARGO_PKG_VERSION")),
        )
    }

    async fn on_progress(
        &self,
        step: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(steps) = calls.get(&step.progress_token) {
            let part = step
                .total
                .filter(|total| *total > 0.0)
                .map(|total| (step.progress / total).clamp(0.0, 1.0));
            let step = CallStep {
                progress: part.filter(|part| part.is_finite()),
                message: event::cut(&step.message.unwrap_or_default(), LONGEST_STEP).to_owned(),
            };
            // Dropped if the queue is full: the next step supersedes it.
            let _ = steps.try_send(step);
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }
}
