//! The page on a terminal: text wrapped between words, and below it the cards of the calls that may
//! still change.
//!
//! The cards that may change are always last on the screen. Before anything is written they are
//! lifted: the cursor goes back to the end of the text, and everything below is cleared. Afterwards
//! they are laid again. A card that can no longer change is written permanently, unless an earlier
//! card may still change. A model's text is drawn as Markdown, see [`TerminalDraft`].

use super::draft::TerminalDraft;
use super::pen::{Pen, paint};
use crate::card::{self, Badge, heading};
use crate::escape::{columns, one_line};
use crate::story::{Page, Tokens, Tone, Voice};
use crate::surface::Terminal;
use anstyle::Style;
use conversation::{Call, CallState, Talk, Who};
use std::collections::HashMap;
use std::io::Write;

/// Maximum width of a card, in columns.
const WIDEST: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScreenBlock {
    Text(Voice),
    Notes,
    Cards,
}

/// The page on a terminal.
#[derive(Debug)]
pub(crate) struct Screen {
    pen: Pen,
    draft: TerminalDraft,
    no_time: bool,
    now: Who,
    last: Option<ScreenBlock>,
    /// The voice of the latest text, if the next text may continue it.
    voice: Option<Voice>,
    /// If cards are laid below the text: the number of rows between the end of the text and the
    /// cursor.
    laid: Option<usize>,
    /// The index of the first call without a permanent card.
    kept: usize,
    /// The shortened arguments of the other calls, which every redraw shows.
    briefs: HashMap<usize, String>,
    /// Whether other programs may write to the same terminal.
    interrupted: bool,
}

impl Screen {
    pub(super) fn new(terminal: Terminal, no_time: bool) -> Self {
        Screen {
            pen: Pen::new(terminal.columns, terminal.rows, terminal.colour),
            draft: TerminalDraft::default(),
            no_time,
            now: Who::default(),
            last: None,
            voice: None,
            laid: None,
            kept: 0,
            briefs: HashMap::new(),
            interrupted: false,
        }
    }

    /// Sets the size of the terminal. After it becomes narrower nothing is redrawn, since terminals
    /// treat rows that are now too wide in different ways.
    pub(super) fn resize(&mut self, columns: usize, rows: usize) {
        if columns <= self.pen.width {
            self.leave();
        }
        self.pen.resize(columns, rows);
    }

    /// Leaves the unfinished block and the cards as they are, and continues below them.
    fn leave(&mut self) {
        self.draft.keep(&self.pen);
        if let Some(rows) = self.laid.take() {
            self.pen.out.push(b'\n');
            self.pen.skip(rows + 1);
            self.last = Some(ScreenBlock::Cards);
        }
    }

    /// Clears the cards below the text, and moves the cursor back to the end of the text.
    fn lift(&mut self) {
        if let Some(rows) = self.laid.take() {
            self.pen.lift(rows);
        }
    }

    /// Returns how many line feeds must precede `block`.
    fn gap(&self, block: ScreenBlock) -> usize {
        let want = if self.last == Some(block) {
            usize::from(!matches!(block, ScreenBlock::Text(_)))
        } else {
            2
        };
        want.saturating_sub(self.pen.feeds)
    }

    /// Begins or continues `block`; returns whether it is new.
    fn begin(&mut self, block: ScreenBlock) -> bool {
        self.lift();
        let new = self.last != Some(block);
        if new {
            self.draft.finish(&mut self.pen);
        }
        for _ in 0..self.gap(block) {
            self.pen.feed();
        }
        self.last = Some(block);
        new
    }

    /// Draws the card of a call, without a final line feed. Returns the card and its number of
    /// rows.
    fn card(&self, call: &Call, brief: &str) -> (Vec<u8>, usize) {
        let mut out = Vec::new();
        let mut rows = 1;
        let limit = self.pen.width.min(WIDEST);
        let room = limit.saturating_sub(4);
        let paint =
            |out: &mut Vec<u8>, style: Style, text: &str| paint(out, self.pen.colour, style, text);
        let (badge, status) = card::status(call, self.no_time);
        // For a call that succeeded, the sign suffices if figures follow.
        let (status, status_style) = match badge {
            Badge::DONE => (
                status.strip_prefix("done, ").unwrap_or(&status),
                Style::new().dimmed(),
            ),
            _ => (&*status, badge.style),
        };
        let was_called = call.state == CallState::Retracted && !call.was_started;
        let not_run = if was_called && !call.is_cancelled {
            ", not run"
        } else {
            ""
        };
        let name = one_line(&call.name, room);
        let status = one_line(&format!("{status}{not_run}"), room);
        // If the terminal is too narrow, the status goes into its own row.
        let fits = columns(&name) + columns(&status) + 2 <= room;
        out.extend_from_slice(b"  ");
        paint(&mut out, badge.style, badge.sign);
        out.push(b' ');
        paint(&mut out, Style::new().bold(), &name);
        let left =
            room.saturating_sub(columns(&name) + if fits { columns(&status) + 2 } else { 0 });
        if left > 4 && !brief.is_empty() {
            out.extend_from_slice(b"  ");
            out.extend_from_slice(one_line(brief, left - 2).as_bytes());
        }
        if fits {
            // An absolute column, so that the ends of all cards are aligned however wide the
            // terminal draws emoji before it.
            let _ = write!(out, "\x1b[{}G", limit - columns(&status) + 1);
        } else {
            out.extend_from_slice(b"\n    ");
            rows += 1;
        }
        paint(&mut out, status_style, &status);
        let gist = one_line(card::gist(call), room);
        if !gist.is_empty() {
            out.extend_from_slice(b"\n    ");
            paint(&mut out, Style::new().dimmed(), &gist);
            rows += 1;
        }
        (out, rows)
    }

    /// Writes the card of the call at this position permanently.
    fn keep(&mut self, talk: &Talk, at: usize) {
        let call = &talk.calls()[at];
        if let Some(who) = talk.who(call) {
            self.turn_to(who);
        }
        self.begin(ScreenBlock::Cards);
        self.briefs.remove(&at);
        let (card, rows) = self.card(call, &card::brief(call));
        self.pen.out.extend_from_slice(&card);
        self.pen.out.push(b'\n');
        self.pen.skip(rows);
    }

    /// Lays the cards that may still change below the text, as many as fit on the screen.
    fn lay(&mut self, talk: &Talk) {
        let gap = self.gap(ScreenBlock::Cards);
        // The current row stays on the screen.
        let most = self.pen.rows - gap;
        let mut rows = 0;
        let mut cards = vec![b'\n'; gap];
        let mut who = &self.now;
        let mut left = talk.calls().from(self.kept).count();
        for (at, call) in talk.calls().from(self.kept) {
            let brief = self.briefs.get(&at).map_or("", |brief| brief);
            let (card, mut needed) = self.card(call, brief);
            let of = talk.who(call).unwrap_or(who);
            let heading =
                (of != who).then(|| one_line(&format!("[{}]", heading(of)), self.pen.width));
            needed += usize::from(heading.is_some());
            let more = left > 1;
            if rows > 0 {
                cards.push(b'\n');
            }
            if rows + needed + if more { 3 } else { 0 } > most {
                let more = one_line(&format!("… and {left} more calls"), self.pen.width - 4);
                paint(
                    &mut cards,
                    self.pen.colour,
                    Style::new().dimmed(),
                    &format!("    {more}"),
                );
                rows += 1;
                break;
            }
            if let Some(heading) = heading {
                paint(&mut cards, self.pen.colour, Tone::Heading.style(), &heading);
                cards.push(b'\n');
                who = of;
            }
            cards.extend_from_slice(&card);
            rows += needed;
            left -= 1;
        }
        let below = gap + rows - 1;
        self.draft.make_room(&mut self.pen, below);
        self.pen.out.extend_from_slice(&cards);
        self.pen.laid(below);
        self.laid = Some(below);
    }
}

impl Page for Screen {
    const LIVE: bool = true;

    fn now(&mut self) -> &mut Who {
        &mut self.now
    }

    fn out(&mut self) -> &mut Vec<u8> {
        &mut self.pen.out
    }

    fn text(&mut self, voice: Voice, text: &str) {
        let block = ScreenBlock::Text(voice);
        // Models often begin with empty lines, which would widen the gap between blocks.
        let text = if self.last == Some(block) {
            text
        } else {
            text.trim_start_matches('\n')
        };
        if text.is_empty() {
            return;
        }
        let new = self.begin(block);
        if self.voice != Some(voice) {
            self.voice = Some(voice);
            self.draft.reset(voice.style());
        }
        let mark = match voice {
            Voice::User => Some(("❯ ", voice.style())),
            Voice::Thinking if self.pen.colour => None,
            _ => voice.mark(),
        };
        mark.filter(|_| new)
            .into_iter()
            .for_each(|(text, style)| self.pen.put(text, style));
        match voice {
            Voice::Thinking | Voice::Answer | Voice::Refusal => {
                self.draft.push(&mut self.pen, text)
            }
            Voice::User | Voice::Output => self.pen.put(text, voice.style()),
        }
    }

    fn note(&mut self, tone: Tone, text: &str) {
        self.begin(ScreenBlock::Notes);
        let text = match tone {
            Tone::Heading => format!("[{text}]"),
            Tone::Quiet => format!("· {text}"),
            Tone::Warning => format!("! {text}"),
            Tone::Error => format!("✗ {text}"),
        };
        self.pen.put(&one_line(&text, 20 * WIDEST), tone.style());
        self.pen.feed();
    }

    fn call(&mut self, talk: &Talk, at: usize) {
        let call = &talk.calls()[at];
        if at >= self.kept {
            self.briefs.insert(at, card::brief(call));
            self.lift();
        } else if call.has_ended() || call.is_lost() {
            // The card of this call was written permanently when its turn ended. A later result
            // gets another card, and so does a call that still has no result at the end of the log.
            self.keep(talk, at);
        }
    }

    fn pause(&mut self) {
        self.last = None;
        self.voice = None;
    }

    fn end_text(&mut self) {
        self.lift();
        self.draft.finish(&mut self.pen);
    }

    fn done(&mut self, talk: &Talk) {
        while let Some((at, call)) = talk.calls().from(self.kept).next()
            && call.is_settled()
        {
            self.keep(talk, at);
            self.kept = at + 1;
        }
        let is_left = talk.calls().end() > self.kept;
        if self.laid.is_none() && is_left && !self.interrupted {
            self.lay(talk);
        }
    }

    fn interrupt(&mut self) {
        // Other programs may move the cursor from now on, so nothing is redrawn, and each card is
        // written once, when it can no longer change.
        self.leave();
        if self.last != Some(ScreenBlock::Cards) {
            self.pen.end_row();
        }
        self.pen.fix();
        self.interrupted = true;
    }

    fn forget(&mut self, talk: &Talk) {
        self.briefs.retain(|at, _| talk.calls().get(*at).is_some());
    }

    fn finish(&mut self, tokens: Tokens) {
        if tokens != Tokens::default() {
            let (Tokens { read, written, .. }, price) = (tokens, tokens.price());
            self.note(Tone::Quiet, &format!("{read} in · {written} out{price}"));
        }
        self.draft.finish(&mut self.pen);
        self.pen.end_row();
    }
}
