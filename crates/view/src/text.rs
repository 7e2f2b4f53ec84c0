//! `text`: plain text for files and pipes; the same events always give the same text.

use crate::card;
use crate::escape::{one_line, safe};
use crate::story::{Page, Story, Tokens, Tone, Voice};
use crate::surface::FormRow;
use anstyle::Style;
use conversation::{CallState, Talk, Who};
use event::View;
use std::collections::HashMap;

pub(crate) const ROW: FormRow = FormRow {
    name: "text",
    help: "Plain text, with a line where a call starts and a line where it ends",
    view: |surface| Box::new(text(surface.colour == Some(true), surface.no_time)),
};

/// Returns the view for files and pipes.
pub fn text(colour: bool, no_time: bool) -> impl View {
    Story::new(PlainView::new(colour, no_time))
}

/// Maximum width of the arguments, and of the output, on the line of a call, in columns.
const BRIEF: usize = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextBlock {
    Text(Voice),
    Lines,
}

/// Plain text.
#[derive(Debug)]
struct PlainView {
    out: Vec<u8>,
    colour: bool,
    no_time: bool,
    now: Who,
    last: Option<TextBlock>,
    /// The number of line feeds at the end of the output; two before the first word, which needs no
    /// empty line before it.
    feeds: usize,
    /// The last part shown of each call: 1 its start, 2 that it needs approval, 3 its end.
    shown: HashMap<usize, u8>,
}

impl PlainView {
    fn new(colour: bool, no_time: bool) -> Self {
        PlainView {
            out: Vec::new(),
            colour,
            no_time,
            now: Who::default(),
            last: None,
            feeds: 2,
            shown: HashMap::new(),
        }
    }

    /// Starts or continues `block`, with a blank line before a new one; returns whether it is new.
    fn begin(&mut self, block: TextBlock) -> bool {
        let new = self.last != Some(block);
        let want = if new {
            2
        } else {
            usize::from(block == TextBlock::Lines)
        };
        let length = self.out.len() + want.saturating_sub(self.feeds);
        self.out.resize(length, b'\n');
        self.last = Some(block);
        new
    }

    fn write(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
        let kept = text.trim_end_matches('\n');
        let feeds = text.len() - kept.len();
        self.feeds = if kept.is_empty() {
            self.feeds + feeds
        } else {
            feeds
        };
    }

    /// Writes in `style` if colours are enabled. Each line gets its own style, because a terminal
    /// may reset the style at a line feed.
    fn paint(&mut self, style: Style, text: &str) {
        if !self.colour || style.is_plain() {
            return self.write(text);
        }
        for (n, line) in text.split('\n').enumerate() {
            if n > 0 {
                self.write("\n");
            }
            if !line.is_empty() {
                self.out
                    .extend_from_slice(style.render().to_string().as_bytes());
                self.write(line);
                self.out
                    .extend_from_slice(style.render_reset().to_string().as_bytes());
            }
        }
    }

    fn line(&mut self, style: Style, line: &str) {
        self.begin(TextBlock::Lines);
        self.paint(style, line);
        self.write("\n");
    }
}

impl Page for PlainView {
    const LIVE: bool = false;

    fn now(&mut self) -> &mut Who {
        &mut self.now
    }

    fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    fn text(&mut self, voice: Voice, text: &str) {
        let new = self.last != Some(TextBlock::Text(voice));
        // Models often start with empty lines, which would add to the blank line between blocks.
        let text = if new {
            text.trim_start_matches('\n')
        } else {
            text
        };
        if text.is_empty() {
            return;
        }
        let text = safe(text);
        if self.begin(TextBlock::Text(voice)) {
            let mark = if voice == Voice::User {
                Some(("> ", voice.style()))
            } else {
                voice.mark()
            };
            mark.into_iter()
                .for_each(|(text, style)| self.paint(style, text));
        }
        match voice {
            Voice::User => self.paint(voice.style(), &text.replace('\n', "\n> ")),
            _ => self.paint(voice.style(), &text),
        }
    }

    fn note(&mut self, tone: Tone, text: &str) {
        let text = one_line(text, 10 * BRIEF);
        let text = match tone {
            Tone::Heading | Tone::Quiet => format!("[{text}]"),
            Tone::Warning => format!("warning: {text}"),
            Tone::Error => format!("error: {text}"),
        };
        self.line(tone.style(), &text);
    }

    fn call(&mut self, talk: &Talk, at: usize) {
        let call = &talk.calls()[at];
        let Some(who) = talk.who(call) else {
            return;
        };
        let shown = self.shown.get(&at).copied().unwrap_or_default();
        let name = one_line(&call.name, BRIEF);
        // A call whose deltas were never merged is shown once no more deltas can arrive.
        if shown == 0 && !call.is_arriving() {
            self.shown.insert(at, 1);
            self.turn_to(who);
            let arguments = one_line(&call.arguments, BRIEF);
            self.line(Style::new(), format!("-> {name} {arguments}").trim_end());
        }
        // `tool-exec` answers a refused call; without it the refusal is the end of the call.
        let is_over = matches!(call.state, CallState::Refused | CallState::Incomplete);
        let ended = call.is_closed && (call.is_cancelled || call.is_lost() || is_over);
        let next = match call.state {
            CallState::Waiting => 2,
            _ => 3,
        };
        let shown = self.shown.get(&at).copied().unwrap_or_default();
        if (1..next).contains(&shown) && (call.has_ended() || ended) {
            self.shown.insert(at, next);
            let (badge, status) = card::status(call, self.no_time);
            let text = one_line(card::result_text(call), BRIEF);
            let text = if text.is_empty() {
                text
            } else {
                format!(": {text}")
            };
            self.turn_to(who);
            self.line(
                badge.style,
                &format!("<- {name} {}{text}", one_line(&status, BRIEF)),
            );
        }
    }

    fn pause(&mut self) {
        self.last = None;
    }

    fn end_text(&mut self) {}

    fn done(&mut self, _: &Talk) {}

    fn interrupt(&mut self) {}

    fn forget(&mut self, talk: &Talk) {
        self.shown.retain(|at, _| talk.calls().get(*at).is_some());
    }

    // Token counts are omitted because they differ from run to run.
    fn finish(&mut self, _: Tokens) {
        if self.feeds == 0 {
            self.write("\n");
        }
    }
}
