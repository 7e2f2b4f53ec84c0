//! The turn of the model that a stream shows, and its parts, which may be taken back and written
//! again.

use super::UiStream;
use super::calls::UiCall;
use crate::answer::step::TextKind;
use crate::ui::step::UiStep;
use event::{Json, Surrogates, Text};

/// How often the parts of one turn may be taken back and written again. Without a limit, a turn whose
/// calls fail one after the other would send its text once for each call.
pub(super) const MOST_RESETS: usize = 16;

/// The turn of the model that is shown.
#[derive(Debug, Default)]
pub(super) struct OpenTurn {
    pub(super) state: TurnState,
    /// [`UiStep::TurnStart`] is written.
    pub(super) has_begun: bool,
    open: Option<OpenText>,
    /// The parts, where they may have to be written again.
    pub(super) kept: Vec<KeptPart>,
    /// A part that is shown was retracted.
    pub(super) needs_reset: bool,
    pub(super) resets: usize,
    /// A call of the turn runs, or has run: its parts stay.
    pub(super) is_fixed: bool,
    /// A call of the client's was cut.
    pub(super) has_cut: bool,
    /// The model has refused to answer.
    pub(super) has_refused: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TurnState {
    /// No turn has begun.
    #[default]
    None,
    /// The model writes.
    Open,
    /// The model has ended; its calls may run.
    Ended,
    /// The model's stream has failed.
    Failed,
}

/// The text or the reasoning that the model writes.
#[derive(Debug)]
struct OpenText {
    kind: TextKind,
    id: String,
    /// The piece that is not written yet.
    piece: String,
    /// Half a surrogate pair at the end of the last piece.
    half: Surrogates,
}

/// A part of the open turn.
#[derive(Debug)]
pub(super) enum KeptPart {
    Text {
        kind: TextKind,
        text: String,
        provider: Option<String>,
    },
    /// The id of a call.
    Call(String),
    /// A call that cannot run, and why.
    Error(UiCall, String),
    Source {
        url: String,
        title: String,
    },
    File {
        url: String,
        media_type: String,
    },
}

impl UiStream {
    /// Ends the turn that is shown.
    pub(super) fn end_turn(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.turn).has_begun {
            self.output.step(&UiStep::TurnEnd, out);
        }
    }

    /// Takes back all parts of the turn.
    pub(super) fn take_back_all(&mut self, out: &mut Vec<u8>) {
        let has_begun = self.turn.has_begun;
        let resets = self.output.writer.resets();
        if has_begun && resets {
            self.output.step(&UiStep::Reset, out);
            self.calls.retain(|call| call.open_ask().is_some());
        } else if has_begun {
            self.close(None, out);
            self.end_calls(true, out);
            self.output.step(&UiStep::Reset, out);
            self.output.step(&UiStep::TurnEnd, out);
        }
        self.turn = OpenTurn {
            has_begun: has_begun && resets,
            ..OpenTurn::default()
        };
    }

    /// Prepares for a new part: begins the turn if needed, and removes retracted parts.
    pub(super) fn ready(&mut self, out: &mut Vec<u8>) {
        self.output.begin(out);
        if !std::mem::replace(&mut self.turn.has_begun, true) {
            self.output.step(&UiStep::TurnStart, out);
        }
        self.settle(out);
    }

    /// Removes parts that were retracted: the whole turn is taken back, and its other parts are
    /// written again.
    pub(super) fn settle(&mut self, out: &mut Vec<u8>) {
        if !std::mem::take(&mut self.turn.needs_reset) {
            return;
        }
        self.turn.resets += 1;
        self.turn.open = None;
        let UiStream {
            output,
            turn,
            calls,
            ..
        } = self;
        output.step(&UiStep::Reset, out);
        for part in &turn.kept {
            match part {
                KeptPart::Text {
                    kind,
                    text,
                    provider,
                } => {
                    let (kind, id) = (*kind, &*output.new_id());
                    let provider = provider.as_deref();
                    output.step(&UiStep::TextStart { kind, id }, out);
                    if !text.is_empty() {
                        output.step(&UiStep::TextDelta { kind, id, text }, out);
                    }
                    output.step(&UiStep::TextEnd { kind, id, provider }, out);
                }
                KeptPart::Call(id) => {
                    let call = calls.iter().find(|call| call.id == *id);
                    call.iter().for_each(|call| output.write_call(call, out));
                }
                KeptPart::Error(call, why) => {
                    output.step(&UiStep::CallStart { call: call.name() }, out);
                    output.call_error(call, why, out);
                }
                KeptPart::Source { url, title } => output.source(url, title, out),
                KeptPart::File { url, media_type } => {
                    output.step(&UiStep::File { url, media_type }, out);
                }
            }
        }
    }

    /// Keeps a part that may have to be written again. A text that is open stays the last part: its
    /// next piece is appended to it.
    pub(super) fn keep(&mut self, part: KeptPart) {
        if self.output.writer.resets() && self.turn.state == TurnState::Open {
            let open = usize::from(self.turn.open.is_some());
            let at = self.turn.kept.len().saturating_sub(open);
            self.turn.kept.insert(at, part);
        }
    }

    /// Forgets a kept call.
    pub(super) fn forget(&mut self, id: &str) {
        let is_call = |part: &KeptPart| matches!(part, KeptPart::Call(other) if other == id);
        if let Some(at) = self.turn.kept.iter().rposition(is_call) {
            self.turn.kept.remove(at);
        }
    }

    /// The next piece of a text, which begins if none of its kind is open. Reasoning ends with the
    /// data that its provider wants back.
    pub(super) fn text(
        &mut self,
        kind: TextKind,
        text: Text<'_>,
        provider: Option<Json<'_>>,
        out: &mut Vec<u8>,
    ) {
        if text.is_empty() && provider.is_none() {
            return;
        }
        self.ready(out);
        let is_same =
            |open: &OpenText| (open.kind == TextKind::Reasoning) == (kind == TextKind::Reasoning);
        if !self.turn.open.as_ref().is_some_and(is_same) {
            self.close(None, out);
            let id = self.output.new_id();
            self.output.step(&UiStep::TextStart { kind, id: &id }, out);
            self.keep(KeptPart::Text {
                kind,
                text: String::new(),
                provider: None,
            });
            self.turn.open = Some(OpenText {
                kind,
                id,
                piece: String::new(),
                half: Surrogates::default(),
            });
        }
        if let Some(OpenText { piece, half, .. }) = &mut self.turn.open {
            half.push_text(text, piece);
        }
        self.write_piece(out);
        if let Some(provider) = provider {
            self.close(Some(&provider.text()), out);
        }
    }

    /// Writes the next piece of the text that is open.
    fn write_piece(&mut self, out: &mut Vec<u8>) {
        let open = self.turn.open.as_mut();
        let Some(open) = open.filter(|open| !open.piece.is_empty()) else {
            return;
        };
        let (kind, id, text) = (open.kind, &*open.id, &*open.piece);
        if let Some(KeptPart::Text { text: kept, .. }) = self.turn.kept.last_mut() {
            kept.push_str(text);
        }
        self.output.step(&UiStep::TextDelta { kind, id, text }, out);
        open.piece.clear();
    }

    /// Ends the text that is open. `provider` is what the provider wants back with it.
    pub(super) fn close(&mut self, provider: Option<&str>, out: &mut Vec<u8>) {
        if let Some(OpenText { piece, half, .. }) = &mut self.turn.open {
            half.finish(piece);
        }
        self.write_piece(out);
        let Some(OpenText { kind, id, .. }) = self.turn.open.take() else {
            return;
        };
        if let (Some(KeptPart::Text { provider: kept, .. }), Some(provider)) =
            (self.turn.kept.last_mut(), provider)
        {
            *kept = Some(provider.to_owned());
        }
        let id = &id;
        self.output
            .step(&UiStep::TextEnd { kind, id, provider }, out);
    }
}
