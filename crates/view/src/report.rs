//! Reports: a run as one document, written while the log is read.
//!
//! A report is a [`Page`] of a [`Story`]. This file has the code that all reports share: which text
//! is open, which card can be written, and when the head is known. A [`ReportForm`] writes the
//! parts: [`html`] for a browser, [`github`] for issues and pull requests. The parts that need the
//! whole log (the totals, the turns and their times) are at the end of the document, and their size
//! is bounded; see [`outline`].

use crate::card::{self, Badge};
use crate::escape::one_line;
use crate::story::{Page, Story, Tokens, Tone, Voice};
use conversation::{Call, Talk, Who};
use event::{Event, Payload};
use excerpt::Excerpt;
use outline::{CallRun, Outline};
use passages::Passages;
use std::collections::HashMap;

mod excerpt;
mod github;
mod github_text;
mod html;
mod html_prose;
mod html_writer;
mod outline;
mod passages;

pub(crate) use github::ROW as GITHUB;
pub use github::markdown;
pub(crate) use html::ROW as HTML;
pub use html::{html, html_policy};
pub use outline::date;

/// Maximum bytes of the document that are buffered until the title is known.
const HELD: usize = 64 * 1024;

/// Maximum bytes shown of an output that is the answer.
const OUTPUT: usize = 64 * 1024;

/// Writes the parts of a report. Every method appends to `out`. Each text is passed whole, except
/// to [`ReportForm::plain`].
trait ReportForm {
    /// Whether this form translates a model's Markdown into its own markup; otherwise Markdown is
    /// written as plain text.
    const WRITES_MARKDOWN: bool;
    /// Maximum bytes shown of the arguments, the result and each fact on a card.
    const MOST: usize;
    /// Writes the beginning of the document.
    fn head(&mut self, out: &mut Vec<u8>, outline: &Outline);
    /// Begins a turn of the model, the latest turn in the outline.
    fn turn(&mut self, out: &mut Vec<u8>, outline: &Outline);
    /// Begins a text.
    fn open_text(&mut self, out: &mut Vec<u8>, voice: Voice, outline: &Outline);
    /// Writes a piece of a text that is not Markdown, or that this form does not translate.
    fn plain(&mut self, out: &mut Vec<u8>, text: &str);
    /// Writes complete blocks of a Markdown text.
    fn passage(&mut self, out: &mut Vec<u8>, passage: &str);
    /// Ends a text.
    fn close_text(&mut self, out: &mut Vec<u8>, voice: Voice);
    fn note(&mut self, out: &mut Vec<u8>, tone: Tone, text: &str);
    fn card(&mut self, out: &mut Vec<u8>, card: &ReportCard);
    /// Writes the end of the document.
    fn end(&mut self, out: &mut Vec<u8>, outline: &Outline, tokens: Tokens);
}

/// The card of a call. Its texts are truncated, with hidden characters made visible, but not yet
/// escaped for a form.
struct ReportCard {
    /// The number of the card in the document, from 1.
    n: usize,
    badge: Badge,
    /// The state of the call as text.
    word: String,
    name: String,
    brief: String,
    figures: Vec<String>,
    id: String,
    /// Pairs of a label and a text that is not empty.
    parts: Vec<(&'static str, Excerpt)>,
}

impl ReportCard {
    fn new(call: &Call, n: usize, no_time: bool, most: usize) -> Self {
        let (badge, word) = card::badge(call);
        let facts = card::facts(call).map(|(label, text)| (label, Excerpt::of(&text, most)));
        let last = match &call.answer {
            Some(answer) => ("result", Excerpt::of_json(&answer.output, most)),
            None => ("progress", Excerpt::of(&call.progress, most)),
        };
        let parts = [("arguments", Excerpt::of_json(&call.arguments, most))];
        let parts = parts.into_iter().chain(facts).chain([last]);
        ReportCard {
            n,
            badge,
            word: one_line(&word, 60),
            name: one_line(&call.name, 200),
            brief: card::brief(call),
            figures: card::figures(call, no_time).collect(),
            id: one_line(&call.id, 200),
            parts: parts.filter(|(_, text)| !text.text.is_empty()).collect(),
        }
    }
}

/// A report as a page of a story.
#[derive(Debug)]
struct ReportPage<F> {
    form: F,
    no_time: bool,
    outline: Outline,
    /// The part of the document that is written but not yet released to `out`.
    body: Vec<u8>,
    out: Vec<u8>,
    has_head: bool,
    now: Who,
    /// The voice of the text that the next piece may continue. `is_open` is whether any of that
    /// text is in the document.
    voice: Option<Voice>,
    is_open: bool,
    passages: Passages,
    /// The card state and the run of each call. Every call before `written` has a card.
    calls: HashMap<usize, ReportCall>,
    written: usize,
    /// The number of cards in the document.
    cards: usize,
}

/// What the report keeps about a call.
#[derive(Debug, Default)]
struct ReportCall {
    card: CardState,
    run: Option<CallRun>,
}

/// The state of the card of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum CardState {
    /// The call may still change.
    #[default]
    Open,
    /// The card can be written as soon as all earlier cards are.
    Ready,
    /// The latest card of the call has this badge.
    Written(Badge),
}

/// Creates a view that writes a report in this form.
fn story<F: ReportForm>(form: F, no_time: bool) -> Story<ReportPage<F>> {
    Story::new(ReportPage {
        form,
        no_time,
        outline: Outline::new(no_time),
        body: Vec::new(),
        out: Vec::new(),
        has_head: false,
        now: Who::default(),
        voice: None,
        is_open: false,
        passages: Passages::default(),
        calls: HashMap::new(),
        written: 0,
        cards: 0,
    })
}

/// Whether a text of this voice is rendered as Markdown, as on a terminal.
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

    /// Writes the passages that later text cannot change, or the whole text if it has ended.
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

    /// Writes a card for the call at this position.
    fn card(&mut self, talk: &Talk, at: usize) {
        let call = &talk.calls()[at];
        if let Some(who) = talk.who(call) {
            self.turn_to(who);
        }
        self.close_text();
        self.cards += 1;
        let card = ReportCard::new(call, self.cards, self.no_time, F::MOST);
        let entry = self.calls.entry(at).or_default();
        let earlier = match std::mem::replace(&mut entry.card, CardState::Written(card.badge)) {
            CardState::Written(badge) => Some(badge),
            CardState::Open | CardState::Ready => None,
        };
        self.outline.card(&card, entry.run.take(), earlier);
        self.form.card(&mut self.body, &card);
    }

    /// Moves the buffered document to `out`, once the title is known or too much is buffered.
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

    fn event(&mut self, event: &Event<'_>, payload: &Payload<'_>) {
        if self.outline.push(event, payload) {
            self.close_text();
            self.form.turn(&mut self.body, &self.outline);
        }
    }

    fn call_event(&mut self, event: &Event<'_>, payload: &Payload<'_>, at: usize) {
        match payload {
            Payload::ToolUse(call) => {
                let run = self.outline.begin_run(event, call);
                self.calls.entry(at).or_default().run = Some(run);
            }
            Payload::ToolResult(result) => {
                if let Some(run) = self.calls.get_mut(&at).and_then(|call| call.run.as_mut()) {
                    self.outline.end_run(run, result);
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, voice: Voice, text: &str) {
        if self.voice != Some(voice) {
            self.close_text();
        }
        // Models often begin with empty lines, which would widen the gap between blocks.
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
        if F::WRITES_MARKDOWN && is_markdown(voice) {
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

    fn call(&mut self, talk: &Talk, at: usize) {
        let call = &talk.calls()[at];
        if !call.is_settled() {
            return;
        }
        let card = &mut self.calls.entry(at).or_default().card;
        match *card {
            CardState::Open => {
                *card = CardState::Ready;
                self.done(talk);
            }
            // The card was written when the turn ended. A later result gets another card, and so
            // does a call that still has no result at the end of the log.
            CardState::Written(badge)
                if (call.has_ended() || call.is_lost()) && badge != card::badge(call).0 =>
            {
                self.card(talk, at);
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

    fn done(&mut self, talk: &Talk) {
        while let Some((at, _)) = talk.calls().from(self.written).next()
            && self
                .calls
                .get(&at)
                .is_some_and(|call| call.card == CardState::Ready)
        {
            self.card(talk, at);
            self.written = at + 1;
        }
    }

    fn interrupt(&mut self) {}

    fn forget(&mut self, talk: &Talk) {
        self.calls.retain(|at, _| talk.calls().get(*at).is_some());
    }

    fn finish(&mut self, tokens: Tokens) {
        self.close_text();
        self.form.end(&mut self.body, &self.outline, tokens);
        self.release(true);
    }
}
