//! Messages with headers: Harmony (gpt-oss) and Muse.
//!
//! `<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{…}<|call|>`:
//! the header decides whether its body is reasoning, the answer, or the arguments of a call. The
//! beginning of the first header may be in the prompt.
//!
//! Sources: [OpenAI's
//! description](https://github.com/openai/harmony/blob/20cd04c17fa327f01f9f28240fb70183d4feb406/docs/format.md);
//! the recipient follows the role or the channel (<https://github.com/openai/harmony/issues/40>);
//! models write malformed headers (<https://github.com/ggml-org/llama.cpp/issues/27720>); vLLM's
//! [parser for
//! Muse](https://github.com/vllm-project/vllm/blob/9c13dbc473d2f247c7278a764d7c751af90e8111/vllm/tool_parsers/muse_glimmer_tool_parser.py).

use crate::calls::NAME_REPAIRED;
use crate::calls::{ReadStep, is_name_char};
use crate::dialect::{CallPart, Form, KnownTool, Scope};
use crate::look::MarkerMeaning;
use crate::mark::{Match, find, space};
use crate::outlet::{DROPPED, Outlet, Prose};
use crate::parser::contest::Exclusion;
use crate::parser::router::{Mode, OpenHeader, Router, TextEnd, Transition};
use event::cut;
use std::rc::Rc;

/// The maximum length of a header, in bytes.
const LONGEST: usize = 512;
/// The maximum white space between two messages, or before the body of a message to a tool, in
/// bytes.
const GAP: usize = 256;
const MESSAGE: &str = "<|message|>";
const START: &[&str] = &["<|start|>"];
/// The markers that end a body if no text or another header follows.
const ENDS: &[&str] = &["<|end|>", "<|return|>", "<|call|>", "<|eom|>", "<|eot|>"];
/// The markers in a header.
const TOKENS: &[&str] = &["<|start|>", "<|channel|>", "<|constrain|>", MESSAGE];

/// The body of a message to a tool.
static BODY: Form = Form {
    section: None,
    call: &[
        CallPart::Arguments,
        CallPart::Space(""),
        CallPart::Maybe {
            marks: ENDS,
            write: true,
        },
    ],
    between: "",
    scope: Scope::Anywhere,
    needs: KnownTool::Listed,
    residue: &[],
};

/// The recipient of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Recipient {
    User,
    /// The model itself, so the message is reasoning.
    Model,
    /// A tool. The flag is set if the header names it as a tool (`functions.NAME`).
    Tool(String, bool),
}

impl Router {
    /// Reads a header up to its end.
    pub(super) fn header(
        &mut self,
        header: OpenHeader,
        text: &str,
        out: &mut dyn Outlet,
    ) -> Transition {
        // Search no farther than the maximum header length, so that text with many beginnings of
        // headers takes linear time.
        let end = cut(text, LONGEST + MESSAGE.len()).find(MESSAGE);
        let fields = &text[..end.unwrap_or(text.len())];
        if !is_header(fields, end.is_some()) {
            if !header.is_quoted && cut(fields, LONGEST).contains("to=") {
                self.residue.get_or_insert("to=");
            }
            // The text is not a header: it belongs to the state before.
            let mode = match header.body {
                Some(prose) => Mode::Body(prose, Exclusion::All),
                None => Mode::Answer(Exclusion::All),
            };
            return (mode, ReadStep::On(0));
        }
        let Some(end) = end else {
            return (Mode::Header(header), ReadStep::More(0));
        };
        let length = end + MESSAGE.len();
        // LLM-jp writes a space after each marker
        // (<https://github.com/llm-jp/llm-jp-tokenizer/pull/32>).
        self.position.skips_space = fields.contains("|> ");
        if header.is_quoted {
            let prose = self.literal(Prose::Answer, &text[..length], out);
            self.position.is_example = true;
            // The body is quoted because its header is.
            self.position.quote.cite();
            return (prose.into(), ReadStep::On(length));
        }
        // Headers mark reasoning, so a prompt for them does not open reasoning.
        self.emitter.settle_prompt(out);
        self.position.restart();
        let recipient = self.recipient(fields, out);
        let refusal = match &recipient {
            Recipient::Tool(..) if !is_assistants(fields) => {
                Some("not a call: the role of the message is not the assistant")
            }
            Recipient::Tool(name, _) if !self.knows(name) => {
                Some("not a call: the tool is not in the list")
            }
            _ => None,
        };
        if let Some(message) = refusal {
            self.emitter.warn("tag_unparsed", message, fields, out);
        } else if !matches!(recipient, Recipient::Tool(..))
            && fields.contains(['=', '.'])
            && !fields.contains("to=")
        {
            let message = "dropped the header of a message, whose recipient is malformed";
            out.warning(DROPPED, message, fields);
        }
        out.left_out(&text[..length]);
        let mode = match recipient {
            _ if refusal.is_some() => Mode::body(Prose::Answer),
            Recipient::User => Mode::body(Prose::Answer),
            Recipient::Model => Mode::body(Prose::Reasoning),
            Recipient::Tool(name, true) => self.begin_named(&BODY, &name, out),
            Recipient::Tool(name, false) => Mode::ToolBody(name),
        };
        (mode, ReadStep::On(length))
    }

    /// Returns the recipient of the message with this header. A model that writes a tool as the
    /// channel, or a tool's name with framing, means that tool.
    fn recipient(&self, header: &str, out: &mut dyn Outlet) -> Recipient {
        let found = recipient(header);
        let (word, is_function) = match &found {
            Recipient::User if is_assistants(header) => match channel(header) {
                None | Some("final" | "commentary" | "comment") => return found,
                Some(word) => (word.to_owned(), false),
            },
            Recipient::Tool(name, is_function) if self.tools.is_some() && !self.knows(name) => {
                let space = if *is_function { "functions." } else { "" };
                (format!("{space}{name}"), *is_function)
            }
            _ => return found,
        };
        match self.meant(&word) {
            Some(tool) => {
                out.warning("name_repaired", NAME_REPAIRED, header);
                Recipient::Tool(tool.to_owned(), is_function)
            }
            None => found,
        }
    }

    /// Reads the body of a message for the user or for the model itself, unchanged up to its end.
    pub(super) fn body(
        &mut self,
        prose: Prose,
        exclusion: Exclusion,
        text: &str,
        out: &mut dyn Outlet,
    ) -> Transition {
        if std::mem::take(&mut self.position.skips_space) && text.starts_with(' ') {
            out.left_out(" ");
            return (Mode::Body(prose, exclusion), ReadStep::On(1));
        }
        let (mut emitted, mut i) = (0, 0);
        while let Some(at) = memchr::memchr(b'<', &text.as_bytes()[i..]).map(|n| i + n) {
            let rest = &text[at..];
            i = at + 1;
            if at == 0 && exclusion == Exclusion::All {
                continue;
            }
            let start = find(START, rest);
            let (length, end) = match find(ENDS, rest) {
                Match::Full(length) if space(&rest[length..]) > GAP => (0, Match::No),
                Match::Full(length) => (length, find(START, rest[length..].trim_ascii_start())),
                found => (0, found),
            };
            if start == Match::No && end == Match::No {
                continue;
            }
            self.literal(prose, &text[emitted..at], out);
            emitted = at;
            // A marker in a JSON string is data.
            if self.position.quote.is_data() {
                continue;
            }
            match (start, end) {
                (_, Match::Full(_)) => {
                    out.left_out(&rest[..length]);
                    self.position.restart();
                    return (Mode::default(), ReadStep::On(at + length));
                }
                // A quoted header is an example.
                (Match::Full(_), _) if self.position.quote.is_quoted() => {}
                (Match::Full(_), _) => {
                    return (
                        Mode::Header(OpenHeader {
                            body: Some(prose),
                            is_quoted: false,
                        }),
                        ReadStep::On(at),
                    );
                }
                _ => return (Mode::body(prose), ReadStep::More(at)),
            }
        }
        self.literal(prose, &text[emitted..], out);
        (Mode::body(prose), ReadStep::On(text.len()))
    }

    /// Reads the text before the body of a message to a tool: the first byte of the body decides
    /// how the call is written.
    pub(super) fn tool_body(
        &mut self,
        name: String,
        text: &str,
        out: &mut dyn Outlet,
    ) -> Transition {
        let at = space(text);
        if at <= GAP && self.knows(&name) {
            let look = Rc::clone(&self.look);
            for (form, marks) in &look.bodies {
                match find(marks, &text[at..]) {
                    Match::Full(_) => return (self.begin_named(form, &name, out), ReadStep::On(0)),
                    Match::Partial if at < text.len() => {
                        return (Mode::ToolBody(name), ReadStep::More(0));
                    }
                    _ => {}
                }
            }
        }
        let mode = match text.as_bytes().get(at) {
            _ if at > GAP => Mode::body(Prose::Answer),
            None => return (Mode::ToolBody(name), ReadStep::More(0)),
            Some(b'{') if self.knows(&name) => self.begin_named(&BODY, &name, out),
            Some(b'<') => Mode::default(),
            Some(_) => Mode::body(Prose::Answer),
        };
        let is_read = match mode {
            Mode::Answer(_) => {
                let is_form = |t: MarkerMeaning| t.form().is_some();
                match self.look.find(&text[at..], is_form) {
                    Match::Partial => return (Mode::ToolBody(name), ReadStep::More(0)),
                    found => !matches!(found, Match::No),
                }
            }
            Mode::Body(..) => false,
            _ => true,
        };
        if !is_read {
            let message = "not a call: the body of a message to this tool is not its arguments";
            self.emitter.warn("tag_unparsed", message, &name, out);
        }
        (mode, ReadStep::On(0))
    }

    /// Ends the text outside calls, in this way; `held` was held back.
    pub(super) fn finish_text(
        &mut self,
        mode: &Mode,
        held: &str,
        end: TextEnd,
        out: &mut dyn Outlet,
    ) {
        match mode {
            Mode::Body(..) if matches!(find(ENDS, held), Match::Full(n) if held[n..].trim_ascii().is_empty()) =>
            {
                self.emitter.decide(Prose::Answer, out);
                return out.left_out(held);
            }
            Mode::Header(OpenHeader {
                is_quoted: false, ..
            }) => {
                if end == TextEnd::Cut {
                    let message =
                        "dropped the header of a message, since the text was cut inside it";
                    self.emitter.warn(DROPPED, message, held, out);
                    return self.emitter.left_out(held, out);
                }
                let message = "not a call: the text ends inside the message header";
                self.emitter.warn("tag_unparsed", message, held, out);
            }
            // At the end of the text, no longer marker can follow.
            Mode::Answer(Exclusion::Nothing | Exclusion::Unmarked) if self.drops(held) => {
                self.emitter.warn(
                    DROPPED,
                    &format!("dropped {held}, a token of chat templates"),
                    held,
                    out,
                );
                return self.emitter.left_out(held, out);
            }
            Mode::ToolBody(_) => {
                let message = "not a call: the text ends before the arguments";
                self.emitter.warn("tag_unparsed", message, "", out);
            }
            _ => {}
        }
        self.literal(mode.prose(), held, out);
    }
}

/// Whether the message with this header is reasoning; `None` if the text is not the header of a
/// message to the user or the model.
pub(crate) fn header_is_reasoning(header: &str) -> Option<bool> {
    let header = header
        .strip_suffix(MESSAGE)
        .filter(|header| is_header(header, true))?;
    match recipient(header) {
        Recipient::Model => Some(true),
        Recipient::User => Some(false),
        Recipient::Tool(..) => None,
    }
}

/// Returns the state after the prompt: the body of a message, or `None` if the prompt does not end
/// with a header.
pub(super) fn prefilled(prefill: &str) -> Option<Mode> {
    let header = prefill[prefill.rfind(START[0])?..]
        .strip_suffix(MESSAGE)
        .filter(|header| is_header(header, true))?;
    Some(match recipient(header) {
        Recipient::Model => Mode::body(Prose::Reasoning),
        Recipient::User => Mode::body(Prose::Answer),
        Recipient::Tool(name, _) => Mode::ToolBody(name),
    })
}

/// Whether a text is a header or, if it is incomplete, the beginning of a header.
fn is_header(text: &str, is_complete: bool) -> bool {
    if text.len() > LONGEST {
        return false;
    }
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c == '<' {
            match find(TOKENS, rest) {
                Match::Full(length) => rest = &rest[length..],
                Match::Partial if !is_complete || rest == "<" => return true,
                // A stray `<` before a marker does not hide it.
                Match::No if rest[1..].starts_with('<') => rest = &rest[1..],
                Match::Partial | Match::No => return false,
            }
        } else if is_name_char(c) || matches!(c, ' ' | '=') {
            rest = &rest[c.len_utf8()..];
        } else {
            return false;
        }
    }
    true
}

/// Whether the role in this header is the assistant's, or missing. A model may continue with the
/// user's message.
fn is_assistants(header: &str) -> bool {
    let Some(at) = header.rfind(START[0]) else {
        return true;
    };
    let role = header[at + START[0].len()..].trim_start();
    let role = &role[..role.find([' ', '<']).unwrap_or(role.len())];
    matches!(role, "" | "assistant") || role.starts_with("to=")
}

/// Returns the recipient of the message with this header.
fn recipient(header: &str) -> Recipient {
    let to = header.rfind("to=").map(|at| {
        let name = &header[at + 3..];
        &name[..name.find([' ', '<']).unwrap_or(name.len())]
    });
    match to {
        Some("self") => Recipient::Model,
        None | Some("user" | "all" | "assistant" | "") => match channel(header) {
            Some("analysis" | "thought") => Recipient::Model,
            _ => Recipient::User,
        },
        Some(name) => match name.strip_prefix("functions.") {
            Some(short) => Recipient::Tool(short.to_owned(), true),
            None => Recipient::Tool(name.to_owned(), false),
        },
    }
}

/// Returns the channel that a header names. The last of several counts, because a model may restart
/// its header without ending the first (<https://github.com/ggml-org/llama.cpp/issues/27720>).
fn channel(header: &str) -> Option<&str> {
    let at = header.rfind("<|channel|>")? + "<|channel|>".len();
    header[at..]
        .trim_start_matches(' ')
        .split([' ', '<'])
        .next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers() {
        for (header, want) in [
            ("<|channel|>analysis", Recipient::Model),
            ("<|start|>assistant<|channel|>final", Recipient::User),
            ("<|channel|>commentary", Recipient::User),
            (
                "<|channel|>commentary to=functions.f <|constrain|>json",
                Recipient::Tool("f".into(), true),
            ),
            (
                " to=functions.f<|channel|>analysis",
                Recipient::Tool("f".into(), true),
            ),
            (" to=user", Recipient::User),
            ("<|start|>assistant to=self", Recipient::Model),
            (" to=f", Recipient::Tool("f".into(), false)),
            ("<|start|> assistant<|channel|> analysis", Recipient::Model),
            (
                "<|channel|>commentary to=functions.f <",
                Recipient::Tool("f".into(), true),
            ),
            (
                "<|channel|>commentary to=functions.f <<|constrain|>json",
                Recipient::Tool("f".into(), true),
            ),
            (
                "<|channel|>commentary to=assistant<|channel|>analysis",
                Recipient::Model,
            ),
        ] {
            assert!(is_header(header, true) && is_header(header, false));
            assert_eq!(recipient(header), want, "{header}");
        }
        for (header, want) in [
            (
                "<|start|>assistant<|channel|>commentary to=functions.f",
                true,
            ),
            ("<|start|> assistant to=functions.f", true),
            ("<|channel|>commentary to=functions.f", true),
            ("<|start|>user to=functions.f", false),
            (
                "<|start|>functions.g to=functions.f<|channel|>commentary",
                false,
            ),
        ] {
            assert_eq!(is_assistants(header), want, "{header}");
        }
        for is_complete in [true, false] {
            for text in [
                "<|channel|>x\ny",
                "<|start|>a<|end|>",
                "<|start|>a< b",
                "<|start|>a<|cha<|",
            ] {
                assert!(!is_header(text, is_complete), "{text}");
            }
            assert_eq!(is_header("<|start|>a<|cha", is_complete), !is_complete);
        }
    }
}
