//! The page on a terminal: text that is wrapped between words, and below it the cards of the calls that may still change.
//!
//! The cards that may change are the last thing on the screen, and they are lifted (the cursor goes back to where the text
//! ended, and all below is cleared) whenever anything must be written, and then laid again. A card that will not change any
//! more, with none that may before it, is written for good. Nothing is ever written into the last column, so that no two
//! terminals disagree about where the cursor is.

use crate::Terminal;
use crate::calls::{Call, Calls};
use crate::card;
use crate::escape::{columns, one_line, safe, width};
use crate::story::{Page, Tone, Voice};
use crate::who::Who;
use anstyle::Style;
use std::io::Write;

/// The widest card, in columns.
const WIDEST: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Text(Voice),
    Notes,
    Cards,
}

/// A terminal.
#[derive(Debug)]
pub(crate) struct Screen {
    /// Columns that are written to.
    width: usize,
    rows: usize,
    colour: bool,
    no_time: bool,
    now: Who,
    last: Option<Block>,
    /// Line feeds at the end of what stays; two before the first word.
    feeds: usize,
    /// The column where the text goes on.
    column: usize,
    /// The word that the text ends with, so that it can move to the next line as a whole.
    word: String,
    /// Rows between the text's end and the cursor while cards lie below it.
    laid: Option<usize>,
    /// How many calls have their card written for good.
    kept: usize,
}

impl Screen {
    pub fn new(terminal: Terminal, no_time: bool) -> Self {
        Screen {
            width: terminal.columns.max(24) - 1,
            rows: terminal.rows.max(4),
            colour: terminal.colour,
            no_time,
            now: Who::default(),
            last: None,
            feeds: 2,
            column: 0,
            word: String::new(),
            laid: None,
            kept: 0,
        }
    }

    fn paint(&self, out: &mut Vec<u8>, style: Style, text: &str) {
        // Writing to a vector cannot fail.
        let _ = if self.colour { write!(out, "{style}{text}{style:#}") } else { write!(out, "{text}") };
    }

    /// Clears the cards that lie below the text and puts the cursor back to where the text ended.
    fn lift(&mut self, out: &mut Vec<u8>) {
        let Some(rows) = self.laid.take() else { return };
        out.push(b'\r');
        if rows > 0 {
            let _ = write!(out, "\x1b[{rows}A");
        }
        if self.column > 0 {
            let _ = write!(out, "\x1b[{}G", self.column + 1);
        }
        out.extend_from_slice(b"\x1b[J");
    }

    /// How many line feeds `block` needs before it.
    fn gap(&self, block: Block) -> usize {
        let want = if self.last == Some(block) { usize::from(!matches!(block, Block::Text(_))) } else { 2 };
        want.saturating_sub(self.feeds)
    }

    /// Begins or goes on with `block`; gives whether it is new.
    fn begin(&mut self, out: &mut Vec<u8>, block: Block) -> bool {
        self.lift(out);
        let (gap, new) = (self.gap(block), self.last != Some(block));
        if gap > 0 {
            out.resize(out.len() + gap, b'\n');
            self.feeds += gap;
            self.column = 0;
        }
        if new {
            self.word.clear();
        }
        self.last = Some(block);
        new
    }

    fn feed(&mut self, out: &mut Vec<u8>) {
        out.push(b'\n');
        self.column = 0;
        self.feeds += 1;
        self.word.clear();
    }

    /// Writes text, breaking lines between words; a word that turns out not to fit moves down with what is there of it.
    fn wrap(&mut self, out: &mut Vec<u8>, text: &str) {
        for c in text.chars() {
            let w = width(c);
            match c {
                '\n' => {
                    self.feed(out);
                    continue;
                }
                ' ' | '\t' => {
                    let w = if c == ' ' { 1 } else { 8 - self.column % 8 };
                    if self.column + w > self.width {
                        self.feed(out);
                    } else {
                        out.resize(out.len() + w, b' ');
                        self.column += w;
                    }
                    self.word.clear();
                    continue;
                }
                _ if self.column + w > self.width => {
                    let word = std::mem::take(&mut self.word);
                    let taken = columns(&word);
                    if taken > 0 && taken < self.column && w < 2 {
                        let _ = write!(out, "\x1b[{}G\x1b[K", self.column - taken + 1);
                        self.feed(out);
                        out.extend_from_slice(word.as_bytes());
                        self.column = taken;
                        self.word = word;
                    } else {
                        self.feed(out);
                    }
                }
                _ => {}
            }
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            self.column += w;
            self.feeds = 0;
            // Lines may break at each wide character; and there is no end to the accents that a letter can have.
            if w == 2 || self.word.len() > 8 * self.width {
                self.word.clear();
            } else {
                self.word.push(c);
            }
        }
    }

    /// The card of a call: one or two lines, without a line feed at the end. Gives how many.
    fn card(&self, out: &mut Vec<u8>, call: &Call) -> usize {
        let limit = self.width.min(WIDEST);
        let (sign, style, status) = card::status(call, self.no_time);
        let status = one_line(&status, limit / 2);
        let room = limit - columns(&status) - 6;
        out.extend_from_slice(b"  ");
        self.paint(out, style, sign);
        out.push(b' ');
        let name = one_line(&call.name, room);
        self.paint(out, Style::new().bold(), &name);
        let room = room - columns(&name);
        if room > 4 && !call.brief.is_empty() {
            out.extend_from_slice(b"  ");
            out.extend_from_slice(one_line(&call.brief, room - 2).as_bytes());
        }
        // An absolute column: whatever the terminal makes of emoji on the way, the signs of all cards stand in one line.
        let _ = write!(out, "\x1b[{}G", limit - columns(&status) + 1);
        let style = if sign == card::DONE { Style::new().dimmed() } else { style };
        self.paint(out, style, &status);
        let told = one_line(call.gist(), limit - 4);
        if told.is_empty() {
            return 1;
        }
        out.extend_from_slice(b"\n    ");
        self.paint(out, Style::new().dimmed(), &told);
        2
    }

    /// Writes a card for good.
    fn keep(&mut self, out: &mut Vec<u8>, call: &Call) {
        self.turn_to(out, &call.who);
        self.begin(out, Block::Cards);
        self.card(out, call);
        self.feeds = 0;
        self.feed(out);
    }

    /// Lays the cards that may still change below the text, as many as fit on the screen.
    fn lay(&mut self, out: &mut Vec<u8>, calls: &[Call]) {
        let gap = self.gap(Block::Cards);
        out.resize(out.len() + gap, b'\n');
        let (most, mut lines) = (self.rows - 1 - gap, 0);
        for (n, call) in calls.iter().enumerate() {
            if lines > 0 {
                out.push(b'\n');
            }
            if lines + 3 > most && n + 1 < calls.len() {
                let more = format!("    … and {} more calls", calls.len() - n);
                self.paint(out, Style::new().dimmed(), &more);
                lines += 1;
                break;
            }
            lines += self.card(out, call);
        }
        self.laid = Some(gap + lines - 1);
    }
}

impl Page for Screen {
    const LIVE: bool = true;

    fn now(&mut self) -> &mut Who {
        &mut self.now
    }

    fn text(&mut self, out: &mut Vec<u8>, voice: Voice, text: &str) {
        let block = Block::Text(voice);
        // The empty lines that models like to begin with would only double the one between blocks.
        let text = if self.last == Some(block) { text } else { text.trim_start_matches('\n') };
        if text.is_empty() {
            return;
        }
        let new = self.begin(out, block);
        let style = voice.style();
        if self.colour {
            let _ = write!(out, "{style}");
        }
        match voice {
            Voice::User if new => self.wrap(out, "❯ "),
            Voice::Thinking if new && !self.colour => self.wrap(out, "thinking: "),
            _ => {}
        }
        self.wrap(out, &safe(text));
        if self.colour {
            let _ = write!(out, "{style:#}");
        }
    }

    fn note(&mut self, out: &mut Vec<u8>, tone: Tone, text: &str) {
        self.begin(out, Block::Notes);
        let style = tone.style();
        let text = match tone {
            Tone::Heading => format!("[{text}]"),
            Tone::Figures | Tone::Quiet => format!("· {text}"),
            Tone::Warning => format!("! {text}"),
            Tone::Error => format!("✗ {text}"),
        };
        if self.colour {
            let _ = write!(out, "{style}");
        }
        self.wrap(out, &one_line(&text, 20 * WIDEST));
        if self.colour {
            let _ = write!(out, "{style:#}");
        }
        self.feed(out);
    }

    fn call(&mut self, out: &mut Vec<u8>, calls: &Calls, at: usize) {
        if at >= self.kept {
            self.lift(out);
        } else if calls.list[at].is_over() {
            // Its card was written for good when its turn was over; what came of it later gets one of its own.
            self.keep(out, &calls.list[at]);
        }
    }

    fn pause(&mut self) {
        self.last = None;
    }

    fn done(&mut self, out: &mut Vec<u8>, calls: &Calls) {
        while let Some(call) = calls.list.get(self.kept).filter(|c| c.is_settled()) {
            self.keep(out, call);
            self.kept += 1;
        }
        if self.laid.is_none() && self.kept < calls.list.len() {
            self.lay(out, &calls.list[self.kept..]);
        }
    }

    fn forget(&mut self, calls: usize) {
        self.kept -= calls;
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        if self.feeds == 0 {
            out.push(b'\n');
        }
    }
}
