//! The means to end a running call.

use crate::command::supervisor::Control;
use std::cell::{Cell, RefCell};
use tokio::sync::Notify;

/// The means to end a running call.
#[derive(Debug, Default)]
pub struct Handle {
    /// Notified when the call is to end.
    pub stop: Notify,
    /// Whether it is to end without a grace.
    pub at_once: Cell<bool>,
    /// Ends its command, while that runs.
    pub control: RefCell<Option<Control>>,
}

impl Handle {
    /// Ends the call, at once or after a grace; [`super::Report::Done`] still comes. A second call
    /// may leave out the grace.
    pub fn stop(&self, at_once: bool) {
        self.at_once.set(at_once);
        self.stop.notify_one();
    }

    /// Asks the supervisor of the call to end it, at once or after a grace, and waits for nothing.
    pub fn abandon(&self, at_once: bool) {
        if let Some(control) = &*self.control.borrow() {
            control.end(at_once);
        }
    }
}
