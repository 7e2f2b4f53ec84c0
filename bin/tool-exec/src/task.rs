//! A call while it runs, however its tool is run: what it may use, and what ends it.

use crate::command::supervisor::Control;
use crate::progress::{ProgressMark, ProgressReporter};
use crate::store::Outputs;
use std::cell::{Cell, RefCell};
use std::time::Duration;
use tokio::sync::Notify;
use tool::{RequestedCall, ToolAnswer};
use trace::TraceContext;

/// What a call may use, and what makes its output readable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    /// How long it may take.
    pub timeout: Duration,
    /// How much it may write to each of its outputs, in bytes.
    pub max_output: usize,
    /// How much of an output the model reads, in bytes; `None`: the default of `outputs`.
    pub max_result: Option<usize>,
    /// Makes outputs readable.
    pub outputs: &'a Outputs,
}

impl Terms<'_> {
    /// See [`Outputs::readable`].
    pub(crate) fn readable(&self, bytes: &[u8]) -> ToolAnswer {
        self.outputs.readable(bytes, self.max_result)
    }
}

/// One call while it runs.
pub(crate) struct Task<'a> {
    /// The call.
    pub call: &'a RequestedCall,
    /// Its arguments, as JSON.
    pub arguments: &'a str,
    /// What it may use.
    pub terms: Terms<'a>,
    /// Ends it early.
    pub handle: &'a Handle,
    /// The span of the call, if it is traced.
    pub trace: Option<TraceContext>,
    /// Where its output is reported as it appears.
    pub progress: Option<ProgressReporter>,
}

impl Task<'_> {
    /// Reports what has come of an output; see [`ProgressMark::more`].
    pub(crate) fn show(&self, shown: &mut ProgressMark, output: &[u8], is_open: bool) {
        if let Some(progress) = &self.progress
            && let Some(text) = shown.more(output, is_open, self.terms.outputs.redactor())
        {
            progress.text(&text);
        }
    }
}

/// The means to end a running call.
#[derive(Debug, Default)]
pub(crate) struct Handle {
    /// Notified when the call is to end.
    pub stop: Notify,
    /// Whether it is to end without a grace.
    pub at_once: Cell<bool>,
    /// Ends its command, while that runs.
    pub control: RefCell<Option<Control>>,
}

impl Handle {
    /// Ends the call, at once or after a grace; [`CallReport::Done`] still comes. A second call
    /// may leave out the grace.
    pub(crate) fn stop(&self, at_once: bool) {
        self.at_once.set(at_once);
        self.stop.notify_one();
    }

    /// Asks the supervisor of the call to end it, at once or after a grace, and waits for nothing.
    pub(crate) fn abandon(&self, at_once: bool) {
        if let Some(control) = &*self.control.borrow() {
            control.end(at_once);
        }
    }
}
