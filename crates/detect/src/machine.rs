//! The machine of `tc-detect`: one decision for each choice of a stream, written as early as it can be.

use crate::checker::{CallHead, Checker, End, Factory, Verdict};
use event::payload::{ContentDelta, Decision, RefusalDelta, Retract, StreamEnd};
use event::{Choices, Event, Kind, Machine, Sink, Text};
use std::cell::Cell;
use std::rc::Rc;

/// What all streams together answered, as grep answers over several files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answer {
    /// No stream calls a tool.
    #[default]
    No,
    /// A stream failed before it was decided, and no stream is known to call a tool.
    Undecided,
    /// A stream calls a tool.
    Yes,
}

/// The answer of all machines of a run; each adds to it.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// How many streams gave each answer.
    counts: Rc<Cell<[u64; 3]>>,
}

impl Tally {
    /// The answer so far.
    pub fn answer(&self) -> Answer {
        let counts = self.counts.get();
        let some = |answer: &Answer| counts[*answer as usize] > 0;
        [Answer::Yes, Answer::Undecided].into_iter().find(some).unwrap_or_default()
    }

    /// An input could not be asked about, since it holds no stream.
    pub fn undecided(&self) {
        self.add(Answer::Undecided);
    }

    /// A yes of any stream outweighs everything, what is undecided outweighs a no.
    fn add(&self, answer: Answer) {
        let mut counts = self.counts.get();
        counts[answer as usize] += 1;
        self.counts.set(counts);
    }

    /// A yes was overturned.
    fn take_back(&self) {
        let mut counts = self.counts.get();
        counts[Answer::Yes as usize] = counts[Answer::Yes as usize].saturating_sub(1);
        self.counts.set(counts);
    }
}

/// A call that has begun, by whatever names it.
#[derive(Debug, PartialEq, Eq)]
struct Begun {
    id: Option<Box<str>>,
    index: Option<i64>,
}

/// How many calls of a choice are remembered for a `retract`; a choice with more is never left without any.
const REMEMBERED: usize = 64;

/// One choice of the stream.
struct Choice {
    number: u32,
    checker: Box<dyn Checker>,
    /// Bytes of content text until the decision.
    bytes: u64,
    decided: Option<bool>,
    /// The stream failed before that.
    failed: bool,
    begun: Vec<Begun>,
    /// A call was taken back, or there were too many to remember.
    retracted: bool,
    many: bool,
}

/// Decides about one stream.
pub struct Detect {
    name: Rc<str>,
    factory: Factory,
    tally: Tally,
    choices: Choices<Choice>,
    events: u64,
    /// Other streams may follow: this one has a name, or has ended while its input has not, or reading on costs nothing.
    others: bool,
}

impl std::fmt::Debug for Detect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Detect").field("checker", &self.name).field("events", &self.events).finish_non_exhaustive()
    }
}

impl Detect {
    /// A machine for the stream that `first` begins. `factory` makes the checker of each choice, `name` is what the user calls it.
    pub fn new(name: Rc<str>, factory: Factory, tally: Tally, first: &Event<'_>) -> Self {
        Detect { name, factory, tally, choices: Choices::default(), events: 0, others: first.stream().is_some() }
    }

    /// With `others`, streams without a name follow each other in the input: a no to this one is not yet the answer.
    #[must_use]
    pub fn followed(mut self, others: bool) -> Self {
        self.others |= others;
        self
    }

    /// Whether the first choice calls a tool, once that is decided; `None` also where it stayed undecided.
    pub fn decided(&self) -> Option<bool> {
        self.choices.find(0).map(|at| &self.choices[at]).filter(|c| !c.failed).and_then(|c| c.decided)
    }

    fn choice(&mut self, number: u32) -> usize {
        let factory = &self.factory;
        self.choices.place(number, || Choice {
            number,
            checker: factory(),
            bytes: 0,
            decided: None,
            failed: false,
            begun: Vec::new(),
            retracted: false,
            many: false,
        })
    }

    /// Writes a decision; `None` is a stream that failed before one could be made.
    fn decide(&mut self, at: usize, verdict: Option<Verdict>, revised: bool, out: &mut dyn Sink) {
        let choice = &mut self.choices[at];
        let undecided = verdict.is_none();
        let verdict = verdict.unwrap_or_else(|| Verdict::new(false, "the stream failed before this could be decided"));
        (choice.decided, choice.failed) = (Some(verdict.tool_call), undecided);
        if revised {
            self.tally.take_back();
        }
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
        self.tally.add(match (undecided, verdict.tool_call) {
            (true, _) => Answer::Undecided,
            (false, true) => Answer::Yes,
            (false, false) => Answer::No,
        });
    }

    /// Shows an event to the checker while it matters.
    #[inline]
    fn ask(&mut self, at: usize, event: &Event<'_>, out: &mut dyn Sink) {
        let choice = &mut self.choices[at];
        match choice.decided {
            None => {
                if let Some(verdict) = choice.checker.push(event) {
                    self.decide(at, Some(verdict), false, out);
                }
            }
            Some(true) if choice.checker.follows() => drop(choice.checker.push(event)),
            Some(_) => {}
        }
    }

    /// Takes a decision that is in the input already: this checker made it when the stream went through it before.
    fn decided_before(&mut self, number: u32, decision: &Decision<'_>) {
        let at = self.choice(number);
        let choice = &mut self.choices[at];
        if choice.decided == Some(true) && decision.revised {
            choice.decided = Some(false);
            self.tally.take_back();
            self.tally.add(Answer::No);
        } else if choice.decided.is_none() {
            choice.decided = Some(decision.tool_call);
            self.tally.add(match (decision.undecided, decision.tool_call) {
                (true, _) => Answer::Undecided,
                (false, true) => Answer::Yes,
                (false, false) => Answer::No,
            });
        }
    }

    fn end(&mut self, end: End, out: &mut dyn Sink) {
        if self.choices.is_empty() {
            self.choice(0);
        }
        for at in 0..self.choices.len() {
            let choice = &mut self.choices[at];
            if choice.decided.is_none() {
                let verdict = choice.checker.end(end);
                self.decide(at, verdict, false, out);
            } else if choice.decided == Some(true) && choice.overturned(end) && !end.is_failure() {
                // Only now: after a retract another call could still have come.
                self.decide(at, Some(Verdict::new(false, "every call was retracted")), true, out);
            }
        }
    }
}

impl Choice {
    /// Remembers the calls that have begun, for [`Choice::retract`].
    fn begin(&mut self, event: &Event<'_>) {
        let head = CallHead::read(event);
        if !head.is_named {
            return;
        }
        let begun = Begun { id: head.id.map(|id| id.str().as_ref().into()), index: head.index };
        if self.many || self.begun.contains(&begun) {
            return;
        }
        self.many = self.begun.len() == REMEMBERED;
        self.begun.push(begun);
    }

    /// Whether no call is left of those that made the yes, now that the stream has ended.
    fn overturned(&mut self, end: End) -> bool {
        if self.checker.follows() {
            self.checker.end(end);
        }
        let none = self.begun.is_empty() && !self.many;
        self.checker.overturned().map_or(self.retracted && none, |overturned| overturned && none)
    }

    fn retract(&mut self, event: &Event<'_>) {
        let Retract { index, tool_id, .. } = Retract::read(event);
        let id = tool_id.map(Text::str);
        self.begun
            .retain(|b| !(id.is_some() && b.id.as_deref() == id.as_deref() || index.is_some() && b.index == index));
        self.retracted = true;
    }
}

impl Machine for Detect {
    fn push(&mut self, event: &Event<'_>, out: &mut dyn Sink) {
        self.events += 1;
        match event.kind() {
            Kind::StreamEnd => {
                self.end(End::Stream(StreamEnd::read(event).finish_reason), out);
                self.others = true;
            }
            // A decision that is in the input already is this checker's own, made when the stream came by here before.
            Kind::Decision => {
                let decision = Decision::read(event);
                if decision.checker == *self.name {
                    self.decided_before(event.choice(), &decision);
                }
            }
            Kind::ContentDelta
            | Kind::RefusalDelta
            | Kind::Thinking
            | Kind::ToolCallDelta
            | Kind::ToolCall
            | Kind::Retract
            | Kind::Error => {
                let at = self.choice(event.choice());
                let choice = &mut self.choices[at];
                match event.kind() {
                    Kind::ToolCallDelta | Kind::ToolCall => choice.begin(event),
                    Kind::Retract => choice.retract(event),
                    Kind::ContentDelta if choice.decided.is_none() => {
                        choice.bytes += ContentDelta::read(event).text.len() as u64;
                    }
                    Kind::RefusalDelta if choice.decided.is_none() => {
                        choice.bytes += RefusalDelta::read(event).text.len() as u64;
                    }
                    _ => {}
                }
                self.ask(at, event, out);
            }
            // What belongs to no choice is of interest to a command that checks (`cmd:`) alone.
            _ => {
                let at = self.choice(event.choice());
                self.ask(at, event, out);
            }
        }
        out.pass();
    }

    fn finish(&mut self, out: &mut dyn Sink) {
        self.end(End::Cut, out);
    }

    /// A yes is the answer for all streams. A no settles only the unnamed stream while it runs: its upstream need not go on.
    fn settled(&self) -> bool {
        self.tally.answer() == Answer::Yes
            || (!self.others && !self.choices.is_empty() && self.choices.iter().all(|c| c.decided == Some(false)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::Collect;

    fn run(checker: &'static str, lines: &[&str]) -> (Vec<String>, Answer) {
        let tally = Tally::default();
        let factory = crate::factory(checker, &crate::Calls::default()).expect("a checker of the table");
        let mut scanner = event::Scanner::default();
        let first = scanner.read(lines[0]).expect("an event");
        let mut machine = Detect::new(checker.into(), factory, tally.clone(), &first);
        let out = Collect::run(&mut machine, lines);
        (out.into_iter().filter(|l| l.contains("\"decision\"")).collect(), tally.answer())
    }

    const START: &str = r#"{"type":"stream_start","v":1}"#;
    const TEXT: &str = r#"{"type":"content_delta","text":"Let me look."}"#;
    const CALL: &str = r#"{"type":"tool_call_delta","index":0,"tool_id":"a","tool_name":"f"}"#;
    const END: &str = r#"{"type":"stream_end","finish_reason":"stop"}"#;
    const CUT: &str = r#"{"type":"stream_end","finish_reason":"cut"}"#;

    #[test]
    fn each_checker_decides_at_its_event() {
        for (checker, lines, yes, event, answer) in [
            ("full", &[START, TEXT, CALL, END][..], true, 3, Answer::Yes),
            ("full", &[START, TEXT, END], false, 3, Answer::No),
            ("first-chunk", &[START, TEXT, CALL, END], false, 2, Answer::No),
            ("lookahead:12", &[START, TEXT, CALL, END], false, 2, Answer::No),
            ("lookahead:13", &[START, TEXT, CALL, END], true, 3, Answer::Yes),
            ("full", &[START, TEXT, CUT], false, 3, Answer::Undecided),
            ("full", &[START, TEXT], false, 2, Answer::Undecided),
            ("full", &[START, CALL, CUT], true, 2, Answer::Yes),
        ] {
            let (out, got) = run(checker, lines);
            assert_eq!(out.len(), 1, "{checker} {lines:?}");
            assert!(
                out[0].contains(&format!("\"tool_call\":{yes}")) && out[0].contains(&format!("\"event\":{event},")),
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
            ("lookahead:1", &[START, white, white, CALL, END][..], true, 4),
            ("lookahead:0", &[START, white, CALL, END], true, 3),
            ("lookahead:0", &[START, white, five, CALL, END], false, 3),
            ("lookahead:3", &[START, white, five, CALL, END], false, 3),
            ("lookahead:4", &[START, white, five, white, CALL, END], true, 5),
            ("lookahead:8", &[START, five, white, five, CALL, END], false, 4),
            ("lookahead:12", &[START, five, white, five, CALL, END], false, 4),
            ("lookahead:13", &[START, five, white, five, CALL, END], true, 5),
            ("first-chunk", &[START, white, CALL, END], false, 2),
        ] {
            let (out, _) = run(checker, lines);
            let want = (format!("\"tool_call\":{yes}"), format!("\"event\":{event},"));
            assert!(out[0].contains(&want.0) && out[0].contains(&want.1), "{checker} {lines:?}: {out:?}");
        }
    }

    #[test]
    fn a_retract_overturns_only_when_no_call_is_left() {
        let retract = r#"{"type":"retract","index":0,"reason":"not a call"}"#;
        let (out, answer) = run("full", &[START, CALL, retract, END]);
        assert!(
            out.len() == 2 && out[1].contains("\"tool_call\":false") && out[1].contains("\"revised\":true"),
            "{out:?}"
        );
        assert_eq!(answer, Answer::No);
        let decided: Vec<&str> = [START, &out[0], CALL, retract, &out[1], END].into();
        assert_eq!(run("full", &decided), (out.clone(), Answer::No), "twice is once");
        let other = r#"{"type":"tool_call_delta","index":1,"tool_id":"b","tool_name":"g"}"#;
        assert_eq!(run("full", &[START, CALL, retract, other, END]).0.len(), 1);
    }
}
