//! A running call, regardless of its runner: its limits, and the handle that ends it.

use crate::command::supervisor::Control;
use crate::progress::{ProgressMark, ProgressReporter};
use crate::store::Outputs;
use std::cell::{Cell, RefCell};
use std::time::Duration;
use tokio::sync::Notify;
use tool::{RequestedCall, ToolAnswer};
use trace::TraceContext;

/// The limits of a call, and the converter for its output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    /// How long the call may take.
    pub timeout: Duration,
    /// How much the call may write to each of its outputs, in bytes.
    pub max_output: usize,
    /// How much of an output the model gets, in bytes. `None` means the default of `outputs`.
    pub max_result: Option<usize>,
    /// Converts outputs to text.
    pub outputs: &'a Outputs,
}

impl Terms<'_> {
    /// See [`Outputs::readable`].
    pub(crate) fn readable(&self, bytes: &[u8]) -> ToolAnswer {
        self.outputs.readable(bytes, self.max_result)
    }
}

/// A running call.
pub(crate) struct Task<'a> {
    /// The call.
    pub call: &'a RequestedCall,
    /// The arguments of the call, as JSON.
    pub arguments: &'a str,
    /// The limits of the call.
    pub terms: Terms<'a>,
    /// Ends the call early.
    pub handle: &'a Handle,
    /// The span of the call, or `None` if the call is not traced.
    pub trace: Option<TraceContext>,
    /// Reports output as it arrives. `None` without `--progress`.
    pub progress: Option<ProgressReporter>,
}

impl Task<'_> {
    /// Reports the new part of an output; see [`ProgressMark::more`].
    pub(crate) fn show(&self, shown: &mut ProgressMark, output: &[u8], is_open: bool) {
        if let Some(progress) = &self.progress
            && let Some(text) = shown.more(output, is_open, self.terms.outputs.redactor())
        {
            progress.text(&text);
        }
    }
}

/// Ends a running call.
#[derive(Debug, Default)]
pub(crate) struct Handle {
    /// Notified when the call must end.
    pub stop: Notify,
    /// Whether the call must end without a grace period.
    pub at_once: Cell<bool>,
    /// Ends the command of the call, while one is running.
    pub control: RefCell<Option<Control>>,
}

impl Handle {
    /// Ends the call, at once or after a grace period. [`CallReport::Done`] is still sent. A second
    /// call of `stop` may skip the grace period.
    pub(crate) fn stop(&self, at_once: bool) {
        self.at_once.set(at_once);
        self.stop.notify_one();
    }

    /// Asks the supervisor of the call to end it, at once or after a grace period, without waiting.
    pub(crate) fn abandon(&self, at_once: bool) {
        if let Some(control) = &*self.control.borrow() {
            control.end(at_once);
        }
    }
}
