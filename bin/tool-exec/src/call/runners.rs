//! Who runs a call: one runner for each way to run a tool.

use super::{Handle, Progress};
use crate::command::CommandRunner;
use crate::command::confine::Sandboxes;
use crate::http::HttpRunner;
use crate::mcp::{Backend, McpRunner};
use crate::store::Outputs;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tool::{Answer, ReadyCall, RequestedCall, Run, Status, Work};

/// The runners of one tools file.
#[derive(Debug)]
pub struct Runners {
    /// Runs commands.
    pub commands: CommandRunner,
    /// Sends requests.
    requests: HttpRunner,
    /// Makes outputs readable, and takes the secrets of this process out of every answer.
    pub outputs: Rc<Outputs>,
    /// Runs tools of servers.
    pub servers: McpRunner,
}

impl Runners {
    /// The runners of the tools file `tools`, whose servers are in `backend`. `timeout` is how long
    /// a call may take, and `max_output` how much it may write to each of its outputs in bytes,
    /// unless its tool has limits of its own; `outputs` makes them readable. `sandboxes` confine
    /// its commands.
    pub fn new(
        tools: &Path,
        backend: Backend,
        timeout: Duration,
        max_output: usize,
        outputs: Outputs,
        sandboxes: Sandboxes,
    ) -> Rc<Self> {
        let outputs = Rc::new(outputs);
        let commands =
            CommandRunner::new(tools, timeout, max_output, Rc::clone(&outputs), sandboxes);
        let requests = HttpRunner::new(timeout, max_output, Rc::clone(&outputs));
        let servers = McpRunner::new(backend, timeout, Rc::clone(&outputs));
        Rc::new(Runners {
            commands,
            requests,
            outputs,
            servers,
        })
    }

    /// Runs a call to its end and returns its answer; `handle` ends it early. With `progress` its
    /// output is reported as it appears.
    pub async fn run(
        &self,
        call: &RequestedCall,
        ready: &ReadyCall,
        handle: &Handle,
        progress: Option<Progress>,
    ) -> Answer {
        let (Some(exec), Ok(arguments)) = (&ready.tool.exec, &call.arguments) else {
            return Answer::new(Status::Error, "The call has nothing to run.");
        };
        let start = Instant::now();
        let answer = match (&exec.run, &ready.work) {
            (Run::Command(command), Work::Command(argv)) => {
                self.commands
                    .run(exec, command, argv, call, handle, progress)
                    .await
            }
            (Run::Http(http), Work::Http(request)) => {
                self.requests
                    .run(exec, http, request, call, handle, progress)
                    .await
            }
            (Run::Mcp(_), Work::Mcp(tool)) => {
                self.servers
                    .run(exec, tool, arguments.text(), handle, progress)
                    .await
            }
            _ => Answer::new(Status::Error, "The call is not of its tool."),
        };
        let output = self.outputs.redactor().text(&answer.output).into_owned();
        Answer {
            output,
            duration: Some(start.elapsed()),
            return_directly: exec.return_directly,
            ..answer
        }
    }
}
