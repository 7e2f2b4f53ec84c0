//! The end of the service, as its connections and answers see it.

use std::cell::Cell;
use std::rc::Rc;
use tokio::sync::Notify;

/// The end of the service. All clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Ending(Rc<EndingState>);

#[derive(Debug, Default)]
struct EndingState {
    has_begun: Cell<bool>,
    is_cut: Cell<bool>,
    changed: Notify,
}

impl Ending {
    /// No request is accepted from now on.
    pub fn begin(&self) {
        self.0.has_begun.set(true);
        self.0.changed.notify_waiters();
    }

    /// Open answers end with an error.
    pub fn cut(&self) {
        self.0.is_cut.set(true);
        self.0.changed.notify_waiters();
    }

    /// Waits for [`Ending::begin`].
    pub async fn begun(&self) {
        self.until(|state| state.has_begun.get()).await;
    }

    /// Waits for [`Ending::cut`].
    pub async fn is_cut(&self) {
        self.until(|state| state.is_cut.get()).await;
    }

    async fn until(&self, is_so: impl Fn(&EndingState) -> bool) {
        loop {
            let changed = self.0.changed.notified();
            if is_so(&self.0) {
                return;
            }
            changed.await;
        }
    }
}
