//! The same stream with its text, its reasoning and its arguments cut elsewhere: `--resplit`.

use crate::split::{Sizes, Split};
use event::payload::{ContentDelta, RefusalDelta, Thinking, ToolCallDelta};
use event::{Event, Kind, Payload};

/// Joins the deltas that follow each other and cuts them again. All other events pass in their
/// places.
pub(super) struct EventSplit {
    sizes: Sizes,
    /// What the text at hand belongs to; `None` before any.
    owner: Option<Owner>,
    /// The text that was not given yet.
    text: String,
    /// The characters of it, and how many make the next piece.
    chars: usize,
    wanted: usize,
}

/// What a piece of text is a part of.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Owner {
    kind: Kind,
    choice: u32,
    /// The call, of arguments.
    index: Option<i64>,
    id: Option<String>,
    /// Of text: its chunk has a call.
    with_call: bool,
}

impl EventSplit {
    /// Cuts one stream; `id` is its name in the corpus.
    pub(super) fn new(split: Split, id: &str) -> Self {
        let mut sizes = split.sizes(id);
        let wanted = sizes.next();
        EventSplit {
            sizes,
            owner: None,
            text: String::new(),
            chars: 0,
            wanted,
        }
    }

    /// Takes the next event, and gives what is complete to `take`.
    pub(super) fn push(&mut self, event: &Event<'_>, take: &mut dyn FnMut(&Event<'_>)) {
        let owner = |index, id| {
            Some(Owner {
                kind: event.kind(),
                choice: event.choice(),
                index,
                id,
                with_call: false,
            })
        };
        match event.kind() {
            Kind::ContentDelta => {
                let ContentDelta { text, with_call } = ContentDelta::read(event);
                self.add(
                    owner(None, None).map(|owner| Owner { with_call, ..owner }),
                    &text.str(),
                    take,
                );
            }
            Kind::RefusalDelta => self.add(
                owner(None, None),
                &RefusalDelta::read(event).text.str(),
                take,
            ),
            Kind::Thinking => {
                let Thinking { text, provider } = Thinking::read(event);
                self.add(owner(None, None), &text.str(), take);
                if provider.is_some() {
                    self.flush(take);
                    give(
                        event,
                        Thinking {
                            text: "".into(),
                            provider,
                        },
                        take,
                    );
                }
            }
            Kind::ToolCallDelta => {
                let delta = ToolCallDelta::read(event);
                if event.names_call() || delta.provider.is_some() {
                    self.flush(take);
                    give(
                        event,
                        ToolCallDelta {
                            arguments: None,
                            done: false,
                            ..delta
                        },
                        take,
                    );
                }
                if let Some(arguments) = delta.arguments {
                    let id = delta.tool_id.map(|id| id.str().into_owned());
                    self.add(owner(delta.index, id), &arguments.str(), take);
                }
                if delta.done {
                    self.flush(take);
                    let (tool_name, arguments, provider) = (None, None, None);
                    give(
                        event,
                        ToolCallDelta {
                            tool_name,
                            arguments,
                            provider,
                            ..delta
                        },
                        take,
                    );
                }
            }
            _ => {
                self.flush(take);
                take(event);
            }
        }
    }

    /// Handles the end of a stream without a `stream_end`.
    pub(super) fn finish(&mut self, take: &mut dyn FnMut(&Event<'_>)) {
        self.flush(take);
    }

    fn add(&mut self, owner: Option<Owner>, text: &str, take: &mut dyn FnMut(&Event<'_>)) {
        // An arguments delta without an id or an index goes on with the call at hand.
        let goes_on = match (&self.owner, &owner) {
            (Some(now), Some(next)) => {
                (now.kind, now.choice, now.with_call) == (next.kind, next.choice, next.with_call)
                    && (next.index.is_none() || next.index == now.index)
                    && (next.id.is_none() || next.id == now.id)
            }
            _ => false,
        };
        if !goes_on {
            self.flush(take);
            self.owner = owner;
        }
        for c in text.chars() {
            self.text.push(c);
            self.chars += 1;
            if self.chars == self.wanted {
                self.give_text(take);
            }
        }
    }

    /// Gives what is left of the text at hand, which the next event is not a part of.
    fn flush(&mut self, take: &mut dyn FnMut(&Event<'_>)) {
        if self.chars > 0 {
            self.give_text(take);
        }
        self.owner = None;
    }

    fn give_text(&mut self, take: &mut dyn FnMut(&Event<'_>)) {
        let Some(Owner {
            kind,
            choice,
            index,
            id,
            with_call,
        }) = &self.owner
        else {
            return;
        };
        let text = (&self.text).into();
        let payload = match kind {
            Kind::ContentDelta => Payload::from(ContentDelta {
                text,
                with_call: *with_call,
            }),
            Kind::RefusalDelta => RefusalDelta { text }.into(),
            Kind::Thinking => Thinking {
                text,
                provider: None,
            }
            .into(),
            _ => {
                let arguments = Some(text);
                let tool_id = id.as_ref().map(Into::into);
                ToolCallDelta {
                    index: *index,
                    tool_id,
                    arguments,
                    ..ToolCallDelta::default()
                }
                .into()
            }
        };
        take(&Event::of(&payload, None, *choice, None));
        self.text.clear();
        self.chars = 0;
        self.wanted = self.sizes.next();
    }
}

/// Gives a payload with the common fields of the event that it was made of.
fn give<'p>(event: &Event<'_>, payload: impl Into<Payload<'p>>, take: &mut dyn FnMut(&Event<'_>)) {
    take(&Event::of(
        &payload.into(),
        event.stream(),
        event.choice(),
        event.t(),
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::Scanner;

    fn resplit(split: Split, lines: &[&str]) -> Vec<String> {
        let (mut resplit, mut scanner, mut out) =
            (EventSplit::new(split, "x"), Scanner::default(), Vec::new());
        for line in lines {
            let event = scanner.read(line).expect("an event");
            resplit.push(&event, &mut |event| out.push(event.raw().into_owned()));
        }
        resplit.finish(&mut |event| out.push(event.raw().into_owned()));
        out
    }

    #[test]
    fn deltas_are_joined_and_cut_again_and_other_events_keep_their_places() {
        let lines = [
            r#"{"type":"stream_start","v":1}"#,
            r#"{"type":"content_delta","text":"aé"}"#,
            r#"{"type":"content_delta","text":"b"}"#,
            r#"{"type":"tool_call_delta","index":0,"tool_id":"i","tool_name":"f","arguments":"{}"}"#,
            r#"{"type":"tool_call_delta","index":0,"arguments":" ","done":true}"#,
            r#"{"type":"stream_end","finish_reason":"stop"}"#,
        ];
        assert_eq!(
            resplit(Split::Every(2), &lines),
            [
                r#"{"type":"stream_start","v":1}"#,
                r#"{"type":"content_delta","text":"aé"}"#,
                r#"{"type":"content_delta","text":"b"}"#,
                r#"{"type":"tool_call_delta","index":0,"tool_id":"i","tool_name":"f"}"#,
                r#"{"type":"tool_call_delta","index":0,"tool_id":"i","arguments":"{}"}"#,
                r#"{"type":"tool_call_delta","index":0,"tool_id":"i","arguments":" "}"#,
                r#"{"type":"tool_call_delta","index":0,"done":true}"#,
                r#"{"type":"stream_end","finish_reason":"stop"}"#,
            ]
        );
        let text = |split| {
            let lines = [
                r#"{"type":"content_delta","text":"ab"}"#,
                r#"{"type":"content_delta","text":"cd"}"#,
            ];
            resplit(split, &lines).len()
        };
        assert_eq!(
            (
                text(Split::Every(1)),
                text(Split::Every(3)),
                text(Split::Every(9))
            ),
            (4, 2, 1)
        );
    }
}
