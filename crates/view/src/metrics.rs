//! `openmetrics`: metrics over the events of a log, or of all answers of a service, in the text
//! format that Prometheus reads.
//!
//! A single type has two uses. For a log, times have exact quantiles ([`Metrics::exact`]). A
//! service has histograms instead ([`Metrics::histograms`]), because quantiles of two services
//! cannot be added up.
//!
//! The text is [Prometheus' exposition format
//! 0.0.4](https://prometheus.io/docs/instrumenting/exposition_formats/) with the end mark of
//! OpenMetrics, which is a comment in that format. A counter is declared under its full name,
//! including `_total`: Prometheus, `promtool` and the textfile collector of node_exporter require
//! that, and so does OpenMetrics from version 2.0.
//!
//! Labels contain only words of the tables in [`words`] and names of tools that have run, never
//! ids, keys or text.

mod exposition;
mod families;
mod streams;
mod times;
mod tools;
mod words;

pub use streams::OpenStreams;

use crate::surface::FormRow;
use event::payload::{
    Approval, CallErrorCode, Error, FinishReason, RepairKind, Retract, RetractReason, SessionStats,
    Status, StreamEnd, ToolCall, ToolResult, ToolUse, Verdict, Warning,
};
use event::{Event, Kind, Raw, View};
use exposition::Exposition;
use times::{TimeForm, Times};
use tools::ToolTimes;
use words::Counts;

/// Returns the time of an event since its stream started, in microseconds. Returns `None` if the
/// event has no time, or an invalid one.
pub fn micros_of(event: &Event<'_>) -> Option<u64> {
    event.t().and_then(times::micros_of_json)
}

pub(crate) const ROW: FormRow = FormRow {
    name: "openmetrics",
    help: "Counts and exact quantiles of times, as metrics for Prometheus",
    view: |surface| {
        Box::new(MetricsView {
            metrics: Metrics::exact(!surface.no_time),
            open: OpenStreams::default(),
        })
    },
};

/// The counts and times of events.
#[derive(Debug)]
pub struct Metrics {
    has_times: bool,
    calls: Counts,
    call_errors: Counts,
    retracts: Counts,
    repairs: Counts,
    streams: Counts,
    errors: Counts,
    warnings: Counts,
    approvals: Counts,
    results: Counts,
    retries: u64,
    input_tokens: u64,
    output_tokens: u64,
    cached_tokens: u64,
    reasoning_tokens: u64,
    form: TimeForm,
    detection: Times,
    first_event: Times,
    gap: Times,
    turn: Times,
    tools: ToolTimes,
}

/// The state of a service that no event shows; the service supplies it when it writes its metrics.
#[derive(Debug, Default)]
pub struct ServiceState {
    /// The number of open answers of each front.
    pub streams: Vec<(&'static str, u64)>,
    /// The number of clients that follow sessions.
    pub followers: u64,
    /// The number of bytes appended to sessions since the service started.
    pub log_bytes: u64,
    /// The number of calls of open answers that need approval.
    pub waiting: u64,
    /// Whether the service accepts requests.
    pub is_ready: bool,
}

impl Metrics {
    /// Creates the metrics of a log, with exact quantiles of times; without times unless
    /// `has_times`.
    pub fn exact(has_times: bool) -> Metrics {
        Metrics::new(TimeForm::exact(), has_times)
    }

    /// Creates the metrics of a service, with histograms that can be added up across services.
    pub fn histograms() -> Metrics {
        Metrics::new(TimeForm::Buckets, true)
    }

    fn new(form: TimeForm, has_times: bool) -> Metrics {
        let times = || Times::new(&form);
        Metrics {
            has_times,
            calls: Counts::of(words::OUTCOMES),
            call_errors: Counts::of(CallErrorCode::WORDS),
            retracts: Counts::of(RetractReason::WORDS),
            repairs: Counts::of(RepairKind::WORDS),
            streams: Counts::of(FinishReason::WORDS),
            errors: Counts::of(words::ERRORS),
            warnings: Counts::of(words::WARNINGS),
            approvals: Counts::of(Verdict::WORDS),
            results: Counts::of(Status::WORDS),
            retries: 0,
            input_tokens: 0,
            output_tokens: 0,
            cached_tokens: 0,
            reasoning_tokens: 0,
            detection: times(),
            first_event: times(),
            gap: times(),
            turn: times(),
            tools: ToolTimes::default(),
            form,
        }
    }

    /// Adds the name of a tool from the tools file, so that the label `tool` may have it before any
    /// event names the tool.
    pub fn know_tool(&mut self, name: &str) {
        self.tools.know(name);
    }

    /// Handles the next event of a log, or of an answer whose streams are `open`. `at` is the time
    /// of the event since its stream started, in microseconds (for a line, [`micros_of`] it);
    /// `None` if unknown.
    #[inline]
    pub fn push(&mut self, open: &mut OpenStreams, event: &Event<'_>, at: Option<u64>) {
        let at = at.filter(|at| self.has_times && *at <= times::LONGEST);
        let news = open.push(event, at);
        for (times, time) in [
            (&mut self.gap, news.gap),
            (&mut self.detection, news.detection),
        ] {
            if let Some(time) = time {
                times.add(time, &mut self.form);
            }
        }
        if !news.is_repetition {
            self.count(event);
        }
        while let Some(outcome) = open.next_settled() {
            self.calls.add(outcome);
        }
        if self.form.is_full() {
            self.coarsen();
        }
    }

    /// Handles the end of the streams that are still open.
    pub fn finish(&mut self, open: &mut OpenStreams) {
        open.finish();
        while let Some(outcome) = open.next_settled() {
            self.calls.add(outcome);
        }
    }

    fn count(&mut self, event: &Event<'_>) {
        match event.kind() {
            Kind::ToolCall => self.call(&ToolCall::read(event)),
            Kind::Retract => self.retracts.add(&Retract::read(event).reason.str()),
            Kind::StreamEnd => {
                let reason = StreamEnd::read(event).finish_reason;
                self.streams.add(reason.name());
            }
            Kind::Error => {
                let code = Error::read(event).code.str();
                self.errors.add(words::code(&code));
            }
            Kind::Warning => self.warnings.add(&Warning::read(event).code.str()),
            Kind::Approval => self.approvals.add(&Approval::read(event).decision.str()),
            Kind::ToolResult => self.result(&ToolResult::read(event)),
            Kind::ToolUse => self.tools.know(&ToolUse::read(event).tool_name.str()),
            Kind::SessionStats => self.stats(&SessionStats::read(event)),
            _ => {}
        }
    }

    fn call(&mut self, call: &ToolCall<'_>) {
        if let Some(error) = call.error {
            self.call_errors.add(&error.code.str());
        }
        if let Some(repairs) = call.repairs {
            let kinds = &mut self.repairs;
            repairs.with(|list| {
                let edits = list.items().filter_map(|edit| edit.get("kind"));
                edits.filter_map(Raw::str).for_each(|kind| kinds.add(&kind));
            });
        }
    }

    fn result(&mut self, result: &ToolResult<'_>) {
        let status = result.status.str();
        self.results.add(&status);
        // A result taken from the cache or the log has the duration of another run.
        let has_run = self.has_times && !result.cached && !result.resumed;
        if let Some(time) = result.duration_ms.filter(|_| has_run)
            && time.micros <= times::LONGEST
        {
            let name = result.tool_name.str();
            self.tools.add(&name, &status, time.micros, &mut self.form);
        }
    }

    fn stats(&mut self, stats: &SessionStats) {
        for (sum, count) in [
            (&mut self.input_tokens, stats.prompt_tokens),
            (&mut self.output_tokens, stats.completion_tokens),
            (&mut self.cached_tokens, stats.cached_tokens),
            (&mut self.reasoning_tokens, stats.reasoning_tokens),
            (&mut self.retries, stats.retries),
        ] {
            *sum = sum.saturating_add(count.unwrap_or_default());
        }
        // `tool-exec` counts calls, and its time is that of the tools.
        if !self.has_times || stats.calls.is_some() {
            return;
        }
        for (times, time) in [
            (&mut self.first_event, stats.first_event_ms),
            (&mut self.turn, stats.duration_ms),
        ] {
            if let Some(time) = time.filter(|time| time.micros <= times::LONGEST) {
                times.add(time.micros, &mut self.form);
            }
        }
    }

    /// Rounds all times, because there are too many different ones.
    #[cold]
    fn coarsen(&mut self) {
        let all = [
            &mut self.detection,
            &mut self.first_event,
            &mut self.gap,
            &mut self.turn,
        ];
        self.form.coarsen(all.into_iter().chain(self.tools.all()));
    }

    /// Appends the metrics to `out`. `waiting` is the number of calls of a log that need approval;
    /// a service passes its `state` instead.
    pub fn render(&self, waiting: u64, state: Option<&ServiceState>, out: &mut Vec<u8>) {
        use families::*;
        let mut page = Exposition::new(out);
        page.counts(&CALLS, "outcome", &self.calls);
        page.counts(&CALL_ERRORS, "code", &self.call_errors);
        page.counts(&RETRACTS, "reason", &self.retracts);
        page.counts(&REPAIRS, "kind", &self.repairs);
        page.counts(&STREAMS, "reason", &self.streams);
        page.counts(&ERRORS, "code", &self.errors);
        page.counts(&WARNINGS, "code", &self.warnings);
        page.counts(&APPROVALS, "decision", &self.approvals);
        page.counts(&RESULTS, "status", &self.results);
        page.number(&RETRIES, self.retries);
        page.number(&INPUT_TOKENS, self.input_tokens);
        page.number(&OUTPUT_TOKENS, self.output_tokens);
        page.number(&CACHED_TOKENS, self.cached_tokens);
        page.number(&REASONING_TOKENS, self.reasoning_tokens);
        if self.has_times {
            let form = &self.form;
            for (family, times) in [
                (&DETECTION, &self.detection),
                (&FIRST_EVENT, &self.first_event),
                (&EVENT_GAP, &self.gap),
                (&TURN, &self.turn),
            ] {
                page.times(family, form, [(String::new(), times)]);
            }
            page.times(&TOOL_DURATION, form, self.tools.series());
            if let Some(is_rounded) = form.is_rounded() {
                page.number(&TIMES_ROUNDED, is_rounded.into());
            }
        }
        page.number(&WAITING, state.map_or(waiting, |state| state.waiting));
        if let Some(state) = state {
            page.labelled(&STREAMS_OPEN, "front", state.streams.iter().copied());
            page.number(&FOLLOWERS, state.followers);
            page.number(&LOG_BYTES, state.log_bytes);
            page.number(&READY, state.is_ready.into());
        }
        page.end();
    }
}

/// The view that writes the metrics of a log at its end.
#[derive(Debug)]
struct MetricsView {
    metrics: Metrics,
    open: OpenStreams,
}

impl View for MetricsView {
    fn push(&mut self, event: &Event<'_>, _: &mut Vec<u8>) {
        self.metrics.push(&mut self.open, event, micros_of(event));
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        self.metrics.finish(&mut self.open);
        self.metrics.render(self.open.waiting(), None, out);
    }
}
