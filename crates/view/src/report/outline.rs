//! What a run was, for the head and the end of a report: its title, its totals, and its questions,
//! turns and calls with their times.
//!
//! Times are those of the log: `t` within a stream, durations of waits and tools, and timestamps
//! where a duration is missing. What lies between (a person who thinks, a service that is idle) is
//! left out, so that the times of a run of two days are still a picture. Of a long run the first and
//! the last rows are kept.

use crate::calls::{CallCard, Who};
use crate::escape::{content, one_line};
use event::payload::{Response, SessionStats, StreamStart, ToolResult, ToolUse};
use event::{Event, Kind, Payload, Raw, Text};
use std::collections::VecDeque;

/// How many rows are kept from the beginning of a log, and from its end.
const ROWS: usize = 150;

/// How many turns and runs of calls are open at most: what never ends is not kept for ever.
const OPEN: usize = 256;

/// How many models are named.
const MODELS: usize = 4;

/// The width of a title and of a name, in columns.
const TITLE: usize = 140;
const NAME: usize = 60;

/// What a row of the outline is about.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RowKind {
    /// A question of the user, its first line.
    Question(String),
    /// A turn of the model.
    Turn,
    /// A call: the name of the tool, its state in `cards.css`, and the word for it.
    Call(String, &'static str, String),
}

/// A row of the outline.
#[derive(Clone, Debug)]
pub(super) struct OutlineRow {
    /// Its number among the rows of its kind.
    pub n: usize,
    pub kind: RowKind,
    /// When it began and ended, in milliseconds of the run.
    pub span: Option<(f64, f64)>,
}

/// A turn of the model that has not ended.
#[derive(Debug)]
struct OpenTurn {
    who: Who,
    /// The position of its row.
    row: usize,
    begin: f64,
    /// How long it took until its first event.
    wait: f64,
    /// Whether it began with a `stream_start`.
    has_start: bool,
    has_times: bool,
}

/// The run of a call, until its card is written.
#[derive(Debug)]
struct CallRun {
    who: Who,
    id: String,
    begin: f64,
    end: Option<f64>,
    timestamp: Option<u64>,
}

/// What is known of a run.
#[derive(Debug, Default)]
pub(super) struct Outline {
    no_time: bool,
    title: String,
    pub models: Vec<String>,
    /// The model of the latest turn.
    pub model: Option<String>,
    pub questions: usize,
    pub turns: usize,
    pub calls: usize,
    /// How many calls failed or were refused.
    pub failed: usize,
    /// Tokens by the provider's count.
    pub read: u64,
    pub written: u64,
    /// The first and the last time that the log names, in milliseconds since 1970.
    pub dates: Option<(u64, u64)>,
    /// The time so far, without what is left out, in milliseconds.
    pub now: f64,
    first: Vec<OutlineRow>,
    last: VecDeque<OutlineRow>,
    rows: usize,
    open: Vec<OpenTurn>,
    runs: Vec<CallRun>,
}

impl Outline {
    pub(super) fn new(no_time: bool) -> Self {
        Outline {
            no_time,
            ..Outline::default()
        }
    }

    /// Whether the user has asked something.
    pub(super) fn has_title(&self) -> bool {
        !self.title.is_empty()
    }

    /// The title of the run.
    pub(super) fn title(&self) -> &str {
        if self.has_title() {
            &self.title
        } else {
            "A run without a question"
        }
    }

    /// The rows, and how many are left out behind each part of them.
    pub(super) fn rows(&self) -> impl Iterator<Item = &OutlineRow> {
        self.first.iter().chain(&self.last)
    }

    /// How many rows are left out behind the first [`ROWS`].
    pub(super) fn left_out(&self) -> usize {
        self.rows - self.first.len() - self.last.len()
    }

    /// How many rows there are before those that are left out.
    pub(super) fn before_gap(&self) -> usize {
        self.first.len()
    }

    /// Whether the outline shows more than the conversation does at one look.
    pub(super) fn is_worth_showing(&self) -> bool {
        self.rows > 2
    }

    /// Takes the next event; returns whether it begins a turn.
    pub(super) fn push(&mut self, event: &Event<'_>) -> bool {
        let t = event
            .t()
            .and_then(Raw::f64)
            .filter(|t| (0.0..1e12).contains(t));
        let mut begins = false;
        match event.kind() {
            Kind::StreamStart => {
                self.end_turn(event, None);
                let start = StreamStart::read(event);
                self.model(start.model);
                self.date(start.timestamp);
                self.begin_turn(event, true);
                begins = true;
            }
            Kind::Thinking
            | Kind::ContentDelta
            | Kind::RefusalDelta
            | Kind::ToolCallDelta
            | Kind::ToolCall
                if self.turn(event).is_none() =>
            {
                self.begin_turn(event, false);
                begins = true;
            }
            _ => {}
        }
        if let Some((turn, t)) = self.turn(event).zip(t) {
            let turn = &mut self.open[turn];
            turn.has_times = true;
            self.now = self.now.max(turn.begin + turn.wait + t);
        }
        match event.payload() {
            Some(Payload::Message(message)) => {
                begins |= message.message.with(|message| self.message(event, message));
            }
            Some(Payload::SessionStats(stats)) => self.stats(event, &stats),
            Some(Payload::StreamEnd(_)) => self.end_turn(event, t),
            Some(Payload::ToolUse(call)) => self.starts(event, &call, t),
            Some(Payload::ToolResult(result)) => self.ends(event, &result),
            Some(Payload::Approval(approval)) => self.date(approval.timestamp),
            Some(Payload::Session(session)) => self.date(Some(session.created)),
            Some(Payload::Response(Response { timestamp, .. })) => self.date(timestamp),
            Some(Payload::ResponseEnd(end)) => self.date(end.timestamp),
            _ => {}
        }
        begins
    }

    /// Adds the question that is on the page next.
    pub(super) fn question(&mut self) {
        self.questions += 1;
    }

    /// The `n`th card of the document is about this call.
    pub(super) fn card(&mut self, call: &CallCard, n: usize) {
        let state = call.state_name();
        let is_late = n <= self.calls;
        self.calls = n;
        self.failed += usize::from(!is_late && matches!(state, "failed" | "refused"));
        let run = self
            .runs
            .iter()
            .position(|run| run.id == call.id && run.who == call.who);
        let run = run.map(|at| self.runs.swap_remove(at));
        let span = run.and_then(|run| Some((run.begin, run.end?)));
        let word = call.word().2;
        let word = if word.is_empty() { "done" } else { &word };
        let kind = RowKind::Call(one_line(&call.name, NAME), state, one_line(word, NAME));
        self.row(n, kind, span.filter(|_| !self.no_time));
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

    /// The row at this position, if it is kept.
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

    /// The open turn of the event's stream.
    fn turn(&self, event: &Event<'_>) -> Option<usize> {
        self.open
            .iter()
            .position(|turn| turn.who.shares_stream(event))
    }

    fn begin_turn(&mut self, event: &Event<'_>, has_start: bool) {
        self.turns += 1;
        if self.open.len() == OPEN {
            self.open.remove(0);
        }
        self.open.push(OpenTurn {
            who: Who::of(event),
            row: self.rows,
            begin: self.now,
            wait: 0.0,
            has_start,
            has_times: false,
        });
        self.row(self.turns, RowKind::Turn, None);
    }

    fn end_turn(&mut self, event: &Event<'_>, t: Option<f64>) {
        let Some(turn) = self.turn(event) else {
            return;
        };
        let turn = self.open.swap_remove(turn);
        let end = match t {
            Some(t) => turn.begin + turn.wait + t,
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

    /// Takes a message; returns whether it is a turn by itself.
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
            Some("assistant") => {
                let turn = self.turn(event);
                match turn {
                    None => {
                        self.begin_turn(event, false);
                        self.end_turn(event, None);
                    }
                    Some(turn) if !self.open[turn].has_start => self.end_turn(event, None),
                    Some(_) => {}
                }
                turn.is_none()
            }
            _ => false,
        }
    }

    /// Takes counts of tokens, and the time until the first event, which is known here only: what
    /// the turn has done so far moves by that time.
    fn stats(&mut self, event: &Event<'_>, stats: &SessionStats) {
        self.read = self.read.saturating_add(stats.prompt_tokens.unwrap_or(0));
        self.written = self
            .written
            .saturating_add(stats.completion_tokens.unwrap_or(0));
        let wait = stats
            .first_event_ms
            .map_or(0.0, |time| time.micros as f64 / 1000.0);
        let Some(turn) = self.turn(event).filter(|_| (0.0..1e12).contains(&wait)) else {
            return;
        };
        let turn = &mut self.open[turn];
        let wait = wait - std::mem::replace(&mut turn.wait, wait);
        for run in &mut self.runs {
            if run.begin >= turn.begin && run.who.shares_stream(event) {
                run.begin += wait;
                run.end = run.end.map(|end| end + wait);
            }
        }
        self.now += wait;
    }

    fn starts(&mut self, event: &Event<'_>, call: &ToolUse<'_>, t: Option<f64>) {
        self.date(call.timestamp);
        let turn = self.turn(event).map(|turn| &self.open[turn]);
        let begin = match turn.zip(t) {
            Some((turn, t)) => turn.begin + turn.wait + t,
            None => self.now,
        };
        let id = call.tool_id.str().into_owned();
        let who = Who::of(event);
        self.runs.retain(|run| run.id != id || run.who != who);
        if self.runs.len() == OPEN {
            self.runs.remove(0);
        }
        self.runs.push(CallRun {
            who,
            id,
            begin,
            end: None,
            timestamp: call.timestamp,
        });
    }

    fn ends(&mut self, event: &Event<'_>, result: &ToolResult<'_>) {
        self.date(result.timestamp);
        let id = result.tool_id.str();
        let run = self
            .runs
            .iter_mut()
            .find(|run| run.id == id && run.who.is(event));
        let Some(run) = run else {
            return;
        };
        let took = match (result.duration_ms, run.timestamp.zip(result.timestamp)) {
            (Some(time), _) => time.micros as f64 / 1000.0,
            (None, Some((from, to))) => to.saturating_sub(from) as f64,
            (None, None) => return,
        };
        if (0.0..1e12).contains(&took) {
            run.end = Some(run.begin + took);
            self.now = self.now.max(run.begin + took);
        }
    }
}

/// `line` as a title: a long one ends behind a word.
fn title(line: &str) -> String {
    let line = one_line(line, TITLE);
    match line.strip_suffix('…').and_then(|cut| cut.rsplit_once(' ')) {
        Some((words, _)) => format!("{words} …"),
        None => line,
    }
}

/// A time as a date in UTC: `2026-11-24 13:05`.
pub(super) fn date(ms: u64) -> String {
    let minutes = ms / 60_000;
    let (days, minutes) = (minutes / 1440, minutes % 1440);
    // https://howardhinnant.github.io/date_algorithms.html#civil_from_days, for days after 1970.
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
