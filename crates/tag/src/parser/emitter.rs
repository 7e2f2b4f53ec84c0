//! Emits the findings of a choice, and holds back text that reasoning may still affect: the
//! beginning of a message, and the last bytes of calls.
//!
//! Many templates write the opening marker of reasoning into the prompt, so that a message begins
//! inside reasoning without the marker (<https://github.com/vllm-project/vllm/issues/13125>). If
//! the prompt is unknown, only the closing marker reveals the reasoning.

use crate::dialect::PromptReasoning;
use crate::outlet::{CallPiece, Outlet, Prose};
use event::payload::RetractReason;
use std::collections::HashSet;

/// How many bytes at the beginning of a message are held back if its prompt is unknown.
const WINDOW: usize = 256;

/// The output of one choice; see the module.
#[derive(Debug)]
pub(super) struct Emitter {
    prefilled: PromptReasoning,
    unclosed: Unclosed,
    /// The number of calls that have begun.
    calls: i64,
    /// How many bytes of ids, names and arguments were emitted since text was last added to the
    /// beginning.
    emitted: usize,
    /// Whether a warning has reported text that is not a call.
    has_warned: bool,
    /// The ids that the model has written.
    ids: HashSet<String>,
    /// Complete calls that may still be retracted: their indexes, and the end of their arguments,
    /// which is held back.
    whole: Vec<(i64, String)>,
}

/// A possible cause of open reasoning. If there is a cause, a closing marker may still arrive and
/// retract the calls before it.
#[derive(Debug)]
enum Unclosed {
    Nothing,
    /// The prompt, whose end is unknown. The beginning of the message is held back until it is long
    /// enough to decide.
    Prompt(Option<Backlog>),
    /// The call with this index, which began inside reasoning and ended it.
    Call(i64),
}

impl Emitter {
    /// Creates the output of a message; `has_prompt` means that the end of the prompt is known.
    pub(super) fn new(prefilled: PromptReasoning, has_prompt: bool) -> Emitter {
        let beginning = (prefilled != PromptReasoning::No).then(Backlog::default);
        let unclosed = if has_prompt {
            Unclosed::Nothing
        } else {
            Unclosed::Prompt(beginning)
        };
        Emitter {
            prefilled,
            unclosed,
            calls: 0,
            emitted: 0,
            has_warned: false,
            ids: HashSet::new(),
            whole: Vec::new(),
        }
    }

    fn beginning(&self) -> Option<&Backlog> {
        if let Unclosed::Prompt(beginning) = &self.unclosed {
            beginning.as_ref()
        } else {
            None
        }
    }

    /// Returns the current receiver of events: the beginning while it is held back, otherwise
    /// `out`.
    fn outlet<'o>(&'o mut self, out: &'o mut dyn Outlet) -> &'o mut dyn Outlet {
        if let Unclosed::Prompt(Some(beginning)) = &mut self.unclosed {
            beginning
        } else {
            out
        }
    }

    /// Whether the beginning is held back.
    pub(super) fn holds_beginning(&self) -> bool {
        self.beginning().is_some()
    }

    /// Returns how many more bytes of text decide the kind of the beginning; `None` once it is
    /// decided.
    pub(super) fn room(&self) -> Option<usize> {
        self.beginning()
            .map(|beginning| WINDOW + 1 - beginning.size())
    }

    pub(super) fn has_calls(&self) -> bool {
        self.calls > 0
    }

    /// Whether a marker that ends reasoning may follow text of the answer.
    pub(super) fn may_end_reasoning(&self) -> bool {
        !matches!(self.unclosed, Unclosed::Nothing)
    }

    /// Emits text of the answer, unless the text may still turn out to be reasoning. Returns the
    /// kind of the text after it.
    pub(super) fn text(&mut self, text: &str, out: &mut dyn Outlet) -> Prose {
        if text.is_empty() {
            return Prose::Answer;
        }
        self.emitted = 0;
        self.outlet(out).content(text);
        let Some(beginning) = self
            .beginning()
            .filter(|beginning| beginning.size() > WINDOW)
        else {
            return Prose::Answer;
        };
        let is_reasoning = self.prefilled == PromptReasoning::Usually && !beginning.has_calls();
        let prose = Prose::reasoning_if(is_reasoning);
        self.decide(prose, out);
        prose
    }

    /// Reports text that appears in no event: markers and calls.
    pub(super) fn left_out(&mut self, text: &str, out: &mut dyn Outlet) {
        self.emitted = 0;
        self.outlet(out).left_out(text);
        self.limit(0, out);
    }

    /// Begins a call within this kind of text. `always` means that the call's marker ends reasoning
    /// for good. Returns whether the end of reasoning may still retract the call.
    pub(super) fn begin_call(&mut self, always: bool, within: Prose, out: &mut dyn Outlet) -> bool {
        if always {
            self.settle_prompt(out);
        }
        if within == Prose::Reasoning {
            self.unclosed = if always {
                Unclosed::Nothing
            } else {
                Unclosed::Call(self.calls)
            };
        }
        self.calls += 1;
        match self.unclosed {
            Unclosed::Nothing => false,
            Unclosed::Prompt(_) => self.prefilled != PromptReasoning::No,
            Unclosed::Call(_) => true,
        }
    }

    /// Returns an empty piece of the last call.
    pub(super) fn piece<'p>(&self) -> CallPiece<'p> {
        CallPiece::of(self.calls - 1)
    }

    /// Emits a piece of a call. An empty piece is not emitted.
    pub(super) fn call(&mut self, mut piece: CallPiece<'_>, out: &mut dyn Outlet) {
        // Kimi K2 sometimes repeats the id of an earlier call. `tc-accumulate` generates an id for
        // the second call.
        piece.id = piece.id.filter(|id| self.ids.insert((*id).to_owned()));
        let empty = CallPiece::of(piece.index);
        if piece == empty {
            return;
        }
        // How much of a call was read depends on how the text was split; the emitted events must
        // not.
        self.emitted += piece.size();
        self.limit(self.emitted, out);
        self.outlet(out).call(piece);
    }

    /// Holds back the end of the last call's arguments until the end of the text; the call is
    /// complete.
    pub(super) fn keep_end(&mut self, held: String) {
        self.whole.push((self.calls - 1, held));
    }

    /// Retracts the last call, of which `read` bytes were read.
    pub(super) fn retract_last(&mut self, read: usize, out: &mut dyn Outlet) {
        self.limit(read, out);
        let index = self.calls - 1;
        self.outlet(out)
            .retract(index, RetractReason::Unparsed.name());
    }

    /// Emits a warning for people.
    pub(super) fn warn(
        &mut self,
        code: &'static str,
        message: &str,
        raw: &str,
        out: &mut dyn Outlet,
    ) {
        self.has_warned |= code == "tag_unparsed";
        self.outlet(out).warning(code, message, raw);
    }

    /// Whether a warning has reported text that is not a call.
    pub(super) fn has_warned(&self) -> bool {
        self.has_warned
    }

    /// Decides that the message begins with the answer, once the beginning and these bytes of a
    /// call together exceed the window.
    fn limit(&mut self, bytes: usize, out: &mut dyn Outlet) {
        if self
            .beginning()
            .is_some_and(|beginning| beginning.size() + bytes > WINDOW)
        {
            self.decide(Prose::Answer, out);
        }
    }

    /// Decides the kind of the beginning, if it is still held back. Calls in reasoning do not
    /// count.
    pub(super) fn decide(&mut self, prose: Prose, out: &mut dyn Outlet) {
        let Unclosed::Prompt(beginning) = &mut self.unclosed else {
            return;
        };
        let Some(beginning) = beginning.take() else {
            return;
        };
        if prose == Prose::Reasoning {
            self.calls = 0;
            self.whole.clear();
        }
        beginning.release(prose, out);
    }

    /// Decides that the prompt did not open reasoning.
    pub(super) fn settle_prompt(&mut self, out: &mut dyn Outlet) {
        self.decide(Prose::Answer, out);
        if let Unclosed::Prompt(_) = self.unclosed {
            self.unclosed = Unclosed::Nothing;
        }
    }

    /// Like `settle_prompt`, but only before the first text.
    pub(super) fn begin_in_answer(&mut self) {
        if self.beginning().is_some_and(Backlog::is_empty) {
            self.unclosed = Unclosed::Nothing;
        }
    }

    /// Before the first text: does not hold back the beginning if the prompt seldom opens
    /// reasoning.
    pub(super) fn emit_beginning(&mut self) {
        if let (Unclosed::Prompt(beginning), PromptReasoning::Perhaps) =
            (&mut self.unclosed, self.prefilled)
        {
            *beginning = None;
        }
    }

    /// Handles a marker that ends reasoning when no reasoning was open. The text before it was
    /// reasoning, whose calls do not count. `is_first` means that no text of the message came
    /// before the marker.
    pub(super) fn end_reasoning_late(&mut self, is_first: bool, out: &mut dyn Outlet) {
        match self.unclosed {
            Unclosed::Prompt(Some(_)) => self.decide(Prose::Reasoning, out),
            Unclosed::Prompt(None) if !is_first || self.has_calls() => self.take_back(0, out),
            Unclosed::Call(from) => self.take_back(from, out),
            _ => {}
        }
        self.end_reasoning(out);
    }

    /// Handles the marker that ends reasoning: the calls that waited for it count.
    pub(super) fn end_reasoning(&mut self, out: &mut dyn Outlet) {
        self.unclosed = Unclosed::Nothing;
        out.reasoning_ended();
        self.release(out);
    }

    fn take_back(&mut self, from: i64, out: &mut dyn Outlet) {
        self.whole.retain(|(index, _)| *index < from);
        (from..self.calls)
            .rev()
            .for_each(|index| out.retract(index, RetractReason::Reasoning.name()));
        out.warning(
            "late_reasoning",
            "the text before this point was reasoning, and its calls do not count; if the \
             prompt opens the reasoning, pass --prefill '<think>'",
            "",
        );
    }

    /// Ends the text. `cut` means that the text was cut off.
    pub(super) fn finish(&mut self, cut: bool, out: &mut dyn Outlet) {
        let is_reasoning = cut && self.prefilled == PromptReasoning::Usually && !self.has_calls();
        self.decide(Prose::reasoning_if(is_reasoning), out);
        if cut {
            self.give_up(out)
        } else {
            self.release(out)
        }
    }

    /// Emits the end of the calls that waited.
    fn release(&mut self, out: &mut dyn Outlet) {
        for (index, held) in std::mem::take(&mut self.whole) {
            let arguments = Some(&held[..]).filter(|held| !held.is_empty());
            out.call(CallPiece {
                arguments,
                done: true,
                ..CallPiece::of(index)
            });
        }
    }

    /// Gives up the calls that waited when the text was cut off, because it is unknown whether the
    /// model meant them.
    fn give_up(&mut self, out: &mut dyn Outlet) {
        if self.whole.is_empty() {
            return;
        }
        for (index, _) in std::mem::take(&mut self.whole).into_iter().rev() {
            out.retract(index, RetractReason::Reasoning.name());
        }
        out.warning(
            "late_reasoning",
            "the stream was cut while its calls could still be part of reasoning; if the prompt \
             opens no reasoning, pass --prefill ''",
            "",
        );
    }

    /// Forgets the calls that waited, because the caller retracts them.
    pub(super) fn forget(&mut self) {
        self.whole.clear();
    }
}

// The beginning of a message, held back until it is known to be reasoning or the answer.

/// An outlet that stores its input.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    /// The items in the order of the text.
    items: Vec<HeldItem>,
    /// The length of the items' text, in bytes.
    size: usize,
    has_calls: bool,
}

#[derive(Debug)]
enum HeldItem {
    Text(Prose, String),
    /// The text of calls and markers.
    LeftOut(String),
    Call {
        index: i64,
        /// The call's id, name and arguments.
        texts: [Option<String>; 3],
        done: bool,
    },
    Retract(i64, &'static str),
    Warning(&'static str, String, String),
}

impl Backlog {
    /// Whether the backlog has received nothing so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns how much text is held back, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Whether a call was received, even if it was retracted.
    pub(crate) fn has_calls(&self) -> bool {
        self.has_calls
    }

    /// Whether only reasoning and markers were received.
    pub(crate) fn is_reasoning(&self) -> bool {
        self.items.iter().all(|item| {
            matches!(
                item,
                HeldItem::Text(Prose::Reasoning, _) | HeldItem::LeftOut(_)
            )
        })
    }

    /// Emits everything as it was received.
    pub(crate) fn replay(self, out: &mut dyn Outlet) {
        self.release(Prose::Answer, out);
    }

    /// Emits everything: either as it was received, or with all text as reasoning, in which calls
    /// do not count.
    pub(super) fn release(self, prose: Prose, out: &mut dyn Outlet) {
        let is_reasoning = prose == Prose::Reasoning;
        for item in self.items {
            match item {
                HeldItem::Text(_, text) | HeldItem::LeftOut(text) if is_reasoning => {
                    out.reasoning(&text)
                }
                _ if is_reasoning => {}
                HeldItem::Text(Prose::Answer, text) => out.content(&text),
                HeldItem::Text(Prose::Reasoning, text) => out.reasoning(&text),
                HeldItem::LeftOut(text) => out.left_out(&text),
                HeldItem::Retract(index, reason) => out.retract(index, reason),
                HeldItem::Warning(code, message, raw) => out.warning(code, &message, &raw),
                HeldItem::Call { index, texts, done } => {
                    let [id, name, arguments] = texts.each_ref().map(Option::as_deref);
                    out.call(CallPiece {
                        index,
                        id,
                        name,
                        arguments,
                        done,
                    });
                }
            }
        }
    }

    fn text(&mut self, prose: Prose, text: &str) {
        self.size += text.len();
        match self.items.last_mut() {
            Some(HeldItem::Text(last, held)) if *last == prose => {
                held.push_str(text);
            }
            _ => self.items.push(HeldItem::Text(prose, text.to_owned())),
        }
    }
}

impl Outlet for Backlog {
    fn content(&mut self, text: &str) {
        self.text(Prose::Answer, text);
    }

    fn reasoning(&mut self, text: &str) {
        self.text(Prose::Reasoning, text);
    }

    fn call(&mut self, piece: CallPiece<'_>) {
        self.has_calls = true;
        let CallPiece { index, done, .. } = piece;
        let texts = piece.texts().map(|text| text.map(str::to_owned));
        self.items.push(HeldItem::Call { index, texts, done });
    }

    fn retract(&mut self, index: i64, reason: &'static str) {
        self.items.push(HeldItem::Retract(index, reason));
    }

    fn warning(&mut self, code: &'static str, message: &str, raw: &str) {
        let warning = HeldItem::Warning(code, message.to_owned(), raw.to_owned());
        self.items.push(warning);
    }

    fn left_out(&mut self, text: &str) {
        self.size += text.len();
        self.items.push(HeldItem::LeftOut(text.to_owned()));
    }
}
