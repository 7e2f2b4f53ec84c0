//! The metrics of the service: counts and times of the events of all responses (`view::Metrics`),
//! and the state of the service itself.
//!
//! Each event of a response is counted once: when it leaves the pipe that produces it (`pipe.rs`),
//! or, for events that `tool-exec` appends to a session, when the service takes back the session's
//! lease (`sessions/producer.rs`).

use event::payload::{Error, Warning};
use event::{Event, Kind};
use std::cell::{Cell, RefCell};
use std::fmt::{Debug, Formatter};
use std::rc::Rc;
use view::{Metrics, OpenStreams, ServiceState};

/// The metrics of the service. All clones share one state.
#[derive(Clone)]
pub struct ServiceMetrics(Rc<MetricsState>);

struct MetricsState {
    events: RefCell<Metrics>,
    /// The number of open responses for each protocol.
    streams: RefCell<Vec<(&'static str, u64)>>,
    log_bytes: Cell<u64>,
    waiting: Cell<u64>,
}

impl Default for ServiceMetrics {
    fn default() -> Self {
        ServiceMetrics(Rc::new(MetricsState {
            events: RefCell::new(Metrics::histograms()),
            streams: RefCell::default(),
            log_bytes: Cell::new(0),
            waiting: Cell::new(0),
        }))
    }
}

impl Debug for ServiceMetrics {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServiceMetrics").finish_non_exhaustive()
    }
}

impl ServiceMetrics {
    /// Creates the metrics of a service that speaks the protocols `fronts` and runs these tools
    /// itself.
    pub(crate) fn new<'t>(
        fronts: impl IntoIterator<Item = &'static str>,
        tools: impl IntoIterator<Item = &'t str>,
    ) -> ServiceMetrics {
        let metrics = ServiceMetrics::default();
        let streams = fronts.into_iter().map(|front| (front, 0));
        metrics.0.streams.borrow_mut().extend(streams);
        let mut events = metrics.0.events.borrow_mut();
        tools.into_iter().for_each(|name| events.know_tool(name));
        drop(events);
        metrics
    }

    /// Returns a meter for the events of one response.
    pub(crate) fn meter(&self) -> AnswerMeter {
        AnswerMeter {
            metrics: self.clone(),
            open: OpenStreams::default(),
        }
    }

    /// Counts one more open response in this protocol until the returned value is dropped.
    pub(crate) fn open(&self, front: &'static str) -> OpenAnswer {
        let mut streams = self.0.streams.borrow_mut();
        match streams.iter_mut().find(|(known, _)| *known == front) {
            Some((_, count)) => *count += 1,
            None => streams.push((front, 1)),
        }
        OpenAnswer {
            metrics: self.clone(),
            front,
        }
    }

    /// Counts calls that wait for approval until the returned value is dropped.
    pub(crate) fn waiting(&self) -> WaitingCalls {
        WaitingCalls {
            metrics: self.clone(),
            count: Cell::new(0),
        }
    }

    /// Counts bytes appended to a session.
    pub(crate) fn appended(&self, bytes: u64) {
        let sum = self.0.log_bytes.get().saturating_add(bytes);
        self.0.log_bytes.set(sum);
    }

    /// Returns all metrics in the text format of Prometheus.
    pub(crate) fn page(&self, followers: u64, is_ready: bool) -> Vec<u8> {
        let state = ServiceState {
            streams: self.0.streams.borrow().clone(),
            followers,
            log_bytes: self.0.log_bytes.get(),
            waiting: self.0.waiting.get(),
            is_ready,
        };
        let mut page = Vec::new();
        self.0
            .events
            .borrow()
            .render(state.waiting, Some(&state), &mut page);
        page
    }
}

/// Counts the events of one response.
pub(crate) struct AnswerMeter {
    metrics: ServiceMetrics,
    open: OpenStreams,
}

impl AnswerMeter {
    /// Counts the next event. `at` is the time since the first event of its stream, in
    /// microseconds.
    #[inline]
    pub(crate) fn push(&mut self, event: &Event<'_>, at: Option<u64>) {
        let events = &mut self.metrics.0.events.borrow_mut();
        events.push(&mut self.open, event, at);
    }

    /// Counts the next event that another process appended to a session. The model's events are
    /// skipped, because a pipe of this process has already counted them.
    pub(crate) fn push_appended(&mut self, event: &Event<'_>) {
        let is_of_tools = match event.kind() {
            Kind::ToolUse | Kind::ToolResult | Kind::Approval => true,
            Kind::Warning => Warning::read(event).source == TOOL_EXEC,
            Kind::Error => Error::read(event).source == TOOL_EXEC,
            _ => false,
        };
        if is_of_tools {
            self.push(event, None);
        }
    }
}

/// The `source` of the warnings and errors of `tool-exec`.
const TOOL_EXEC: &str = "tool-exec";

impl Drop for AnswerMeter {
    fn drop(&mut self) {
        self.metrics.0.events.borrow_mut().finish(&mut self.open);
    }
}

/// Counts an open response until it is dropped.
pub(crate) struct OpenAnswer {
    metrics: ServiceMetrics,
    front: &'static str,
}

impl Drop for OpenAnswer {
    fn drop(&mut self) {
        let mut streams = self.metrics.0.streams.borrow_mut();
        let count = streams.iter_mut().find(|(known, _)| *known == self.front);
        if let Some((_, count)) = count {
            *count -= 1;
        }
    }
}

/// The number of calls of one response that wait for approval.
pub(crate) struct WaitingCalls {
    metrics: ServiceMetrics,
    count: Cell<u64>,
}

impl WaitingCalls {
    /// Sets how many calls of the response wait.
    pub(crate) fn set(&self, count: usize) {
        let all = &self.metrics.0.waiting;
        let count = count as u64;
        all.set(all.get() - self.count.replace(count) + count);
    }
}

impl Drop for WaitingCalls {
    fn drop(&mut self) {
        self.set(0);
    }
}
