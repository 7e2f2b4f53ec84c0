//! The summary of a run for the head and the end of a report: its title, its totals, and its
//! questions, turns and calls with their times.
//!
//! Times come from the log: `t` within a stream, durations of waits and tools, and timestamps if a
//! duration is missing. Pauses between them (a person thinks, a service is idle) are left out, so
//! that the table of a run of two days stays readable. For a long run only the first and the last
//! rows are kept.

use super::ReportCard;
use super::excerpt::grouped;
use crate::card::{Badge, duration};
use crate::escape::one_line;
use crate::story::Tokens;
use conversation::{content, stream_of};
use event::payload::{Millis, Response, SessionStats, StreamStart, ToolResult, ToolUse};
use event::{Event, Kind, Payload, Raw, Streams, Text};
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Maximum number of rows kept from the beginning of a log, and from its end.
const ROWS: usize = 150;

/// Maximum number of models named.
const MODELS: usize = 4;

/// The maximum width of a title and of a name, in columns.
const TITLE: usize = 140;
const NAME: usize = 60;

/// The subject of a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RowKind {
    /// A question of the user: its first line.
    Question(String),
    /// A turn of the model.
    Turn,
    /// A call: the name of the tool, the class name of its state in `cards.css`, and the state as
    /// text.
    Call(String, &'static str, String),
}

/// A row of the outline.
#[derive(Clone, Debug)]
pub(super) struct OutlineRow {
    /// The number among the rows of the same kind.
    pub n: usize,
    pub kind: RowKind,
    /// The start and the end, in milliseconds of the run; `None` if they are unknown.
    pub span: Option<(f64, f64)>,
}

/// An open turn of the model.
#[derive(Debug)]
struct OpenTurn {
    /// The index of its row.
    row: usize,
    begin: f64,
    /// The time until its first event, which the log has only at the end of the turn. Shared with
    /// the calls that began in the turn.
    wait: Rc<Cell<f64>>,
    /// Whether it began with a `stream_start`.
    has_start: bool,
    has_times: bool,
}

/// The run of a call.
#[derive(Debug)]
pub(super) struct CallRun {
    /// The start in milliseconds, without the wait of its turn.
    begin: f64,
    wait: Rc<Cell<f64>>,
    took: Option<f64>,
    timestamp: Option<u64>,
}

impl CallRun {
    /// Returns the start and the end; `None` until the call has ended.
    fn span(&self) -> Option<(f64, f64)> {
        let begin = self.begin + self.wait.get();
        self.took.map(|took| (begin, begin + took))
    }
}

/// The summary of a run.
#[derive(Debug, Default)]
pub(super) struct Outline {
    no_time: bool,
    title: String,
    pub models: Vec<String>,
    /// The model of the latest turn.
    pub model: Option<String>,
    pub questions: usize,
    pub turns: usize,
    calls: usize,
    /// The number of calls that failed or were refused.
    failed: usize,
    /// The first and the last timestamp in the log, in milliseconds since 1970.
    dates: Option<(u64, u64)>,
    /// The time so far in milliseconds, without the pauses.
    pub now: f64,
    first: Vec<OutlineRow>,
    last: VecDeque<OutlineRow>,
    rows: usize,
    /// The open turn of each stream.
    open: Streams<OpenTurn>,
}

impl Outline {
    pub(super) fn new(no_time: bool) -> Self {
        Outline {
            no_time,
            ..Outline::default()
        }
    }

    /// Whether the user has asked a question.
    pub(super) fn has_title(&self) -> bool {
        !self.title.is_empty()
    }

    /// Returns the title of the run.
    pub(super) fn title(&self) -> &str {
        if self.has_title() {
            &self.title
        } else {
            "A run without a question"
        }
    }

    /// Returns the rows kept.
    pub(super) fn rows(&self) -> impl Iterator<Item = &OutlineRow> {
        self.first.iter().chain(&self.last)
    }

    /// Returns the number of rows dropped before the kept row at index `at`.
    pub(super) fn left_out_before(&self, at: usize) -> usize {
        match at == self.first.len() {
            true => self.rows - self.first.len() - self.last.len(),
            false => 0,
        }
    }

    /// Whether any row has a time.
    pub(super) fn has_times(&self) -> bool {
        self.rows().any(|row| row.span.is_some())
    }

    /// Whether the outline is shorter than the conversation.
    pub(super) fn is_worth_showing(&self) -> bool {
        self.rows > 2
    }

    /// Returns the totals of the run as pairs of a label and a text.
    pub(super) fn figures(&self, tokens: Tokens) -> Vec<(&'static str, String)> {
        let mut figures = Vec::new();
        if !self.models.is_empty() {
            figures.push(("model", self.models.join(", ")));
        }
        if let Some((from, to)) = self.dates {
            let [from, to] = [from, to].map(date);
            let text = match to.strip_prefix(&from[..10]) {
                _ if from == to => format!("{from} UTC"),
                Some(time) => format!("{from} to{time} UTC"),
                None => format!("{from} to {to} UTC"),
            };
            figures.push(("date", text));
        }
        if self.now > 0.0 && !self.no_time {
            figures.push(("time", duration(self.now)));
        }
        figures.push(("turns", grouped(self.turns as u64)));
        let calls = grouped(self.calls as u64);
        figures.push(match self.failed {
            0 => ("calls", calls),
            failed => (
                "calls",
                format!("{calls}, {} failed", grouped(failed as u64)),
            ),
        });
        if tokens != Tokens::default() {
            let [read, written] = [tokens.read, tokens.written].map(grouped);
            let price = tokens.price();
            figures.push(("tokens", format!("{read} in · {written} out{price}")));
        }
        figures
    }

    /// Processes the next event; returns whether it begins a turn.
    pub(super) fn push(&mut self, event: &Event<'_>, payload: &Payload<'_>) -> bool {
        let mut begins = match event.kind() {
            Kind::StreamStart => {
                self.end_turn(event, None);
                let start = StreamStart::read(event);
                self.model(start.model);
                self.date(start.timestamp);
                true
            }
            Kind::Thinking
            | Kind::ContentDelta
            | Kind::RefusalDelta
            | Kind::ToolCallDelta
            | Kind::ToolCall => self.open.get(stream_of(event)).is_none(),
            _ => false,
        };
        if begins {
            self.begin_turn(event);
        }
        let t = time(event);
        if let Some((turn, t)) = self.open.get_mut(stream_of(event)).zip(t) {
            turn.has_times = true;
            self.now = self.now.max(turn.begin + turn.wait.get() + t);
        }
        match payload {
            Payload::Message(message) => {
                begins |= message.message.with(|message| self.message(event, message));
            }
            Payload::SessionStats(stats) => self.stats(event, stats),
            Payload::StreamEnd(_) => self.end_turn(event, t),
            Payload::ToolUse(call) => self.date(call.timestamp),
            Payload::ToolResult(result) => self.date(result.timestamp),
            Payload::Approval(approval) => self.date(approval.timestamp),
            Payload::Session(session) => self.date(Some(session.created)),
            Payload::Response(Response { timestamp, .. }) => self.date(*timestamp),
            Payload::ResponseEnd(end) => self.date(end.timestamp),
            _ => {}
        }
        begins
    }

    /// Counts the next question on the page.
    pub(super) fn question(&mut self) {
        self.questions += 1;
    }

    /// Adds the row of a card. `earlier` is the badge of an earlier card of the same call.
    pub(super) fn card(&mut self, card: &ReportCard, run: Option<CallRun>, earlier: Option<Badge>) {
        self.calls += usize::from(earlier.is_none());
        self.failed -= usize::from(earlier.is_some_and(Badge::is_failure));
        self.failed += usize::from(card.badge.is_failure());
        let span = run.and_then(|run| run.span());
        let [name, word] = [&card.name, &card.word].map(|text| one_line(text, NAME));
        let kind = RowKind::Call(name, card.badge.name, word);
        self.row(card.n, kind, span.filter(|_| !self.no_time));
    }

    fn row(&mut self, n: usize, kind: RowKind, span: Option<(f64, f64)>) {
        let row = OutlineRow { n, kind, span };
        self.rows += 1;
        if self.first.len() < ROWS {
            return self.first.push(row);
        }
        if self.last.len() == ROWS {
            self.last.pop_front();
        }
        self.last.push_back(row);
    }

    /// Returns the row at this position, if it is kept.
    fn row_at(&mut self, at: usize) -> Option<&mut OutlineRow> {
        if at < self.first.len() {
            return self.first.get_mut(at);
        }
        let gone = self.rows - self.last.len();
        self.last.get_mut(at.checked_sub(gone)?)
    }

    fn model(&mut self, model: Option<Text<'_>>) {
        let model = model
            .map(|model| one_line(&model.str(), NAME))
            .unwrap_or_default();
        if !model.is_empty() {
            if !self.models.contains(&model) && self.models.len() < MODELS {
                self.models.push(model.clone());
            }
            self.model = Some(model);
        }
    }

    fn date(&mut self, timestamp: Option<u64>) {
        if let Some(timestamp) = timestamp.filter(|time| *time > 0 && !self.no_time) {
            let (from, to) = self.dates.unwrap_or((timestamp, timestamp));
            self.dates = Some((from.min(timestamp), to.max(timestamp)));
        }
    }

    fn begin_turn(&mut self, event: &Event<'_>) {
        self.turns += 1;
        let turn = OpenTurn {
            row: self.rows,
            begin: self.now,
            wait: Rc::default(),
            has_start: event.kind() == Kind::StreamStart,
            has_times: false,
        };
        self.open.insert(stream_of(event), turn);
        self.row(self.turns, RowKind::Turn, None);
    }

    fn end_turn(&mut self, event: &Event<'_>, t: Option<f64>) {
        let Some(turn) = self.open.remove(stream_of(event)) else {
            return;
        };
        let end = match t {
            Some(t) => turn.begin + turn.wait.get() + t,
            None => self.now,
        };
        self.now = self.now.max(end);
        if turn.has_times
            && !self.no_time
            && let Some(row) = self.row_at(turn.row)
        {
            row.span = Some((turn.begin, end));
        }
    }

    /// Processes a message; returns whether it is a turn by itself.
    fn message(&mut self, event: &Event<'_>, message: Raw<'_>) -> bool {
        match message.get_str("role").as_deref() {
            Some("user") => {
                let text = content(message);
                let line = text.trim().lines().next().unwrap_or_default();
                let line = title(line);
                if line.is_empty() {
                    return false;
                }
                if self.title.is_empty() {
                    self.title.clone_from(&line);
                }
                self.row(self.questions + 1, RowKind::Question(line), None);
                false
            }
            Some("assistant") => match self.open.get(stream_of(event)) {
                None => {
                    self.begin_turn(event);
                    self.end_turn(event, None);
                    true
                }
                Some(turn) => {
                    if !turn.has_start {
                        self.end_turn(event, None);
                    }
                    false
                }
            },
            _ => false,
        }
    }

    /// Records the time until the first event of the turn, and moves everything in the turn by that
    /// time.
    fn stats(&mut self, event: &Event<'_>, stats: &SessionStats) {
        let wait = stats.first_event_ms.map_or(0.0, milliseconds);
        if let Some(turn) = self.open.get(stream_of(event)).filter(|_| is_time(wait)) {
            self.now += wait - turn.wait.replace(wait);
        }
    }

    /// Returns the run that a `tool_use` begins.
    pub(super) fn begin_run(&self, event: &Event<'_>, call: &ToolUse<'_>) -> CallRun {
        let turn = self.open.get(stream_of(event));
        let wait = turn.map(|turn| Rc::clone(&turn.wait)).unwrap_or_default();
        let begin = match turn.zip(time(event)) {
            Some((turn, t)) => turn.begin + t,
            None => self.now - wait.get(),
        };
        CallRun {
            begin,
            wait,
            took: None,
            timestamp: call.timestamp,
        }
    }

    /// Ends the run of a call with this result.
    pub(super) fn end_run(&mut self, run: &mut CallRun, result: &ToolResult<'_>) {
        let took = match (result.duration_ms, run.timestamp.zip(result.timestamp)) {
            (Some(time), _) => Some(milliseconds(time)),
            (None, times) => times.map(|(from, to)| to.saturating_sub(from) as f64),
        };
        run.took = took.filter(|took| is_time(*took));
        if let Some((_, end)) = run.span() {
            self.now = self.now.max(end);
        }
    }
}

/// Converts a duration to milliseconds.
fn milliseconds(time: Millis) -> f64 {
    time.micros as f64 / 1000.0
}

/// Whether a time in milliseconds is plausible: at most some 30 years.
fn is_time(ms: f64) -> bool {
    (0.0..1e12).contains(&ms)
}

/// Returns the time of an event in its stream, in milliseconds.
fn time(event: &Event<'_>) -> Option<f64> {
    event.t().and_then(Raw::f64).filter(|t| is_time(*t))
}

/// Shortens `line` to a title; a long one is cut after a word.
fn title(line: &str) -> String {
    let line = one_line(line, TITLE);
    match line.strip_suffix('…').and_then(|cut| cut.rsplit_once(' ')) {
        Some((words, _)) => format!("{words} …"),
        None => line,
    }
}

/// Formats milliseconds since 1970 as a date in UTC: `2026-11-24 13:05`.
pub fn date(ms: u64) -> String {
    let minutes = ms / 60_000;
    let (days, minutes) = (minutes / 1440, minutes % 1440);
    // Source: https://howardhinnant.github.io/date_algorithms.html#civil_from_days, for dates after
    // 1970.
    let z = days + 719_468;
    let (era, of_era) = (z / 146_097, z % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month < 3);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}",
        minutes / 60,
        minutes % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let all = [
            0,
            951_782_400_000,
            951_868_800_000,
            1_795_527_062_223,
            4_107_542_399_999,
        ]
        .map(date);
        assert_eq!(
            all,
            [
                "1970-01-01 00:00",
                "2000-02-29 00:00",
                "2000-03-01 00:00",
                "2026-11-24 13:31",
                "2100-02-28 23:59"
            ]
        );
    }
}
