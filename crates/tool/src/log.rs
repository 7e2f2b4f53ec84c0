//! The calls of a log, so that no call runs twice.
//!
//! An id names a call only within its turn: some servers number the calls of each turn anew. So a log is read as a
//! history: a call that begins after a call of the same id was answered is another call.

use crate::call::{CallKey, RequestedCall};
use crate::canonical::Hash;
use crate::refusal::Refusal;
use crate::result::{Answer, Status};
use event::payload::{Message, ToolResult, ToolUse};
use event::{Event, Kind, Raw, Scanner};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// One call of a log.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoggedCall {
    /// The digest of its name and arguments, if an assistant's message lists it.
    pub fingerprint: Option<Hash>,
    /// An assistant's message lists it.
    pub listed: bool,
    /// Its `tool_use` event was written.
    pub started: bool,
    /// Its result.
    pub answer: Option<Rc<Answer>>,
    /// A tool message answers it.
    pub sent: bool,
}

impl LoggedCall {
    /// Whether the log has all that the call needs.
    fn is_over(&self) -> bool {
        self.sent || (self.answer.is_some() && !self.listed)
    }

    /// Whether it can be a call with that fingerprint.
    fn fits(&self, fingerprint: Option<&Hash>) -> bool {
        match (&self.fingerprint, fingerprint) {
            (Some(mine), Some(other)) => mine == other,
            _ => true,
        }
    }
}

/// The calls of a log.
#[derive(Debug, Default)]
pub struct Log {
    calls: HashMap<CallKey, Vec<LoggedCall>>,
    /// The calls of the last assistant's message, while only tool messages follow it.
    open: Vec<RequestedCall>,
    /// The calls that an earlier stage refused, until a message lists them. In the message their arguments look like any other.
    refused: HashMap<CallKey, Refusal>,
    /// The choice whose calls are run.
    choice: u32,
    scanner: Scanner,
}

impl Log {
    /// An empty log of the calls of one choice.
    pub fn of_choice(choice: u32) -> Self {
        Log { choice, ..Log::default() }
    }

    /// Takes the next line: an event, or a bare message. Skips any other line, such as a last line that was cut.
    pub fn line(&mut self, line: &str) {
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

    /// Takes the next event.
    pub fn event(&mut self, event: &Event<'_>) {
        if event.choice() != self.choice {
            return;
        }
        match event.kind() {
            Kind::ToolCall => {
                let call = RequestedCall::of_event(event);
                let key = call.key();
                match call.arguments {
                    Ok(_) => self.refused.remove(&key),
                    Err(refusal) => self.refused.insert(key, refusal),
                };
            }
            Kind::ToolUse | Kind::ToolResult => {
                let is_start = event.kind() == Kind::ToolUse;
                let id = if is_start { ToolUse::read(event).tool_id } else { ToolResult::read(event).tool_id };
                if id.is_empty() {
                    return;
                }
                let past = self.entry((event.stream().map(|s| s.text().into()), id.str().into()));
                if is_start {
                    // A start after a result is another call, even before its message. A call whose result waits for its message is the same call.
                    if past.last().is_none_or(LoggedCall::is_over) {
                        past.push(LoggedCall::default());
                    }
                    last(past).started = true;
                } else if let Some(answer) = Answer::read(event) {
                    if past.last().is_none_or(|p| p.sent) {
                        past.push(LoggedCall::default());
                    }
                    // The journal and the pipe may both have written the result to this log.
                    last(past).answer.get_or_insert_with(|| Rc::new(answer));
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
                    let fingerprint = self.open[n].fingerprint();
                    let past = self.entry(self.open[n].key());
                    if past.last().is_none_or(|p| p.sent) {
                        past.push(LoggedCall::default());
                    }
                    let past = last(past);
                    (past.listed, past.fingerprint) = (true, fingerprint);
                }
            }
            Some("tool") => {
                let Some(id) = message.get_str("tool_call_id") else { return };
                let content = message.get("content").map(|c| c.str().map_or_else(|| c.text().to_owned(), Into::into));
                let past = self.entry((event.and_then(|e| e.stream()).map(|s| s.text().into()), id.as_ref().into()));
                if past.is_empty() {
                    past.push(LoggedCall::default());
                }
                let past = last(past);
                past.sent = true;
                past.answer.get_or_insert_with(|| {
                    Rc::new(Answer { resumed: true, ..Answer::new(Status::Success, content.unwrap_or_default()) })
                });
            }
            _ => self.open.clear(),
        }
    }

    /// The last call of the same id, if it can be the same call.
    pub(crate) fn last(&self, call: &RequestedCall) -> Option<&LoggedCall> {
        self.calls.get(&call.key())?.last().filter(|past| past.fits(call.fingerprint().as_ref()))
    }

    /// Takes out the first call of the same id, for a log that was read ahead from the input.
    pub(crate) fn take_first(&mut self, call: &RequestedCall) -> Option<LoggedCall> {
        let past = self.calls.get_mut(&call.key())?;
        if past.is_empty() { None } else { Some(past.remove(0)) }
    }

    /// The calls of the turn that the log ends in, in order, if some of them lack their tool message.
    pub(crate) fn open_turn(&self) -> &[RequestedCall] {
        let lacking =
            |call: &RequestedCall| self.calls.get(&call.key()).and_then(|p| p.last()).is_none_or(|past| !past.sent);
        if self.open.iter().any(lacking) { &self.open } else { &[] }
    }

    fn entry(&mut self, key: CallKey) -> &mut Vec<LoggedCall> {
        self.calls.entry(key).or_default()
    }
}

/// The last call of a list; a new one if the list is empty.
fn last(past: &mut Vec<LoggedCall>) -> &mut LoggedCall {
    if past.is_empty() {
        past.push(LoggedCall::default());
    }
    let n = past.len() - 1;
    &mut past[n]
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
        let line = format!(r#"{{"type":"tool_call","tool_id":"{id}","tool_name":"w","arguments":{{"x":{x}}}}}"#);
        RequestedCall::of_event(&Scanner::default().read(&line).unwrap())
    }

    const ASKED: &str = r#"{"type":"message","message":{"role":"assistant","tool_calls":[
        {"id":"a","function":{"name":"w","arguments":"{\"x\":1}"}},{"id":"b","function":{"name":"w","arguments":"{\"x\":2}"}}]}}"#;
    const USED: &str = r#"{"type":"tool_use","tool_name":"w","tool_id":"a","status":"running"}"#;
    const RESULT: &str = r#"{"type":"tool_result","tool_name":"w","tool_id":"a","status":"success","output":"1"}"#;
    const SENT: &str = r#"{"type":"message","message":{"role":"tool","tool_call_id":"a","name":"w","content":"1"}}"#;

    #[test]
    fn a_result_answers_its_call_whichever_line_holds_it() {
        let one_line = ASKED.replace('\n', "");
        for lines in
            [vec![USED, RESULT], vec![RESULT], vec![&one_line, SENT], vec![&one_line, USED, USED, RESULT, RESULT, SENT]]
        {
            let log = log(&lines);
            let past = log.last(&call("a", 1)).unwrap();
            assert_eq!(past.answer.as_ref().unwrap().output, "1", "{lines:?}");
            assert!(log.last(&call("c", 1)).is_none());
        }
    }

    #[test]
    fn an_intent_alone_is_known_as_started() {
        let log = log(&[USED, "{\"type\":\"tool_res"]);
        let past = log.last(&call("a", 1)).unwrap();
        assert!(past.started && past.answer.is_none());
    }

    #[test]
    fn an_id_that_a_later_turn_uses_again_is_another_call() {
        let one_line = ASKED.replace('\n', "");
        let later = one_line.replace("\\\"x\\\":1", "\\\"x\\\":9");
        let mut log = log(&[&one_line, USED, RESULT, SENT, &later]);
        let past = log.last(&call("a", 9)).unwrap();
        assert!(past.answer.is_none() && !past.started);
        assert!(log.last(&call("a", 1)).is_none(), "the last call of that id has other arguments");
        assert!(log.take_first(&call("a", 1)).unwrap().sent && !log.take_first(&call("a", 9)).unwrap().sent);
    }

    #[test]
    fn a_call_that_was_refused_is_not_made_good_by_the_message() {
        let refused = r#"{"type":"tool_call","index":0,"tool_id":"a","tool_name":"w","arguments":null,"error":{"code":"incomplete","message":"cut"}}"#;
        let asked = ASKED.replace('\n', "");
        let open = |lines: &[&str]| log(lines).open_turn().iter().map(|c| c.arguments.is_ok()).collect::<Vec<_>>();
        assert_eq!(open(&[refused, &asked]), [false, true]);
        assert_eq!(open(&[refused, &asked, SENT, &asked]), [true, true], "a later turn uses the id again");
    }

    #[test]
    fn another_choice_is_no_turn_of_this_log_and_one_id_is_one_call() {
        let asked = ASKED.replace('\n', "");
        let other = asked.replacen('{', r#"{"choice":1,"#, 1).replace("\"a\"", "\"z\"");
        assert_eq!(log(&[&asked, &other]).open_turn()[0].id.as_ref(), "a");
        let mut of_other = Log::of_choice(1);
        [&asked, &other].iter().for_each(|line| of_other.line(line));
        assert_eq!(of_other.open_turn()[0].id.as_ref(), "z");
        assert_eq!(log(&[&asked.replace("\"b\"", "\"a\"")]).open_turn().len(), 1);
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
