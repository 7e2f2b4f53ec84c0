//! Dispatches a call to its runner: a command, an HTTP request, or an MCP server.

use super::command::Commands;
use super::http::{self, Sender};
use super::mcp::{self, Backend};
use super::progress::ProgressReporter;
use super::store::Outputs;
use super::task::{Handle, Task, Terms};
use std::time::{Duration, Instant};
use tool::{ReadyCall, RequestedCall, RunnerKind, Status, ToolAnswer, Work};
use trace::TraceContext;

/// The runners of all calls of one tools file.
#[derive(Debug)]
pub(crate) struct Runners {
    /// How long a call may take, unless its tool sets its own limit.
    pub timeout: Duration,
    /// How much a call may write to each of its outputs, in bytes, unless its tool sets its own
    /// limit.
    pub max_output: usize,
    /// Converts outputs to text and redacts the secrets of this process in every answer.
    pub outputs: Outputs,
    /// Runs commands.
    pub commands: Commands,
    /// Sends requests.
    pub sender: Sender,
    /// Where the MCP servers run.
    pub backend: Backend,
}

impl Runners {
    /// Runs a call to its end and returns its answer. `handle` ends the call early. If `progress`
    /// is given, output is reported as it arrives.
    pub(crate) async fn run(
        &self,
        call: &RequestedCall,
        ready: &ReadyCall,
        handle: &Handle,
        trace: Option<TraceContext>,
        progress: Option<ProgressReporter>,
    ) -> ToolAnswer {
        let (Some(exec), Ok(arguments)) = (&ready.tool.exec, &call.arguments) else {
            return ToolAnswer::new(Status::Error, "The call has nothing to run.");
        };
        let task = Task {
            call,
            arguments: arguments.text(),
            terms: Terms {
                timeout: exec.timeout.unwrap_or(self.timeout),
                max_output: exec.max_output.unwrap_or(self.max_output),
                max_result: exec.max_result,
                outputs: &self.outputs,
            },
            handle,
            trace,
            progress,
        };
        let start = Instant::now();
        let answer = match (&exec.run, &ready.work) {
            (RunnerKind::Command(command), Work::Command(argv)) => {
                self.commands.run(&task, command, argv).await
            }
            (RunnerKind::Http(http), Work::Http(request)) => {
                http::run(&task, &self.sender, http, request).await
            }
            (RunnerKind::Mcp(_), Work::Mcp(tool)) => mcp::run(&task, &self.backend, tool).await,
            _ => ToolAnswer::new(Status::Error, "The call is not of its tool."),
        };
        let output = self.outputs.redactor().text(&answer.output).into_owned();
        ToolAnswer {
            output,
            duration: Some(start.elapsed()),
            return_directly: exec.return_directly,
            ..answer
        }
    }
}
