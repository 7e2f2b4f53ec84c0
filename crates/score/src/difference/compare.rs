//! The comparison: conversations, turns, choices and calls, each list aligned at its beginning and
//! its end.

use super::arguments;
use super::found::{Side, What};
use super::recording::{Call, Choice, Conversation, Passage, Recording, ToolResult, Turn, Word};
use super::text;
use super::walk::{Walk, align};
use std::collections::{BTreeSet, HashMap};

impl Walk<'_> {
    /// Compares two recordings.
    pub fn recordings(&mut self, a: &Recording, b: &Recording) {
        let results = a.holds_results && b.holds_results;
        let pairs = pairs(&a.conversations, &b.conversations);
        let are_several = pairs.len() > 1;
        for pair in pairs {
            if self.is_full() {
                return;
            }
            let name = pair
                .0
                .or(pair.1)
                .and_then(|conversation| conversation.name.clone());
            self.at.stream = name.filter(|_| are_several);
            match pair {
                (Some(a), Some(b)) => self.conversations(a, b, results),
                (a, b) => {
                    let side = |one: Option<&Conversation>| {
                        one.map_or_else(Side::default, |one| {
                            let turns = counted(one.turns.len(), "turn");
                            Side::of(turns, one.turns.first().map(|turn| turn.line))
                        })
                    };
                    self.add(What::Conversation, side(a), side(b));
                }
            }
        }
    }

    fn conversations(&mut self, a: &Conversation, b: &Conversation, results: bool) {
        let (a, b) = (&a.turns[..], &b.turns[..]);
        let (head, tail) = align(a.len(), b.len(), |at, bt| {
            self.is_equal(|probe| probe.turns(&a[at], &b[bt], results))
        });
        each(a, b, head, tail, |at, pair| {
            self.at.turn = at;
            match pair {
                (Some(a), Some(b)) => self.turns(a, b, results),
                (a, b) => {
                    let side = |turn: Option<&Turn>| {
                        turn.map_or_else(Side::default, |turn| {
                            Side::of(summary(turn), Some(turn.line))
                        })
                    };
                    self.add(What::Turn, side(a), side(b));
                }
            }
            !self.is_full()
        });
        self.at.turn = 0;
    }

    fn turns(&mut self, a: &Turn, b: &Turn, results: bool) {
        if self.settings.prompts {
            each(&a.prompts, &b.prompts, 0, 0, |_, (a, b)| {
                let none = (String::new(), Passage::default());
                let role = a.or(b).map_or_else(String::new, |(role, _)| role.clone());
                let (a, b) = (a.unwrap_or(&none), b.unwrap_or(&none));
                if a.0 == b.0 || a.1.is_empty() || b.1.is_empty() {
                    self.passage(What::Prompt(role), &a.1, &b.1);
                } else {
                    let side =
                        |(role, text): &(String, Passage)| Side::of(text::name(role), text.line(0));
                    self.add(What::Prompt(role), side(a), side(b));
                }
                !self.is_full()
            });
        }
        let numbers: BTreeSet<u32> = a
            .choices
            .iter()
            .chain(&b.choices)
            .map(|choice| choice.number)
            .collect();
        for number in numbers {
            self.at.choice = number;
            let find = |turn: &'_ Turn| {
                turn.choices
                    .binary_search_by_key(&number, |choice| choice.number)
                    .ok()
            };
            match (find(a), find(b)) {
                (Some(at), Some(bt)) => self.choices(&a.choices[at], &b.choices[bt], results),
                (at, bt) => {
                    let side = |turn: &Turn, at: Option<usize>| {
                        at.map_or_else(Side::default, |at| {
                            let choice = &turn.choices[at];
                            let line = choice
                                .text
                                .line(0)
                                .or(choice.calls.first().map(|call| call.line));
                            Side::of(sketch(choice), line.or(Some(turn.line)))
                        })
                    };
                    self.add(What::Choice, side(a, at), side(b, bt));
                }
            }
        }
        self.at.choice = 0;
        if a.finish.is_some() && b.finish.is_some() {
            self.word(What::Finish, a.finish.as_ref(), b.finish.as_ref());
        }
        self.words(&What::ServerItem, &a.server_items, &b.server_items);
        self.words(&What::Error, &a.errors, &b.errors);
        if results {
            each(&a.stray_results, &b.stray_results, 0, 0, |_, (a, b)| {
                let tool = a.or(b).map_or_else(String::new, |(tool, _)| tool.clone());
                self.results(
                    a.map(|(_, result)| result),
                    b.map(|(_, result)| result),
                    &What::StrayResult(tool),
                );
                !self.is_full()
            });
        }
        if self.settings.usage {
            let count = |turn: &'_ Turn, name: &str| {
                turn.usage.iter().position(|(known, _)| *known == name)
            };
            let names = a
                .usage
                .iter()
                .chain(b.usage.iter().filter(|(name, _)| count(a, name).is_none()));
            for (name, _) in names {
                let of = |turn: &'_ Turn| count(turn, name);
                let (at, bt) = (of(a), of(b));
                self.word(
                    What::Usage((*name).to_owned()),
                    at.map(|at| &a.usage[at].1),
                    bt.map(|bt| &b.usage[bt].1),
                );
            }
        }
    }

    fn words(&mut self, what: &What, a: &[Word], b: &[Word]) {
        let (head, tail) = align(a.len(), b.len(), |at, bt| a[at].text == b[bt].text);
        each(a, b, head, tail, |_, (a, b)| {
            self.word(what.clone(), a, b);
            !self.is_full()
        });
    }

    fn choices(&mut self, a: &Choice, b: &Choice, results: bool) {
        self.answers(a, b, results);
        if a.message.is_some() || b.message.is_some() {
            self.at.in_message = true;
            self.answers(
                a.message.as_deref().unwrap_or(a),
                b.message.as_deref().unwrap_or(b),
                false,
            );
            self.at.in_message = false;
        }
    }

    /// What both a stream and a message hold.
    fn answers(&mut self, a: &Choice, b: &Choice, results: bool) {
        if self.settings.reasoning {
            self.passage(What::Reasoning, &a.reasoning, &b.reasoning);
        }
        self.passage(What::Text, &a.text, &b.text);
        self.passage(What::Refusal, &a.refusal, &b.refusal);
        let (a, b) = (&a.calls[..], &b.calls[..]);
        let (head, tail) = align(a.len(), b.len(), |at, bt| {
            self.is_equal(|probe| probe.calls(&a[at], &b[bt], results))
        });
        each(a, b, head, tail, |at, pair| {
            self.at.call = Some(at);
            match pair {
                (Some(a), Some(b)) => self.calls(a, b, results),
                (a, b) => {
                    let side = |call: Option<&Call>| {
                        call.map_or_else(Side::default, |call| {
                            Side::of(call.request(), Some(call.line))
                        })
                    };
                    self.add(What::Call, side(a), side(b));
                }
            }
            !self.is_full()
        });
        self.at.call = None;
    }

    fn calls(&mut self, a: &Call, b: &Call, results: bool) {
        let lines = [a.line, b.line];
        if a.name != b.name {
            let side = |call: &Call| Side::of(text::name(&call.name), Some(call.line));
            // The arguments of another tool are another thing altogether.
            return self.add(What::Tool, side(a), side(b));
        }
        arguments::compare(self, &a.arguments, &b.arguments, lines);
        let counts =
            |one: &Call, other: &Call| one.error.as_deref() != Some("schema") || other.has_schema;
        if a.error != b.error && counts(a, b) && counts(b, a) {
            let side = |call: &Call| match &call.error {
                Some(code) => Side::of(text::name(code), Some(call.line)),
                None => Side::default(),
            };
            self.add(What::CallError, side(a), side(b));
        }
        if results {
            self.results(a.result.as_ref(), b.result.as_ref(), &What::Result);
            let none = Passage::default();
            let message = |call: &'_ Call| call.tool_message.is_some();
            if message(a) || message(b) {
                let [a, b] = [a, b].map(|call| call.tool_message.as_ref().unwrap_or(&none));
                self.passage(What::ToolMessage, a, b);
            }
        }
    }

    fn results(&mut self, a: Option<&ToolResult>, b: Option<&ToolResult>, what: &What) {
        self.word(
            what.clone(),
            a.map(|result| &result.status),
            b.map(|result| &result.status),
        );
        if let (Some(a), Some(b)) = (a, b) {
            self.passage(What::Output, &a.output, &b.output);
        }
    }
}

/// Conversations that belong together: those of one name, if both recordings have the same names;
/// else in their order.
fn pairs<'r>(
    a: &'r [Conversation],
    b: &'r [Conversation],
) -> Vec<(Option<&'r Conversation>, Option<&'r Conversation>)> {
    let names = |list: &'r [Conversation]| -> HashMap<Option<&'r str>, &'r Conversation> {
        list.iter().map(|one| (one.name.as_deref(), one)).collect()
    };
    let (left, right) = (names(a), names(b));
    if left.len() == a.len()
        && left.len() == right.len()
        && left.keys().all(|name| right.contains_key(name))
    {
        return a
            .iter()
            .map(|one| (Some(one), right.get(&one.name.as_deref()).copied()))
            .collect();
    }
    (0..a.len().max(b.len()))
        .map(|at| (a.get(at), b.get(at)))
        .collect()
}

/// Calls `take` with each pair of two aligned lists that is not known to be equal, and with the
/// place of its first item that is there, from 1 on; until it returns `false`.
fn each<'l, T>(
    a: &'l [T],
    b: &'l [T],
    head: usize,
    tail: usize,
    mut take: impl FnMut(u64, (Option<&'l T>, Option<&'l T>)) -> bool,
) {
    let (x, y) = (&a[head..a.len() - tail], &b[head..b.len() - tail]);
    for at in 0..x.len().max(y.len()) {
        if !take((head + at) as u64 + 1, (x.get(at), y.get(at))) {
            return;
        }
    }
}

/// A turn in a few words.
fn summary(turn: &Turn) -> String {
    turn.choices
        .first()
        .map_or_else(|| "empty".to_owned(), sketch)
}

/// A choice in a few words: its text, and its calls.
fn sketch(choice: &Choice) -> String {
    let text = Some(&choice.text.text)
        .filter(|text| !text.is_empty())
        .map(|text| text::beginning(text));
    let calls = match &choice.calls[..] {
        [] => None,
        [call] => Some(call.request()),
        calls => Some(counted(calls.len(), "call")),
    };
    match (text, calls) {
        (Some(text), Some(calls)) => format!("{text} with {calls}"),
        (Some(only), None) | (None, Some(only)) => only,
        (None, None) => "empty".to_owned(),
    }
}

fn counted(count: usize, of: &str) -> String {
    format!("{count} {of}{}", if count == 1 { "" } else { "s" })
}
