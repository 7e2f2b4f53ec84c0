//! What a server sends without being asked: progress of calls, and that its tools have changed.

use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, RoleClient};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;

/// How much of what a server says about a step is shown, in bytes.
const LONGEST: usize = 4096;

/// How far a call has come.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// From 0 to 1, where the server says of how much.
    pub progress: Option<f64>,
    /// What it does now.
    pub message: String,
}

impl Step {
    /// A step with the beginning of a message.
    fn new(progress: Option<f64>, mut message: String) -> Self {
        let mut end = message.len().min(LONGEST);
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        message.truncate(end);
        Step { progress, message }
    }

    /// Whether its message may be the beginning of a longer one. A character has at most four
    /// bytes.
    pub fn may_be_cut(&self) -> bool {
        self.message.len() + 4 > LONGEST
    }
}

/// What a server sends without being asked. It gets nothing in return: no roots, no samples of a
/// model, no answers of a person.
#[derive(Clone, Debug, Default)]
pub struct Listener {
    calls: Arc<Mutex<HashMap<ProgressToken, mpsc::Sender<Step>>>>,
    changes: Arc<AtomicU64>,
}

impl Listener {
    /// The progress of the call with this token goes to `steps` from now on.
    pub fn watch(&self, token: ProgressToken, steps: mpsc::Sender<Step>) {
        self.calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(token, steps);
    }

    /// The call with this token has ended.
    pub fn forget(&self, token: &ProgressToken) {
        self.calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(token);
    }

    /// How often the server has reported that its tools have changed.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }
}

impl ClientHandler for Listener {
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
            let step = Step::new(
                part.filter(|part| part.is_finite()),
                step.message.unwrap_or_default(),
            );
            // What a slow reader cannot take is left out: the next step says more.
            let _ = steps.try_send(step);
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }
}
