//! The model's turn that a stream shows, and its parts, which may be retracted and rewritten.

use super::UiStream;
use super::calls::UiCall;
use crate::answer::step::TextKind;
use crate::ui::step::UiStep;
use event::{Json, Surrogates, Text};

/// How many times the parts of a turn may be retracted and rewritten. Without a limit, a turn with
/// many failing calls would send its text once for each call.
pub(super) const MOST_RESETS: usize = 16;

/// The model's turn that is shown.
#[derive(Debug, Default)]
pub(super) struct OpenTurn {
    pub(super) state: TurnState,
    /// Whether [`UiStep::TurnStart`] was written.
    pub(super) has_begun: bool,
    open: Option<OpenText>,
    /// The parts, stored in case they must be rewritten.
    pub(super) kept: Vec<KeptPart>,
    /// Whether a part that is shown was retracted.
    pub(super) needs_reset: bool,
    pub(super) resets: usize,
    /// Whether a call of the turn was started. The parts then cannot be retracted.
    pub(super) is_fixed: bool,
    /// Whether a call of the client was truncated.
    pub(super) has_cut: bool,
    /// Whether the model refused to answer.
    pub(super) has_refused: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TurnState {
    /// No turn has started.
    #[default]
    None,
    /// The model is generating.
    Open,
    /// The model has finished. Its calls may run.
    Ended,
    /// The model's stream failed.
    Failed,
}

/// The open text or reasoning.
#[derive(Debug)]
struct OpenText {
    kind: TextKind,
    id: String,
    /// The piece that has not been written yet.
    piece: String,
    /// A pending half of a surrogate pair.
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
    /// A call, by its id.
    Call(String),
    /// A call that cannot run, and the reason.
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
    /// Ends the shown turn.
    pub(super) fn end_turn(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.turn).has_begun {
            self.output.step(&UiStep::TurnEnd, out);
        }
    }

    /// Retracts all parts of the turn.
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

    /// Prepares for a new part: starts the turn if needed, and removes retracted parts.
    pub(super) fn ready(&mut self, out: &mut Vec<u8>) {
        self.output.begin(out);
        if !std::mem::replace(&mut self.turn.has_begun, true) {
            self.output.step(&UiStep::TurnStart, out);
        }
        self.settle(out);
    }

    /// Removes retracted parts: retracts the whole turn and rewrites its other parts.
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

    /// Stores a part in case it must be rewritten. An open text stays the last part, so that its
    /// next piece can be appended to it.
    pub(super) fn keep(&mut self, part: KeptPart) {
        if self.output.writer.resets() && self.turn.state == TurnState::Open {
            let open = usize::from(self.turn.open.is_some());
            let at = self.turn.kept.len().saturating_sub(open);
            self.turn.kept.insert(at, part);
        }
    }

    /// Removes a stored call.
    pub(super) fn forget(&mut self, id: &str) {
        let is_call = |part: &KeptPart| matches!(part, KeptPart::Call(other) if other == id);
        if let Some(at) = self.turn.kept.iter().rposition(is_call) {
            self.turn.kept.remove(at);
        }
    }

    /// Writes a piece of text, and starts a text unless one of this kind is open. Reasoning ends
    /// with the data that must be sent back to its provider.
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

    /// Writes the pending piece of the open text.
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

    /// Ends the open text. `provider` is the data that must be sent back to the provider with it.
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
