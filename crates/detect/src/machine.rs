//! The state machine of `tc-detect`, which writes one decision for each choice of a stream as early
//! as possible.

use crate::checker::{Checker, EventCallHead, Factory, StreamEnding, Verdict};
use event::payload::{Decision, Retract, StreamEnd};
use event::{Choices, Event, Kind, Machine, Sink, Text};
use std::cell::Cell;
use std::rc::Rc;

/// The state of one choice of the stream.
struct CheckedChoice {
    number: u32,
    checker: Box<dyn Checker>,
    /// Bytes of content text before the decision.
    bytes: u64,
    /// The decision; `None` until it is made.
    decided: Option<bool>,
    /// Whether the stream failed before the decision.
    has_failed: bool,
    calls: RememberedCalls,
}

/// Decides whether each choice of one stream calls a tool.
pub struct Detect {
    name: Rc<str>,
    factory: Factory,
    answers: CheckerAnswers,
    choices: Choices<CheckedChoice>,
    events: u64,
    /// Whether a no cannot settle the run yet: this stream has a name, it ended before the input
    /// did, or the input is not a pipe whose upstream should be stopped.
    others: bool,
}

impl std::fmt::Debug for Detect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Detect")
            .field("checker", &self.name)
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}

impl Detect {
    /// Returns a machine for the stream that `first` starts. `factory` creates the checker of each
    /// choice; `name` is the checker's name as the user wrote it.
    pub fn new(
        name: Rc<str>,
        factory: Factory,
        answers: CheckerAnswers,
        first: &Event<'_>,
    ) -> Self {
        Detect {
            name,
            factory,
            answers,
            choices: Choices::default(),
            events: 0,
            others: first.stream().is_some(),
        }
    }

    /// Sets whether further streams may follow in the input, so that a no for this stream is not
    /// yet the final answer.
    #[must_use]
    pub fn followed(mut self, others: bool) -> Self {
        self.others |= others;
        self
    }

    /// Returns whether the first choice calls a tool; `None` before that is decided, or if the
    /// stream failed first.
    pub fn decided(&self) -> Option<bool> {
        self.choices
            .find(0)
            .map(|at| &self.choices[at])
            .filter(|c| !c.has_failed)
            .and_then(|c| c.decided)
    }

    fn choice(&mut self, number: u32) -> usize {
        let factory = &self.factory;
        self.choices.place(number, || CheckedChoice {
            number,
            checker: factory(),
            bytes: 0,
            decided: None,
            has_failed: false,
            calls: RememberedCalls::default(),
        })
    }

    /// Writes a decision. `None` for `verdict` means that the stream failed before a verdict.
    fn decide(&mut self, at: usize, verdict: Option<Verdict>, revised: bool, out: &mut dyn Sink) {
        let choice = &mut self.choices[at];
        let undecided = verdict.is_none();
        let verdict = verdict.unwrap_or_else(|| {
            Verdict::new(false, "the stream failed before this could be decided")
        });
        if let Some(decided) = choice.decided.filter(|_| revised) {
            self.answers
                .take_back(StreamAnswer::of(choice.has_failed, decided));
        }
        (choice.decided, choice.has_failed) = (Some(verdict.tool_call), undecided);
        out.emit(
            choice.number,
            Decision {
                tool_call: verdict.tool_call,
                checker: (&*self.name).into(),
                reason: (&verdict.reason).into(),
                event: self.events,
                bytes: choice.bytes,
                revised,
                undecided,
            },
        );
        self.answers
            .add(StreamAnswer::of(undecided, verdict.tool_call));
    }

    /// Handles a verdict of the checker: the first one, or one after a no that may revise it.
    #[cold]
    fn answer(&mut self, at: usize, verdict: Verdict, out: &mut dyn Sink) {
        match self.choices[at].decided {
            None => self.decide(at, Some(verdict), false, out),
            Some(false) if verdict.tool_call => self.decide(at, Some(verdict), true, out),
            Some(_) => {}
        }
    }

    /// Counts a decision that the input already contains, if the stream went through `tc-detect`
    /// with this checker before.
    // Not inlined, like all that few events need: its variables would be in the frame of each push.
    #[inline(never)]
    fn decided_before(&mut self, event: &Event<'_>) {
        let decision = Decision::read(event);
        if decision.checker != *self.name {
            return;
        }
        let at = self.choice(event.choice());
        let choice = &mut self.choices[at];
        if let Some(decided) = choice
            .decided
            .filter(|decided| decision.revised && *decided != decision.tool_call)
        {
            choice.decided = Some(decision.tool_call);
            self.answers
                .take_back(StreamAnswer::of(choice.has_failed, decided));
            self.answers
                .add(StreamAnswer::of(false, decision.tool_call));
        } else if choice.decided.is_none() {
            choice.decided = Some(decision.tool_call);
            self.answers
                .add(StreamAnswer::of(decision.undecided, decision.tool_call));
        }
    }

    /// Handles the end of the stream.
    #[inline(never)]
    fn stream_end(&mut self, event: &Event<'_>, out: &mut dyn Sink) {
        self.end(
            StreamEnding::Stream(StreamEnd::read(event).finish_reason),
            out,
        );
        self.others = true;
    }

    fn end(&mut self, ending: StreamEnding, out: &mut dyn Sink) {
        if self.choices.is_empty() {
            self.choice(0);
        }
        for at in 0..self.choices.len() {
            let choice = &mut self.choices[at];
            if choice.decided.is_none() {
                let verdict = choice.checker.end(ending);
                self.decide(at, verdict, false, out);
            } else if choice.decided == Some(false) && choice.checker.revises_no() {
                // The checker continued after the no: the text may have contained a call after all.
                if let Some(yes) = choice
                    .checker
                    .end(ending)
                    .filter(|verdict| verdict.tool_call)
                {
                    self.decide(at, Some(yes), true, out);
                }
            } else if choice.decided == Some(true)
                && choice.is_overturned(ending)
                && !ending.is_failure()
            {
                // A revision is written only at the end, because another call could still follow a
                // `retract`.
                self.decide(
                    at,
                    Some(Verdict::new(false, "every call was retracted")),
                    true,
                    out,
                );
            }
        }
    }
}

impl CheckedChoice {
    /// Passes an event to the checker while the event may still change the decision.
    #[inline(always)]
    fn ask(&mut self, event: &Event<'_>) -> Option<Verdict> {
        let needs_event = match self.decided {
            None => true,
            Some(true) => self.checker.reads_past_verdict(),
            Some(false) => self.checker.revises_no(),
        };
        needs_event.then(|| self.checker.push(event)).flatten()
    }

    /// Whether every call behind the yes was retracted; called once the stream has ended.
    fn is_overturned(&mut self, ending: StreamEnding) -> bool {
        if self.checker.reads_past_verdict() {
            self.checker.end(ending);
        }
        let is_overturned = self
            .checker
            .overturned()
            .unwrap_or_else(|| self.calls.any_retracted());
        is_overturned && self.calls.is_empty()
    }
}

impl Machine for Detect {
    fn push(&mut self, event: &Event<'_>, out: &mut dyn Sink) {
        self.events += 1;
        match event.kind() {
            Kind::StreamEnd => self.stream_end(event, out),
            Kind::Decision => self.decided_before(event),
            kind => {
                let at = self.choice(event.choice());
                let choice = &mut self.choices[at];
                match kind {
                    // Nearly every delta names no call.
                    Kind::ToolCallDelta | Kind::ToolCall if event.names_call() => {
                        choice.calls.begin(event);
                    }
                    Kind::Retract => choice.calls.retract(event),
                    Kind::ContentDelta | Kind::RefusalDelta if choice.decided.is_none() => {
                        choice.bytes += event.text_len() as u64;
                    }
                    // Events outside streams go only to the checker: a command (`cmd:`) reads them.
                    _ => {}
                }
                if let Some(verdict) = choice.ask(event) {
                    self.answer(at, verdict, out);
                }
            }
        }
        out.pass();
    }

    fn finish(&mut self, out: &mut dyn Sink) {
        self.end(StreamEnding::Cut, out);
    }

    /// A yes is the answer for all streams. A no is the answer only if no stream can follow, so
    /// that the upstream may stop.
    fn settled(&self) -> bool {
        self.answers.answer() == StreamAnswer::Yes
            || (!self.others
                && !self.choices.is_empty()
                && self.choices.iter().all(|c| c.decided == Some(false)))
    }
}

/// The answer for one stream, or for all streams together, as grep answers for several files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamAnswer {
    /// The stream does not call a tool.
    #[default]
    No,
    /// The stream failed before the decision.
    Undecided,
    /// The stream calls a tool.
    Yes,
}

impl StreamAnswer {
    fn of(is_undecided: bool, tool_call: bool) -> Self {
        match (is_undecided, tool_call) {
            (true, _) => StreamAnswer::Undecided,
            (false, true) => StreamAnswer::Yes,
            (false, false) => StreamAnswer::No,
        }
    }
}

/// The answers of the streams of a run. Clones share the counts: each machine adds the answer for
/// its stream.
#[derive(Clone, Debug, Default)]
pub struct CheckerAnswers {
    /// The number of streams with each answer.
    counts: Rc<Cell<[u64; 3]>>,
}

impl CheckerAnswers {
    /// Returns the answer for all streams so far: any yes wins, and undecided takes precedence over
    /// a no.
    pub fn answer(&self) -> StreamAnswer {
        let counts = self.counts.get();
        let some = |answer: &StreamAnswer| counts[*answer as usize] > 0;
        [StreamAnswer::Yes, StreamAnswer::Undecided]
            .into_iter()
            .find(some)
            .unwrap_or_default()
    }

    /// Adds the answer for an input without a stream.
    pub fn undecided(&self) {
        self.add(StreamAnswer::Undecided);
    }

    /// Adds the answer for a stream.
    fn add(&self, answer: StreamAnswer) {
        let mut counts = self.counts.get();
        counts[answer as usize] += 1;
        self.counts.set(counts);
    }

    /// Removes an answer that was revised.
    fn take_back(&self, answer: StreamAnswer) {
        let mut counts = self.counts.get();
        counts[answer as usize] = counts[answer as usize].saturating_sub(1);
        self.counts.set(counts);
    }
}

/// Maximum number of calls remembered per choice. If a choice has more calls,
/// [`RememberedCalls::is_empty`] never returns true.
const MAX: usize = 64;

/// The calls of a choice.
#[derive(Debug, Default)]
struct RememberedCalls {
    keys: Vec<EventCallKey>,
    has_more: bool,
    any_retracted: bool,
}

/// The id and the index by which events name a call.
#[derive(Debug, PartialEq, Eq)]
struct EventCallKey {
    id: Option<Box<str>>,
    index: Option<i64>,
}

impl RememberedCalls {
    /// Adds the call that a `tool_call_delta` or a `tool_call` names.
    #[inline(never)]
    fn begin(&mut self, event: &Event<'_>) {
        let head = EventCallHead::read(event);
        let key = EventCallKey {
            id: head.id.map(|id| id.str().as_ref().into()),
            index: head.index,
        };
        if self.has_more || self.keys.contains(&key) {
            return;
        }
        self.has_more = self.keys.len() == MAX;
        self.keys.push(key);
    }

    /// Removes the calls that a `retract` names.
    #[inline(never)]
    fn retract(&mut self, event: &Event<'_>) {
        let Retract { index, tool_id, .. } = Retract::read(event);
        let id = tool_id.map(Text::str);
        self.keys.retain(|key| {
            !(id.is_some() && key.id.as_deref() == id.as_deref()
                || index.is_some() && key.index == index)
        });
        self.any_retracted = true;
    }

    /// Whether a `retract` has arrived.
    fn any_retracted(&self) -> bool {
        self.any_retracted
    }

    /// Whether every call was retracted, or no call was seen.
    fn is_empty(&self) -> bool {
        self.keys.is_empty() && !self.has_more
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::Collect;

    fn run(checker: &'static str, lines: &[&str]) -> (Vec<String>, StreamAnswer) {
        let answers = CheckerAnswers::default();
        let factory = crate::checkers(checker, &crate::CallFilter::default())
            .expect("a checker of the table");
        let mut scanner = event::Scanner::default();
        let first = scanner.read(lines[0]).expect("an event");
        let mut machine = Detect::new(checker.into(), factory(&first), answers.clone(), &first);
        let out = Collect::run(&mut machine, lines);
        (
            out.into_iter()
                .filter(|l| l.contains("\"decision\""))
                .collect(),
            answers.answer(),
        )
    }

    const START: &str = r#"{"type":"stream_start","v":1}"#;
    const TEXT: &str = r#"{"type":"content_delta","text":"Let me look."}"#;
    const CALL: &str = r#"{"type":"tool_call_delta","index":0,"tool_id":"a","tool_name":"f"}"#;
    const END: &str = r#"{"type":"stream_end","finish_reason":"stop"}"#;
    const CUT: &str = r#"{"type":"stream_end","finish_reason":"cut"}"#;

    #[test]
    fn each_checker_decides_at_its_event() {
        for (checker, lines, yes, event, answer) in [
            (
                "full",
                &[START, TEXT, CALL, END][..],
                true,
                3,
                StreamAnswer::Yes,
            ),
            ("full", &[START, TEXT, END], false, 3, StreamAnswer::No),
            (
                "first-chunk",
                &[START, TEXT, CALL, END],
                false,
                2,
                StreamAnswer::No,
            ),
            (
                "lookahead:12",
                &[START, TEXT, CALL, END],
                false,
                2,
                StreamAnswer::No,
            ),
            (
                "lookahead:13",
                &[START, TEXT, CALL, END],
                true,
                3,
                StreamAnswer::Yes,
            ),
            (
                "full",
                &[START, TEXT, CUT],
                false,
                3,
                StreamAnswer::Undecided,
            ),
            ("full", &[START, TEXT], false, 2, StreamAnswer::Undecided),
            ("full", &[START, CALL, CUT], true, 2, StreamAnswer::Yes),
        ] {
            let (out, got) = run(checker, lines);
            assert_eq!(out.len(), 1, "{checker} {lines:?}");
            assert!(
                out[0].contains(&format!("\"tool_call\":{yes}"))
                    && out[0].contains(&format!("\"event\":{event},")),
                "{out:?}"
            );
            assert_eq!(got, answer, "{checker} {lines:?}");
        }
    }

    #[test]
    fn white_space_alone_is_no_text_to_look_ahead_over() {
        let white = r#"{"type":"content_delta","text":"\n \u3000\n"}"#;
        let five = r#"{"type":"content_delta","text":" a b "}"#;
        for (checker, lines, yes, event) in [
            (
                "lookahead:1",
                &[START, white, white, CALL, END][..],
                true,
                4,
            ),
            ("lookahead:0", &[START, white, CALL, END], true, 3),
            ("lookahead:0", &[START, white, five, CALL, END], false, 3),
            ("lookahead:3", &[START, white, five, CALL, END], false, 3),
            (
                "lookahead:4",
                &[START, white, five, white, CALL, END],
                true,
                5,
            ),
            (
                "lookahead:8",
                &[START, five, white, five, CALL, END],
                false,
                4,
            ),
            (
                "lookahead:12",
                &[START, five, white, five, CALL, END],
                false,
                4,
            ),
            (
                "lookahead:13",
                &[START, five, white, five, CALL, END],
                true,
                5,
            ),
            ("first-chunk", &[START, white, CALL, END], false, 2),
        ] {
            let (out, _) = run(checker, lines);
            let want = (
                format!("\"tool_call\":{yes}"),
                format!("\"event\":{event},"),
            );
            assert!(
                out[0].contains(&want.0) && out[0].contains(&want.1),
                "{checker} {lines:?}: {out:?}"
            );
        }
    }

    #[test]
    fn a_retract_overturns_only_when_no_call_is_left() {
        let retract = r#"{"type":"retract","index":0,"reason":"not a call"}"#;
        let (out, answer) = run("full", &[START, CALL, retract, END]);
        assert!(
            out.len() == 2
                && out[1].contains("\"tool_call\":false")
                && out[1].contains("\"revised\":true"),
            "{out:?}"
        );
        assert_eq!(answer, StreamAnswer::No);
        let decided: Vec<&str> = [START, &out[0], CALL, retract, &out[1], END].into();
        assert_eq!(
            run("full", &decided),
            (out.clone(), StreamAnswer::No),
            "twice is once"
        );
        let other = r#"{"type":"tool_call_delta","index":1,"tool_id":"b","tool_name":"g"}"#;
        assert_eq!(run("full", &[START, CALL, retract, other, END]).0.len(), 1);
    }
}
