//! The calls of a log, read so that no call runs twice.
//!
//! An id identifies a call only within its turn, since some servers restart their numbering in each
//! turn. A log is therefore read in order: once a call was answered, a later call with the same id
//! is a new call.

use super::argument::ArgumentRefusal;
use super::call::{CallKey, RequestedCall, StreamName, stream_of};
use super::canonical::Hash;
use super::history::History;
use super::policy::Policy;
use super::result::{Status, ToolAnswer};
use event::payload::{Message, StreamStart, ToolResult, ToolUse};
use event::{Event, Kind, Raw, Scanner};
use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

/// Maximum number of earlier calls with the same id whose responses are compared with that of a
/// call.
const COMPARED: usize = 1000;

/// The calls of a log.
#[derive(Debug, Default)]
pub struct Log {
    calls: HashMap<CallKey, VecDeque<LoggedCall>>,
    /// The id of each stream's latest response.
    responses: HashMap<StreamName, Option<Box<str>>>,
    /// The number of the log file that is being read.
    file: usize,
    /// The starts in this file that earlier files already contain. For each id: the index of the
    /// call with the last repeated start, the number of that call's starts up to it, and whether
    /// the latest start was a repeat.
    repeated: HashMap<CallKey, (usize, usize, bool)>,
    /// The calls of the last assistant's message, as long as only tool messages follow it.
    open: Vec<RequestedCall>,
    /// The calls that an earlier stage rejected, until a message lists them. The message does not
    /// show that their arguments were rejected.
    refused: HashMap<CallKey, ArgumentRefusal>,
    /// The calls with a `tool_call` event after the latest `stream_start` of their stream.
    announced: HashSet<CallKey>,
    /// The calls whose arguments an earlier stage repaired, until a message lists them.
    repaired: HashSet<CallKey>,
    /// The history that limits need, for the whole log.
    pub(crate) history: History,
    /// The choice whose calls are run.
    choice: u32,
    scanner: Scanner,
}

/// Reads the lines of one or more log files.
pub trait LogReader {
    /// Starts the next file: the lines that follow come from another file than those before.
    fn next_file(&mut self) {}

    /// Reads the next line, which is an event or a bare message. Any other line, such as a
    /// truncated last line, is skipped.
    fn line(&mut self, line: &str);
}

impl LogReader for Log {
    /// Files may overlap: a journal repeats the events of the log in the same order. A start with
    /// the same time as one in an earlier file, or with no time in both files, is the same start.
    fn next_file(&mut self) {
        self.file += 1;
        self.repeated.clear();
        self.responses.clear();
    }

    fn line(&mut self, line: &str) {
        let mut scanner = std::mem::take(&mut self.scanner);
        match scanner.read(line) {
            Ok(event) => self.event(&event),
            Err(_) => {
                if let Ok(message) = Raw::parse(line)
                    && message.get("role").is_some()
                {
                    self.message(None, message);
                }
            }
        }
        self.scanner = scanner;
    }
}

impl Log {
    /// Creates an empty log for the calls of one choice.
    pub fn of_choice(choice: u32) -> Self {
        Log {
            choice,
            ..Log::default()
        }
    }

    /// Like [`Log::of_choice`], but what the log has used of the limits of `policy` counts toward
    /// them for the calls that follow.
    pub fn under_policy(choice: u32, policy: Rc<Policy>) -> Self {
        Log {
            history: History::new(policy),
            ..Log::of_choice(choice)
        }
    }

    /// Records the next event.
    pub fn event(&mut self, event: &Event<'_>) {
        if event.choice() != self.choice && event.kind() != Kind::SessionStats {
            return;
        }
        if event.kind() != Kind::ToolUse {
            self.history.event(event);
        }
        match event.kind() {
            Kind::StreamStart => {
                let id = StreamStart::read(event).id.filter(|id| !id.is_empty());
                let stream = stream_of(event);
                self.announced.retain(|(of, _)| *of != stream);
                self.responses.insert(stream, id.map(|id| id.str().into()));
            }
            Kind::ToolCall => {
                let call = RequestedCall::of_event(event);
                let key = call.key();
                self.announced.insert(key.clone());
                if call.repaired {
                    self.repaired.insert(key.clone());
                }
                match call.arguments {
                    Ok(_) => self.refused.remove(&key),
                    Err(refusal) => self.refused.insert(key, refusal),
                };
            }
            Kind::ToolUse | Kind::ToolResult => {
                let is_start = event.kind() == Kind::ToolUse;
                let id = if is_start {
                    ToolUse::read(event).tool_id
                } else {
                    ToolResult::read(event).tool_id
                };
                if id.is_empty() {
                    return;
                }
                let key: CallKey = (stream_of(event), id.str().into());
                if is_start {
                    if self.started(key, ToolUse::read(event).timestamp) {
                        self.history.event(event);
                    }
                } else if let Some(answer) = ToolAnswer::read(event) {
                    let again = self
                        .repeated
                        .get(&key)
                        .filter(|(.., is_again)| *is_again)
                        .map(|(call, ..)| *call);
                    let file = self.file;
                    let past = match again {
                        Some(at) => &mut self.entry(key)[at],
                        // The result has no start in this file, and an earlier file already
                        // contains an answer to the call.
                        None if self
                            .entry(key.clone())
                            .back()
                            .is_some_and(|p| p.file != file && p.answer.is_some()) =>
                        {
                            return;
                        }
                        None => self.answered(
                            key,
                            |past| past.was_started() && past.answer.is_none(),
                            |past| past.sent,
                        ),
                    };
                    // Both the journal and the pipe may have written the result to this log.
                    past.answer.get_or_insert_with(|| Rc::new(answer));
                }
            }
            Kind::Message => {
                Message::read(event).message.with(|message| {
                    if message.is_object() {
                        self.message(Some(event), message);
                    }
                });
            }
            _ => {}
        }
    }

    fn message(&mut self, event: Option<&Event<'_>>, message: Raw<'_>) {
        match message.get_str("role").as_deref() {
            Some("assistant") => {
                self.open = RequestedCall::of_message(event, message);
                let mut listed = HashSet::new();
                self.open.retain(|call| listed.insert(call.id.clone())); // one id, one call
                for n in 0..self.open.len() {
                    if let Some(refusal) = self.refused.remove(&self.open[n].key()) {
                        self.open[n].arguments = Err(refusal);
                    }
                    self.open[n].repaired = self.repaired.remove(&self.open[n].key());
                    let fingerprint = self.open[n].fingerprint();
                    let key = self.open[n].key();
                    let response = self.response(&key);
                    let past = self.current(key, response, |past| past.sent);
                    (past.listed, past.fingerprint) = (true, fingerprint);
                    self.open[n].response = past.response.clone();
                }
                self.history.assistant(&self.open);
            }
            Some("tool") => {
                let Some(id) = message.get_str("tool_call_id") else {
                    return;
                };
                let content = message
                    .get("content")
                    .map(|c| c.str().map_or_else(|| c.text().to_owned(), Into::into));
                let key = (event.and_then(stream_of), id.as_ref().into());
                self.history
                    .tool(&key, content.as_deref().unwrap_or_default());
                let past = self.answered(
                    key,
                    |past| (past.was_started() || past.listed) && !past.sent,
                    |_| false,
                );
                past.sent = true;
                past.answer.get_or_insert_with(|| {
                    Rc::new(ToolAnswer {
                        resumed: true,
                        ..ToolAnswer::new(Status::Success, content.unwrap_or_default())
                    })
                });
            }
            role => {
                if role == Some("user") {
                    self.history.user();
                }
                self.open.clear();
            }
        }
    }

    /// Returns the last call with the same stream and id, or `None` if it is certainly another
    /// call.
    pub(crate) fn last(&self, call: &RequestedCall) -> Option<&LoggedCall> {
        self.calls
            .get(&call.key())?
            .back()
            .filter(|past| past.fits(call))
    }

    /// Returns the number of earlier calls in the log with the same stream and id whose response id
    /// is unknown or equal to that of `call`.
    pub(crate) fn occurrence(&self, call: &RequestedCall) -> usize {
        let Some(past) = self.calls.get(&call.key()) else {
            return 0;
        };
        let before = past.len() - usize::from(past.back().is_some_and(|past| past.fits(call)));
        if before > COMPARED {
            return before; // an id that comes so often does not tell calls apart
        }
        past.range(..before)
            .filter(|past| call.is_in_response(past.response.as_deref()))
            .count()
    }

    /// Removes and returns the first call with the same stream and id. Used for a log that was read
    /// ahead from the input.
    pub(crate) fn take_first(&mut self, call: &RequestedCall) -> Option<LoggedCall> {
        self.calls.get_mut(&call.key())?.pop_front()
    }

    /// Returns the calls of the turn that ends the log, in order, if some of them lack a tool
    /// message; otherwise an empty slice.
    pub(crate) fn open_turn(&self) -> &[RequestedCall] {
        let lacking = |call: &RequestedCall| {
            self.calls
                .get(&call.key())
                .and_then(|p| p.back())
                .is_none_or(|past| !past.sent)
        };
        if self.open.iter().any(lacking) {
            &self.open
        } else {
            &[]
        }
    }

    /// Records a start of a call at `time`. Returns whether the start is new, that is, not in an
    /// earlier file.
    fn started(&mut self, key: CallKey, time: Option<u64>) -> bool {
        let file = self.file;
        let (call, seen, is_again) = self.repeated.entry(key.clone()).or_default();
        let past = self.calls.entry(key.clone()).or_default();
        let found = past.iter().enumerate().skip(*call).find_map(|(at, past)| {
            let seen = if at == *call { *seen } else { 0 };
            let mut later = past.starts.iter().skip(seen);
            let n = later.position(|start| *start == time && past.file != file)?;
            Some((at, seen + n + 1))
        });
        *is_again = found.is_some();
        (*call, *seen) = found.unwrap_or((*call, *seen));
        if found.is_none() {
            // A start after the result of an unlisted call belongs to a new call. A listed call stays
            // the same call until its tool message.
            let response = self.response_of(&key);
            let past = self.current(key, response, LoggedCall::is_over);
            past.starts.push(time);
        }
        found.is_none()
    }

    /// Returns the response that a start, a result or a tool message of this call belongs to. A
    /// call of the last message keeps its response after the next `stream_start`, until the next
    /// response announces a call with the same id.
    fn response_of(&self, key: &CallKey) -> Option<Box<str>> {
        let listed = self.open.iter().find(|call| call.key() == *key);
        match listed {
            Some(call) if !self.announced.contains(key) => call.response.clone(),
            _ => self.response(key),
        }
    }

    /// Returns the id of the current response in the call's stream.
    fn response(&self, key: &CallKey) -> Option<Box<str>> {
        self.responses.get(&key.0).cloned().flatten()
    }

    /// Returns the call that a result answers. This is the last call with that stream and id if it
    /// is open, even if the next response has begun: otherwise the result would be counted for the
    /// next response. If it is not open, works like [`Log::current`].
    fn answered(
        &mut self,
        key: CallKey,
        is_open: impl Fn(&LoggedCall) -> bool,
        is_over: impl Fn(&LoggedCall) -> bool,
    ) -> &mut LoggedCall {
        if self.entry(key.clone()).back().is_some_and(is_open) {
            let past = self.entry(key);
            let last = past.len() - 1;
            return &mut past[last];
        }
        let response = self.response_of(&key);
        self.current(key, response, is_over)
    }

    /// Returns the last call with that stream and id, or a new one if the last call is over or
    /// belongs to a response other than `response`.
    fn current(
        &mut self,
        key: CallKey,
        response: Option<Box<str>>,
        is_over: impl Fn(&LoggedCall) -> bool,
    ) -> &mut LoggedCall {
        let file = self.file;
        let past = self.entry(key);
        let is_other = |last: &LoggedCall| {
            last.response.is_some() && response.is_some() && last.response != response
        };
        if past
            .back()
            .is_none_or(|last| is_over(last) || is_other(last))
        {
            past.push_back(LoggedCall {
                file,
                ..LoggedCall::default()
            });
        }
        let n = past.len() - 1;
        let past = &mut past[n];
        past.response = past.response.take().or(response);
        past
    }

    fn entry(&mut self, key: CallKey) -> &mut VecDeque<LoggedCall> {
        self.calls.entry(key).or_default()
    }
}

// The records that a log holds about one call.

/// One call of a log.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoggedCall {
    /// The digest of the call's name and arguments, if an assistant's message lists the call.
    pub fingerprint: Option<Hash>,
    /// Whether an assistant's message lists the call.
    pub listed: bool,
    /// The times when the call was started, in milliseconds since 1970, or `None` for a start
    /// without a time. There may be several, since an interrupted run may have been followed by
    /// another.
    pub starts: Vec<Option<u64>>,
    /// The result of the call.
    pub answer: Option<Rc<ToolAnswer>>,
    /// Whether a tool message answers the call.
    pub sent: bool,
    /// The id of the response that contains the call, if the log has it.
    pub response: Option<Box<str>>,
    /// The number of the first file that contains the call.
    pub file: usize,
}

impl LoggedCall {
    /// Whether the log contains a `tool_use` event of the call.
    pub(crate) fn was_started(&self) -> bool {
        !self.starts.is_empty()
    }

    /// Whether the call is complete: it has a tool message, or it has a result and no message lists
    /// it.
    pub(crate) fn is_over(&self) -> bool {
        self.sent || (self.answer.is_some() && !self.listed)
    }

    /// Whether this can be the call `call`.
    pub(crate) fn fits(&self, call: &RequestedCall) -> bool {
        let is_same = match (&self.fingerprint, call.fingerprint()) {
            (Some(mine), Some(other)) => *mine == other,
            _ => true,
        };
        is_same && call.is_in_response(self.response.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(lines: &[&str]) -> Log {
        let mut log = Log::default();
        lines.iter().for_each(|line| log.line(line));
        log
    }

    fn call(id: &str, x: i32) -> RequestedCall {
        let line = format!(
            r#"{{"type":"tool_call","tool_id":"{id}","tool_name":"w","arguments":{{"x":{x}}}}}"#
        );
        RequestedCall::of_event(&Scanner::default().read(&line).unwrap())
    }

    const ASKED: &str = r#"{"type":"message","message":{"role":"assistant","tool_calls":[
        {"id":"a","function":{"name":"w","arguments":"{\"x\":1}"}},{"id":"b","function":{"name":"w","arguments":"{\"x\":2}"}}]}}"#;
    const USED: &str = r#"{"type":"tool_use","tool_name":"w","tool_id":"a","status":"running"}"#;
    const RESULT: &str =
        r#"{"type":"tool_result","tool_name":"w","tool_id":"a","status":"success","output":"1"}"#;
    const SENT: &str = r#"{"type":"message","message":{"role":"tool","tool_call_id":"a","name":"w","content":"1"}}"#;

    #[test]
    fn a_result_answers_its_call_whichever_line_holds_it() {
        let one_line = ASKED.replace('\n', "");
        for lines in [
            vec![USED, RESULT],
            vec![RESULT],
            vec![&one_line, SENT],
            vec![&one_line, USED, USED, RESULT, RESULT, SENT],
        ] {
            let log = log(&lines);
            let past = log.last(&call("a", 1)).unwrap();
            assert_eq!(past.answer.as_ref().unwrap().output, "1", "{lines:?}");
            assert!(log.last(&call("c", 1)).is_none());
        }
    }

    #[test]
    fn a_result_behind_the_beginning_of_the_next_response_answers_the_call_that_was_started() {
        let asked = ASKED.replace('\n', "");
        let start = |id: &str| format!(r#"{{"type":"stream_start","id":"{id}"}}"#);
        let mut again = call("a", 1);
        again.response = Some("r1".into());
        for lines in [
            vec![&*start("r1"), USED, &start("r2"), RESULT],
            vec![&start("r1"), &asked, USED, &start("r2"), RESULT, SENT],
            vec![&start("r1"), &asked, USED, RESULT, &start("r2"), SENT],
        ] {
            let log = log(&lines);
            assert!(
                log.last(&again)
                    .is_some_and(|past| past.was_started() && past.answer.is_some()),
                "{lines:?}"
            );
        }
        // A resumed run may start the call again there.
        let resumed = log(&[&start("r1"), &asked, USED, &start("r2"), USED, RESULT]);
        assert!(
            resumed
                .last(&again)
                .is_some_and(|past| past.was_started() && past.answer.is_some())
        );
        // The call may also start there for the first time, if the process died before starting it.
        let late = log(&[&start("r1"), &asked, &start("r2"), USED, RESULT, SENT]);
        again.response = Some("r1".into());
        assert!(
            late.last(&again)
                .is_some_and(|past| past.was_started() && past.sent)
        );
        // The call may also be rejected there; its result then has no start.
        let refused = log(&[&start("r1"), &asked, &start("r2"), RESULT, SENT]);
        assert!(
            refused
                .last(&again)
                .is_some_and(|past| !past.was_started() && past.sent)
        );
        // A call that the next response starts under the same id is a new call, and its result does
        // not belong to the first.
        let call = r#"{"type":"tool_call","tool_id":"a","tool_name":"w","arguments":{"x":1}}"#;
        for announced in [call, &asked] {
            let log = log(&[
                &start("r1"),
                &asked,
                USED,
                &start("r2"),
                announced,
                USED,
                RESULT,
            ]);
            again.response = Some("r1".into());
            assert!(log.last(&again).is_none());
            again.response = Some("r2".into());
            assert!(log.last(&again).is_some_and(|past| past.answer.is_some()));
        }
    }

    #[test]
    fn an_intent_alone_is_known_as_started() {
        let log = log(&[USED, "{\"type\":\"tool_res"]);
        let past = log.last(&call("a", 1)).unwrap();
        assert!(past.was_started() && past.answer.is_none());
    }

    #[test]
    fn an_id_that_a_later_turn_uses_again_is_another_call() {
        let one_line = ASKED.replace('\n', "");
        let later = one_line.replace("\\\"x\\\":1", "\\\"x\\\":9");
        let mut log = log(&[&one_line, USED, RESULT, SENT, &later]);
        let past = log.last(&call("a", 9)).unwrap();
        assert!(past.answer.is_none() && !past.was_started());
        assert!(
            log.last(&call("a", 1)).is_none(),
            "the last call of that id has other arguments"
        );
        assert!(
            log.take_first(&call("a", 1)).unwrap().sent
                && !log.take_first(&call("a", 9)).unwrap().sent
        );
    }

    #[test]
    fn a_journal_beside_its_log_adds_nothing() {
        let asked = ASKED.replace('\n', "");
        let b = |line: &str| line.replace("\"a\"", "\"b\"");
        let whole = [&asked, USED, &b(USED), RESULT, &b(RESULT), SENT, &b(SENT)];
        let again = USED.replace("\"status\"", "\"timestamp\":9,\"status\"");
        let restarted = [
            &asked,
            USED,
            &b(USED),
            USED,
            &again,
            RESULT,
            &b(RESULT),
            SENT,
            &b(SENT),
        ];
        for (from, to) in [("", ""), ("\",\"status\"", "\",\"timestamp\":7,\"status\"")] {
            let timed = |line: &&str| line.replace(from, to);
            for files in [
                vec![&whole[..], &whole[1..5]],
                vec![&whole[..], &whole[..]],
                vec![&whole[..], &whole[1..3], &whole[3..5]],
                vec![&restarted[..], &restarted[1..7]],
                vec![&restarted[1..7], &restarted[..]],
                vec![&restarted[..], &restarted[1..4], &restarted[4..7]],
            ] {
                let mut log = Log::default();
                for lines in &files {
                    lines.iter().map(timed).for_each(|line| log.line(&line));
                    log.next_file();
                }
                assert!(
                    log.open_turn().is_empty() && log.last(&call("a", 1)).unwrap().sent,
                    "{files:?}"
                );
            }
        }
        // A start that only the journal contains counts as a start.
        let mut log = log(&whole[..6]);
        log.next_file();
        log.line(&USED.replace("\"a\"", "\"c\""));
        log.line(&b(USED));
        log.line(&b(RESULT));
        assert!(log.last(&call("c", 1)).unwrap().was_started() && log.open_turn().len() == 2);
    }

    #[test]
    fn an_id_that_another_response_uses_again_is_another_call_though_it_says_the_same() {
        let asked = ASKED.replace('\n', "");
        let start = |id: &str| format!(r#"{{"type":"stream_start","id":"{id}"}}"#);
        let mut again = call("a", 1);
        let log = log(&[&start("r1"), &asked, USED, RESULT, SENT]);
        assert!(
            log.last(&again).is_some_and(|past| past.sent),
            "an input without a response id may be the same"
        );
        again.response = Some("r1".into());
        assert_eq!(
            (log.last(&again).is_some(), log.occurrence(&again)),
            (true, 0)
        );
        again.response = Some("r2".into());
        assert_eq!(
            (log.last(&again).is_some(), log.occurrence(&again)),
            (false, 0)
        );
        let log = super::tests::log(&[&start("r1"), &asked, USED, &start("r2"), &asked]);
        assert!(
            log.last(&again).is_some_and(|past| !past.was_started())
                && log.open_turn()[0].response == again.response
        );
        // If no response has an id, all earlier calls count.
        let log = super::tests::log(&[&asked, USED, RESULT, SENT, &asked, USED]);
        assert_eq!(log.occurrence(&call("a", 1)), 1);
    }

    #[test]
    fn a_call_that_was_refused_is_not_made_good_by_the_message() {
        let refused = r#"{"type":"tool_call","index":0,"tool_id":"a","tool_name":"w","arguments":null,"error":{"code":"incomplete","message":"cut"}}"#;
        let asked = ASKED.replace('\n', "");
        let open = |lines: &[&str]| {
            log(lines)
                .open_turn()
                .iter()
                .map(|c| c.arguments.is_ok())
                .collect::<Vec<_>>()
        };
        assert_eq!(open(&[refused, &asked]), [false, true]);
        assert_eq!(
            open(&[refused, &asked, SENT, &asked]),
            [true, true],
            "a later turn uses the id again"
        );
    }

    #[test]
    fn another_choice_is_no_turn_of_this_log_and_one_id_is_one_call() {
        let asked = ASKED.replace('\n', "");
        let other = asked
            .replacen('{', r#"{"choice":1,"#, 1)
            .replace("\"a\"", "\"z\"");
        assert_eq!(log(&[&asked, &other]).open_turn()[0].id.as_ref(), "a");
        let mut of_other = Log::of_choice(1);
        [&asked, &other].iter().for_each(|line| of_other.line(line));
        assert_eq!(of_other.open_turn()[0].id.as_ref(), "z");
        assert_eq!(
            log(&[&asked.replace("\"b\"", "\"a\"")]).open_turn().len(),
            1
        );
    }

    #[test]
    fn the_open_turn_is_the_last_one_and_only_while_it_lacks_something() {
        let asked = ASKED.replace('\n', "");
        let b = SENT.replace("\"a\"", "\"b\"");
        let user = r#"{"role":"user","content":"never mind"}"#;
        assert_eq!(log(&[&asked, SENT]).open_turn().len(), 2);
        assert_eq!(log(&[&asked, SENT, &b]).open_turn().len(), 0);
        assert_eq!(log(&[&asked, SENT, user]).open_turn().len(), 0);
        assert_eq!(
            log(&[r#"{"role":"assistant","tool_calls":[{"id":"z","function":{"name":"w","arguments":"{}"}}]}"#])
                .open_turn()
                .len(),
            1
        );
    }
}
