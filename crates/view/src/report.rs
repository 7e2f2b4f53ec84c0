//! Reports: a run as one document, which is written while the log is read.
//!
//! A report is a further [`Page`] of a [`Story`]. What all reports share is here: which text is
//! open, which card may be written, and when the head is known. A [`ReportForm`] writes the parts,
//! [`html`] for a browser and [`github`] for issues and pull requests. What needs the whole log (the
//! totals, the turns and their times) is at the end of the document, and bounded; see
//! [`outline`].

use crate::calls::{CallCard, CallCards, Who};
use crate::story::{Page, Story, Tone, Voice};
use event::Event;
use outline::Outline;
use passages::Passages;

mod excerpt;
mod github;
mod github_prose;
mod html;
mod html_prose;
mod html_writer;
mod outline;
mod passages;

pub(crate) use github::ROW as GITHUB;
pub use github::markdown;
pub(crate) use html::ROW as HTML;
pub use html::{html, html_policy};

/// How much is held back until the title is known, in bytes.
const HELD: usize = 64 * 1024;

/// Writes the parts of a report. Its methods append to `out`; none of them gets a text that another
/// call continues, except [`ReportForm::plain`].
trait ReportForm {
    /// The beginning of the document.
    fn head(&mut self, out: &mut Vec<u8>, outline: &Outline);
    /// A turn of the model begins, the one that is last in the outline.
    fn turn(&mut self, out: &mut Vec<u8>, outline: &Outline);
    /// A text begins.
    fn open_text(&mut self, out: &mut Vec<u8>, voice: Voice, outline: &Outline);
    /// A piece of a text that is not Markdown.
    fn plain(&mut self, out: &mut Vec<u8>, text: &str);
    /// Whole blocks of a text that is Markdown.
    fn passage(&mut self, out: &mut Vec<u8>, passage: &str);
    /// The text ends.
    fn close_text(&mut self, out: &mut Vec<u8>, voice: Voice);
    fn note(&mut self, out: &mut Vec<u8>, tone: Tone, text: &str);
    /// The card of a call, the `n`th of the document.
    fn card(&mut self, out: &mut Vec<u8>, call: &CallCard, n: usize);
    /// The end of the document.
    fn end(&mut self, out: &mut Vec<u8>, outline: &Outline);
}

/// A report as a page.
#[derive(Debug)]
struct ReportPage<F> {
    form: F,
    outline: Outline,
    /// What is written of the document, but not given out yet.
    body: Vec<u8>,
    out: Vec<u8>,
    has_head: bool,
    now: Who,
    /// The text that the next piece may belong to, and whether any of it is in the document.
    voice: Option<Voice>,
    is_open: bool,
    passages: Passages,
    /// Of each call of the list, how far its card is; and how many of them have one.
    states: Vec<CardState>,
    written: usize,
    /// How many cards the document has.
    cards: usize,
}

/// How far the card of a call is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum CardState {
    /// The call may still change.
    #[default]
    Open,
    /// Its card may be written, as soon as those before it are.
    Ready,
    /// Its card has this state.
    Written(&'static str),
}

/// A view that writes a report in this form.
fn story<F: ReportForm>(form: F, no_time: bool) -> Story<ReportPage<F>> {
    Story::new(ReportPage {
        form,
        outline: Outline::new(no_time),
        body: Vec::new(),
        out: Vec::new(),
        has_head: false,
        now: Who::default(),
        voice: None,
        is_open: false,
        passages: Passages::default(),
        states: Vec::new(),
        written: 0,
        cards: 0,
    })
}

/// Whether a text of this voice is Markdown, as on a terminal.
fn is_markdown(voice: Voice) -> bool {
    matches!(voice, Voice::Thinking | Voice::Answer | Voice::Refusal)
}

impl<F: ReportForm> ReportPage<F> {
    fn open(&mut self, voice: Voice) {
        if !std::mem::replace(&mut self.is_open, true) {
            if voice == Voice::User {
                self.outline.question();
            }
            self.form.open_text(&mut self.body, voice, &self.outline);
        }
    }

    /// Writes those passages that no more text can change, or all of the text.
    fn passages(&mut self, voice: Voice, is_whole: bool) {
        while let Some(passage) = self.passages.next(is_whole) {
            if !passage.trim().is_empty() {
                self.open(voice);
                self.form.passage(&mut self.body, &passage);
            }
        }
    }

    fn close_text(&mut self) {
        if let Some(voice) = self.voice.take() {
            self.passages(voice, true);
            if std::mem::take(&mut self.is_open) {
                self.form.close_text(&mut self.body, voice);
            }
        }
    }

    fn card(&mut self, call: &CallCard) {
        self.turn_to(&call.who);
        self.close_text();
        self.cards += 1;
        self.outline.card(call, self.cards);
        self.form.card(&mut self.body, call, self.cards);
    }

    /// Gives out what is written, once the title is known or must be known.
    fn release(&mut self, is_whole: bool) {
        let is_known = self.outline.has_title() || self.outline.turns > 0;
        if !self.has_head && (is_known || is_whole || self.body.len() > HELD) {
            self.has_head = true;
            self.form.head(&mut self.out, &self.outline);
        }
        if self.has_head {
            self.out.append(&mut self.body);
        }
    }
}

impl<F: ReportForm> Page for ReportPage<F> {
    const LIVE: bool = false;

    fn now(&mut self) -> &mut Who {
        &mut self.now
    }

    fn out(&mut self) -> &mut Vec<u8> {
        self.release(false);
        &mut self.out
    }

    fn event(&mut self, event: &Event<'_>) {
        if self.outline.push(event) {
            self.close_text();
            self.form.turn(&mut self.body, &self.outline);
        }
    }

    fn text(&mut self, voice: Voice, text: &str) {
        if self.voice != Some(voice) {
            self.close_text();
        }
        // Models often begin with empty lines, which would add to the space between blocks.
        let is_new = self.voice.is_none();
        let text = if is_new {
            text.trim_start_matches('\n')
        } else {
            text
        };
        if text.is_empty() {
            return;
        }
        self.voice = Some(voice);
        if is_markdown(voice) {
            self.passages.push(text);
            self.passages(voice, false);
        } else {
            self.open(voice);
            self.form.plain(&mut self.body, text);
        }
    }

    fn note(&mut self, tone: Tone, text: &str) {
        self.close_text();
        self.form.note(&mut self.body, tone, text);
    }

    fn call(&mut self, calls: &CallCards, at: usize) {
        let call = &calls.list[at];
        if !call.is_settled() {
            return;
        }
        self.states
            .resize(self.states.len().max(at + 1), CardState::Open);
        match self.states[at] {
            CardState::Open => {
                self.states[at] = CardState::Ready;
                self.done(calls);
            }
            // The card was written when the turn was over. A later result gets a card of its own.
            CardState::Written(state) if call.has_ended() && state != call.state_name() => {
                self.states[at] = CardState::Written(call.state_name());
                self.card(call);
            }
            CardState::Ready | CardState::Written(_) => {}
        }
    }

    fn pause(&mut self) {
        self.close_text();
    }

    fn end_text(&mut self) {
        self.close_text();
    }

    fn done(&mut self, calls: &CallCards) {
        while self.states.get(self.written) == Some(&CardState::Ready) {
            let call = &calls.list[self.written];
            self.states[self.written] = CardState::Written(call.state_name());
            self.written += 1;
            self.card(call);
        }
    }

    fn interrupt(&mut self) {}

    fn forget(&mut self, calls: usize) {
        self.states.drain(..calls.min(self.states.len()));
        self.written = self.written.saturating_sub(calls);
    }

    fn finish(&mut self) {
        self.close_text();
        self.form.end(&mut self.body, &self.outline);
        self.release(true);
    }
}
