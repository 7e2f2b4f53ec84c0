//! The names of all metrics, in one table. Dashboards, rules and `docs/metrics.md` use these names.

/// A metric family.
#[derive(Clone, Copy, Debug)]
pub(super) struct Family {
    /// The name, which ends in its unit, or in `_total` for a counter.
    pub name: &'static str,
    pub kind: FamilyKind,
    /// The description for the `HELP` line, without backslashes and line feeds.
    pub help: &'static str,
}

/// How the numbers of a family are interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FamilyKind {
    /// A number that only grows.
    Counter,
    /// A number that grows and shrinks.
    Gauge,
    /// Times in seconds: a summary for a log, a histogram in a service.
    Times,
}

macro_rules! families {
    ($($const:ident = $kind:ident $name:literal, $help:literal;)+) => {
        $(pub(super) const $const: Family = Family {
            name: $name,
            kind: FamilyKind::$kind,
            help: $help,
        };)+
    };
}

families! {
    CALLS = Counter "toolpipe_calls_total", "Calls of models, by outcome; each is counted when its stream ends.";
    CALL_ERRORS = Counter "toolpipe_call_errors_total", "Calls that must not run, by the code of their error.";
    RETRACTS = Counter "toolpipe_retracts_total", "Retracted calls, by reason.";
    REPAIRS = Counter "toolpipe_repairs_total", "Edits that made the arguments of calls valid JSON, by kind.";
    STREAMS = Counter "toolpipe_streams_total", "Streams of models that have ended, by finish reason.";
    ERRORS = Counter "toolpipe_errors_total", "Error events, by code.";
    WARNINGS = Counter "toolpipe_warnings_total", "Warning events, by code.";
    APPROVALS = Counter "toolpipe_approvals_total", "Approvals and refusals of calls, by people and by rules.";
    RESULTS = Counter "toolpipe_tool_results_total", "Results of calls, by status.";
    RETRIES = Counter "toolpipe_retries_total", "Requests to models that were sent again.";
    INPUT_TOKENS = Counter "toolpipe_input_tokens_total", "Tokens of requests, as the provider counts them.";
    OUTPUT_TOKENS = Counter "toolpipe_output_tokens_total", "Tokens of answers.";
    CACHED_TOKENS = Counter "toolpipe_cached_input_tokens_total", "Tokens of requests that the \
        provider had in its cache.";
    REASONING_TOKENS = Counter "toolpipe_reasoning_output_tokens_total", "Tokens of reasoning.";
    DETECTION = Times "toolpipe_detection_seconds", "Time from the start of a stream to the \
        first event that names a call, once a stream.";
    FIRST_EVENT = Times "toolpipe_first_event_seconds", "Time from a request to the first event of its answer.";
    EVENT_GAP = Times "toolpipe_event_gap_seconds", "Time between events of a stream.";
    TURN = Times "toolpipe_turn_duration_seconds", "Time from a request to the end of its answer.";
    TOOL_DURATION = Times "toolpipe_tool_duration_seconds", "Time that calls ran.";
    TIMES_ROUNDED = Gauge "toolpipe_times_rounded", "Whether times were rounded to two digits, \
        since too many were different.";
    WAITING = Gauge "toolpipe_approvals_waiting", "Calls that need approval.";
    STREAMS_OPEN = Gauge "toolpipe_streams_open", "Answers that are open, by the API of the client.";
    FOLLOWERS = Gauge "toolpipe_followers", "Clients that follow sessions.";
    LOG_BYTES = Counter "toolpipe_log_bytes_total", "Bytes appended to sessions.";
    READY = Gauge "toolpipe_ready", "Whether the service takes requests.";
}
