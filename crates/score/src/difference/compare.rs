//! Compares conversations, turns, choices and calls. Each list is aligned at its start and its end.

use super::found::{Difference, Locus, Side, What};
use super::recording::RecordedArguments;
use super::recording::{
    Passage, RecordedCall, RecordedChoice, RecordedConversation, RecordedTurn, RecordedWord,
    Recording,
};
use super::text::{self, DiffSettings};
use super::value;
use crate::forms::counted;
use event::Raw;
use std::collections::{BTreeSet, HashMap};

/// Collects differences up to a limit, each with the current place of the comparison.
#[derive(Debug)]
pub(super) struct CompareWalk<'s> {
    settings: &'s DiffSettings<'s>,
    at: Locus,
    limit: usize,
    /// Whether both recordings can contain results.
    has_results: bool,
    pub found: Vec<Difference>,
}

/// An item of each recording; `None` if the recording lacks it.
type Pair<'r, T> = [Option<&'r T>; 2];

impl<'s> CompareWalk<'s> {
    /// Creates a walk that stops after `limit` differences.
    pub(super) fn new(settings: &'s DiffSettings<'s>, limit: usize, has_results: bool) -> Self {
        CompareWalk {
            settings,
            at: Locus::default(),
            limit,
            has_results,
            found: Vec::new(),
        }
    }

    /// Whether the limit is reached.
    fn is_full(&self) -> bool {
        self.found.len() >= self.limit
    }

    /// Adds a difference at the current place.
    fn add(&mut self, what: What, sides: [Side; 2]) {
        self.push(what, None, sides);
    }

    fn push(&mut self, what: What, character: Option<u64>, [a, b]: [Side; 2]) {
        if !self.is_full() {
            self.found.push(Difference {
                at: self.at.clone(),
                what,
                character,
                a,
                b,
            });
        }
    }

    /// Adds a difference between two items; a missing item has an empty side.
    fn add_pair<T>(&mut self, what: What, pair: Pair<'_, T>, show: impl Fn(&T) -> Side) {
        self.add(
            what,
            pair.map(|item| item.map_or_else(Side::default, &show)),
        );
    }

    /// Compares two lists. Lists of different lengths are aligned by their equal items at the start
    /// and at the end. `take` receives each remaining pair, with the position of its items, counted
    /// from 1.
    fn list<T>(
        &mut self,
        a: &[T],
        b: &[T],
        take: impl for<'l> Fn(&mut CompareWalk<'s>, u64, Pair<'l, T>),
    ) {
        let is_equal = |at: usize, bt: usize| {
            let mut probe = CompareWalk::new(self.settings, 1, self.has_results);
            take(&mut probe, 0, [a.get(at), b.get(bt)]);
            probe.found.is_empty()
        };
        let shorter = a.len().min(b.len());
        let (mut head, mut tail) = (0, 0);
        if a.len() != b.len() {
            head = (0..shorter).take_while(|at| is_equal(*at, *at)).count();
            tail = (1..=shorter - head)
                .take_while(|back| is_equal(a.len() - back, b.len() - back))
                .count();
        }
        let a = &a[head..a.len() - tail];
        let b = &b[head..b.len() - tail];
        for at in 0..a.len().max(b.len()) {
            if self.is_full() {
                return;
            }
            take(self, (head + at) as u64 + 1, [a.get(at), b.get(at)]);
        }
    }

    /// Compares two recordings.
    pub(super) fn recordings(&mut self, a: &Recording, b: &Recording) {
        let pairs = pairs(&a.conversations, &b.conversations);
        let are_several = pairs.len() > 1;
        for pair in pairs {
            let name = pair
                .iter()
                .flatten()
                .next()
                .and_then(|one| one.name.clone());
            self.at.stream = name.filter(|_| are_several);
            match pair {
                [Some(a), Some(b)] => self.list(&a.turns, &b.turns, CompareWalk::turn),
                pair => self.add_pair(What::Conversation, pair, |one| {
                    let turns = counted(one.turns.len() as u64, "turn");
                    Side::of(turns, one.turns.first().map(|turn| turn.line))
                }),
            }
            self.at.turn = 0;
        }
    }

    fn turn(&mut self, at: u64, pair: Pair<'_, RecordedTurn>) {
        self.at.turn = at;
        let [Some(a), Some(b)] = pair else {
            return self.add_pair(What::Turn, pair, |turn| {
                let summary = turn.choices.first().map_or("empty".to_owned(), sketch);
                Side::of(summary, Some(turn.line))
            });
        };
        if self.settings.prompts {
            for at in 0..a.prompts.len().max(b.prompts.len()) {
                self.prompt([a.prompts.get(at), b.prompts.get(at)]);
            }
        }
        let choices = a.choices.iter().chain(&b.choices);
        let numbers: BTreeSet<u32> = choices.map(|choice| choice.number).collect();
        for number in numbers {
            self.at.choice = number;
            let turns = [a, b];
            let pair = turns.map(|turn| turn.choices.iter().find(|one| one.number == number));
            match pair {
                [Some(a), Some(b)] => self.choice(a, b),
                _ => self.add(
                    What::Choice,
                    [0, 1].map(|at| {
                        pair[at].map_or_else(Side::default, |choice| {
                            let call = choice.calls.first().map(|call| call.notes.line);
                            let line = choice.text.line(0).or(call).unwrap_or(turns[at].line);
                            Side::of(sketch(choice), Some(line))
                        })
                    }),
                ),
            }
        }
        self.at.choice = 0;
        if a.finish.is_some() && b.finish.is_some() {
            self.word(What::Finish, [&a.finish, &b.finish].map(Option::as_ref));
        }
        for (what, a, b) in [
            (What::ServerItem, &a.server_items, &b.server_items),
            (What::Error, &a.errors, &b.errors),
        ] {
            self.list(a, b, |walk, _, pair| walk.word(what.clone(), pair));
        }
        if self.has_results {
            for at in 0..a.stray_results.len().max(b.stray_results.len()) {
                let pair = [a, b].map(|turn| turn.stray_results.get(at));
                let stray = pair.iter().flatten().next();
                let tool = stray.map(|stray| stray.call().name.clone());
                self.results(What::StrayResult(tool.unwrap_or_default()), pair);
            }
        }
        if self.settings.usage {
            let count = |turn: &'_ RecordedTurn, name: &str| {
                turn.usage.iter().position(|(known, _)| *known == name)
            };
            let more = b.usage.iter().filter(|(name, _)| count(a, name).is_none());
            for (name, _) in a.usage.iter().chain(more) {
                let pair = [a, b].map(|turn| count(turn, name).map(|at| &turn.usage[at].1));
                self.word(What::Usage((*name).to_owned()), pair);
            }
        }
    }

    fn prompt(&mut self, pair: Pair<'_, (String, Passage)>) {
        let none = (String::new(), Passage::default());
        let role = pair.iter().flatten().next().map(|(role, _)| role.clone());
        let what = What::Prompt(role.unwrap_or_default());
        let [a, b] = pair.map(|prompt| prompt.unwrap_or(&none));
        if a.0 == b.0 || a.1.text.is_empty() || b.1.text.is_empty() {
            self.passage(what, &a.1, &b.1);
        } else {
            let side = |(role, text): &(String, Passage)| Side::of(text::name(role), text.line(0));
            self.add(what, [side(a), side(b)]);
        }
    }

    fn choice(&mut self, a: &RecordedChoice, b: &RecordedChoice) {
        self.answers(a, b);
        if a.message.is_some() || b.message.is_some() {
            self.at.in_message = true;
            let has_results = std::mem::take(&mut self.has_results);
            let [a, b] = [a, b].map(|choice| choice.message.as_deref().unwrap_or(choice));
            self.answers(a, b);
            self.has_results = has_results;
            self.at.in_message = false;
        }
    }

    /// Compares the parts that both a stream and a message have.
    fn answers(&mut self, a: &RecordedChoice, b: &RecordedChoice) {
        if self.settings.reasoning {
            self.passage(What::Reasoning, &a.reasoning, &b.reasoning);
        }
        self.passage(What::Text, &a.text, &b.text);
        self.passage(What::Refusal, &a.refusal, &b.refusal);
        self.list(&a.calls, &b.calls, CompareWalk::call);
        self.at.call = None;
    }

    fn call(&mut self, at: u64, pair: Pair<'_, RecordedCall>) {
        self.at.call = Some(at);
        let [Some(a), Some(b)] = pair else {
            let show = |call: &RecordedCall| Side::of(call.request(), Some(call.notes.line));
            return self.add_pair(What::Call, pair, show);
        };
        if a.call().name != b.call().name {
            // Arguments of different tools cannot be compared.
            let name = |call: &RecordedCall| text::name(&call.call().name);
            let show = |call: &RecordedCall| Side::of(name(call), Some(call.notes.line));
            return self.add_pair(What::Tool, pair, show);
        }
        let lines = [a, b].map(|call| call.notes.line);
        arguments(self, a.written(), b.written(), lines);
        let counts = |one: &RecordedCall, other: &RecordedCall| {
            one.error() != Some("schema") || other.notes.has_schema
        };
        if a.error() != b.error() && counts(a, b) && counts(b, a) {
            self.add_pair(What::CallError, pair, |call| match call.error() {
                Some(code) => Side::of(text::name(code), Some(call.notes.line)),
                None => Side::default(),
            });
        }
        if self.has_results {
            self.results(What::Result, pair);
            let [a, b] = [a, b].map(|call| &call.notes.tool_message);
            self.passage(What::ToolMessage, a, b);
        }
    }

    fn results(&mut self, what: What, pair: Pair<'_, RecordedCall>) {
        let results = pair.map(|call| call.and_then(RecordedCall::result));
        let results = results.each_ref().map(Option::as_ref);
        self.word(what, results.map(|result| result.map(|(status, _)| status)));
        if let [Some((_, a)), Some((_, b))] = results {
            self.passage(What::Output, a, b);
        }
    }

    /// Compares two texts.
    fn passage(&mut self, what: What, a: &Passage, b: &Passage) {
        let Some((at, bt)) = text::first_difference(&a.text, &b.text, self.settings) else {
            return;
        };
        if a.text.is_empty() || b.text.is_empty() {
            let pair = [a, b].map(|passage| Some(passage).filter(|one| !one.text.is_empty()));
            return self.add_pair(what, pair, |passage| {
                Side::of(text::beginning(&passage.text), passage.line(0))
            });
        }
        let side =
            |passage: &Passage, at| Side::of(text::around(&passage.text, at), passage.line(at));
        self.push(
            what,
            Some(character(&a.text, at)),
            [side(a, at), side(b, bt)],
        );
    }

    /// Compares two strings from the lines `lines`; short ones are shown whole.
    fn string(&mut self, what: What, [a, b]: [&str; 2], lines: [u64; 2]) {
        let Some((at, bt)) = text::first_difference(a, b, self.settings) else {
            return;
        };
        let sides = |a, b| [Side::of(a, Some(lines[0])), Side::of(b, Some(lines[1]))];
        if text::is_short(a) && text::is_short(b) {
            return self.add(what, sides(text::beginning(a), text::beginning(b)));
        }
        let sides = sides(text::around(a, at), text::around(b, bt));
        self.push(what, Some(character(a, at)), sides);
    }

    fn word(&mut self, what: What, pair: Pair<'_, RecordedWord>) {
        let [a, b] = pair.map(|word| word.map(|word| &word.text));
        if a != b {
            let show = |word: &RecordedWord| Side::of(text::name(&word.text), Some(word.line));
            self.add_pair(what, pair, show);
        }
    }
}

/// Compares the arguments of two calls, which come from the lines `lines`.
fn arguments(
    walk: &mut CompareWalk<'_>,
    a: RecordedArguments<'_>,
    b: RecordedArguments<'_>,
    lines: [u64; 2],
) {
    let whole = What::Argument(String::new());
    match (a.json, b.json) {
        (Some(a), Some(b)) => values(walk, &mut String::new(), [Some(a), Some(b)], lines),
        (None, None) => walk.string(whole, [a.text, b.text], lines),
        _ => {
            let side = |arguments: RecordedArguments<'_>, line| {
                let shown = arguments.json.map_or_else(
                    || format!("{}, which is not JSON,", text::beginning(arguments.text)),
                    value::shown,
                );
                Side::of(shown, Some(line))
            };
            walk.add(whole, [side(a, lines[0]), side(b, lines[1])]);
        }
    }
}

/// Compares two values at `path`; `None` means that a recording lacks the value. The recursion
/// depth is limited by the nesting limit of values.
fn values(
    walk: &mut CompareWalk<'_>,
    path: &mut String,
    pair: [Option<Raw<'_>>; 2],
    lines: [u64; 2],
) {
    let length = path.len();
    if let [Some(a), Some(b)] = pair {
        if walk.is_full() || json::equal(a, b) {
            return;
        }
        if a.is_object() && b.is_object() {
            let x = value::members(a);
            let y = value::members(b);
            let more = y.iter().filter(|(key, _)| !x.contains_key(*key));
            for (key, _) in x.iter().chain(more) {
                value::push_key(path, key);
                let pair = [&x, &y].map(|members| members.get(key).copied());
                values(walk, path, pair, lines);
                path.truncate(length);
            }
            return;
        }
        if a.is_array() && b.is_array() {
            let mut x = a.items();
            let mut y = b.items();
            for at in 0.. {
                let pair = [x.next(), y.next()];
                if pair.iter().all(Option::is_none) {
                    return;
                }
                path.push_str(&format!("[{at}]"));
                values(walk, path, pair, lines);
                path.truncate(length);
            }
        }
        if let (Some(a), Some(b)) = (a.str(), b.str()) {
            return walk.string(What::Argument(path.clone()), [&a, &b], lines);
        }
        let is_number = |raw: Raw<'_>| raw.f64().is_some();
        if is_number(a)
            && is_number(b)
            && text::first_difference(a.text(), b.text(), walk.settings).is_none()
        {
            return;
        }
    }
    let [a, b] = [0, 1].map(|at| {
        let side = |value| Side::of(value::shown(value), Some(lines[at]));
        pair[at].map_or_else(Side::default, side)
    });
    walk.add(What::Argument(path.clone()), [a, b]);
}

/// The number of the character at the byte `at`, from 1 on.
fn character(text: &str, at: usize) -> u64 {
    text[..at].chars().count() as u64 + 1
}

/// Conversations that belong together: those of one name, if both recordings have the same names;
/// else in their order.
fn pairs<'r>(
    a: &'r [RecordedConversation],
    b: &'r [RecordedConversation],
) -> Vec<Pair<'r, RecordedConversation>> {
    let names =
        |list: &'r [RecordedConversation]| -> HashMap<Option<&'r str>, &'r RecordedConversation> {
            list.iter().map(|one| (one.name.as_deref(), one)).collect()
        };
    let left = names(a);
    let right = names(b);
    let is_known = |name: &Option<&str>| right.contains_key(name);
    if left.len() == a.len() && left.len() == right.len() && left.keys().all(is_known) {
        let pair =
            |one: &'r RecordedConversation| [Some(one), right.get(&one.name.as_deref()).copied()];
        return a.iter().map(pair).collect();
    }
    let longer = a.len().max(b.len());
    (0..longer).map(|at| [a.get(at), b.get(at)]).collect()
}

/// Returns a short description of a choice: its text and its calls.
fn sketch(choice: &RecordedChoice) -> String {
    let text = Some(&choice.text.text).filter(|text| !text.is_empty());
    let calls = match &choice.calls[..] {
        [] => None,
        [call] => Some(call.request()),
        calls => Some(counted(calls.len() as u64, "call")),
    };
    match (text.map(|text| text::beginning(text)), calls) {
        (Some(text), Some(calls)) => format!("{text} with {calls}"),
        (Some(only), None) | (None, Some(only)) => only,
        (None, None) => "empty".to_owned(),
    }
}
