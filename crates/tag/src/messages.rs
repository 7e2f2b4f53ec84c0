//! Messages with headers: Harmony (gpt-oss) and Muse.
//!
//! `<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{…}<|call|>`: the header says whether
//! its body is reasoning, the answer, or the arguments of a call. The recipient stands in the role or in the channel; the first
//! header of an answer may lack its beginning, which was in the prompt.
//! Source: the Harmony response format of OpenAI (openai/harmony, docs/format.md) and what models do beside it.

use crate::dialect::{Form, Needs, Part, Scope};
use crate::mark::{Found, find, space};
use crate::outlet::Outlet;
use crate::parser::{Flow, Mode, Parser, Tried, floor};

/// The longest header, in bytes.
const LONGEST: usize = 512;
/// White space between two messages, or before the body of one to a tool, is waited through for this many bytes.
const GAP: usize = 256;
const MESSAGE: &str = "<|message|>";
const START: &[&str] = &["<|start|>"];
/// What ends a body, where nothing or another header follows.
const ENDS: &[&str] = &["<|end|>", "<|return|>", "<|call|>", "<|eom|>", "<|eot|>"];
/// What a header is made of, beside names.
const TOKENS: &[&str] = &["<|start|>", "<|channel|>", "<|constrain|>", MESSAGE];

/// The body of a message to a tool.
static BODY: Form = Form {
    section: None,
    call: &[Part::Arguments, Part::Space(""), Part::Maybe { marks: ENDS, write: true }],
    between: "",
    scope: Scope::Anywhere,
    needs: Needs::Listed,
};

/// Whom a message is for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Recipient {
    Reader,
    Nobody,
    /// A tool; the flag says that it was named as one (`functions.NAME`).
    Tool(String, bool),
}

impl Parser {
    /// At a header: waits for its end, and goes into its body.
    pub(crate) fn header(&mut self, text: &str, out: &mut dyn Outlet) -> Flow {
        // No farther than a header may reach: text that only looks like many headers is searched once.
        let Some(end) = text[..floor(text, LONGEST + MESSAGE.len())].find(MESSAGE) else {
            return if is_header(text) { Flow::Wait(0) } else { self.no_header() };
        };
        let header = &text[..end];
        let length = end + MESSAGE.len();
        if !is_header(header) {
            return self.no_header();
        }
        if self.cited {
            self.literal(&text[..length], out);
            // The body is quoted as its header is.
            self.quote.cite();
            self.mode = Mode::Text;
            return Flow::Took(length);
        }
        self.decide(false, out);
        self.restart();
        // Such messages say themselves what is reasoning.
        self.unknown = false;
        match recipient(header) {
            Recipient::Reader => self.mode = Mode::Body { reasoning: false },
            Recipient::Nobody => self.mode = Mode::Body { reasoning: true },
            Recipient::Tool(..) if !is_assistants(header) => {
                let message = "not a call: the role of the message is not the assistant";
                out.warning("tag_unparsed", message, header);
                self.mode = Mode::Body { reasoning: false };
            }
            Recipient::Tool(name, named) => {
                let known = self.tools.as_ref().is_none_or(|tools| tools.knows(&name));
                if !known {
                    let message = "not a call: the tool is not in the list";
                    out.warning("tag_unparsed", message, header);
                    self.mode = Mode::Body { reasoning: false };
                } else if named {
                    out.left_out(&text[..length]);
                    self.begin_named(&BODY, &name, out);
                    return Flow::Took(length);
                } else {
                    self.mode = Mode::ToolBody { name };
                }
            }
        }
        out.left_out(&text[..length]);
        Flow::Took(length)
    }

    /// What looked like a header is text.
    fn no_header(&mut self) -> Flow {
        let Mode::Header(before) = std::mem::replace(&mut self.mode, Mode::Text) else { return Flow::Took(0) };
        self.mode = *before;
        self.refused = Tried::all();
        Flow::Took(0)
    }

    /// The body of a message for the reader or for nobody: as it stands, up to its end.
    pub(crate) fn body(&mut self, text: &str, out: &mut dyn Outlet) -> Flow {
        let refused = std::mem::take(&mut self.refused).marked;
        let (mut said, mut i) = (0, 0);
        while let Some(at) = memchr::memchr(b'<', &text.as_bytes()[i..]).map(|n| i + n) {
            let rest = &text[at..];
            i = at + 1;
            if refused && at == 0 {
                continue;
            }
            let start = find(START, rest);
            let (length, end) = match find(ENDS, rest) {
                Found::Here(length) if space(&rest[length..]) > GAP => (0, Found::No),
                Found::Here(length) => (length, find(START, rest[length..].trim_ascii_start())),
                found => (0, found),
            };
            if start == Found::No && end == Found::No {
                continue;
            }
            self.literal(&text[said..at], out);
            said = at;
            // An end of the message in a string of JSON is what the message is about.
            if self.quote.is_data() {
                continue;
            }
            match (start, end) {
                (_, Found::Here(_)) => {
                    out.left_out(&rest[..length]);
                    self.mode = Mode::Text;
                    self.restart();
                    return Flow::Took(at + length);
                }
                // A header that is quoted is what the message is about.
                (Found::Here(_), _) if self.quote.is_quoted() => {}
                (Found::Here(_), _) => {
                    (self.mode, self.cited) = (Mode::Header(Box::new(self.mode.clone())), false);
                    return Flow::Took(at);
                }
                _ => return Flow::Wait(at),
            }
        }
        self.literal(&text[said..], out);
        Flow::Took(text.len())
    }

    /// Whether what is held at the end of the text is a body's end.
    pub(crate) fn ends_body(&self, held: &str) -> bool {
        matches!(self.mode, Mode::Body { .. })
            && matches!(find(ENDS, held), Found::Here(n) if held[n..].trim_ascii().is_empty())
    }

    /// The first byte of a message to a tool tells how its call is written.
    pub(crate) fn tool_body(&mut self, text: &str, out: &mut dyn Outlet) -> Flow {
        let at = space(text);
        if at > GAP {
            self.mode = Mode::Body { reasoning: false };
            return Flow::Took(0);
        }
        let Some(first) = text.as_bytes().get(at) else { return Flow::Wait(0) };
        let Mode::ToolBody { name } = std::mem::replace(&mut self.mode, Mode::Text) else { return Flow::Took(0) };
        let known = self.tools.as_ref().is_none_or(|tools| tools.knows(&name));
        if *first == b'{' && known {
            self.begin_named(&BODY, &name, out);
            return Flow::Took(0);
        }
        if *first != b'<' {
            self.mode = Mode::Body { reasoning: false };
        }
        Flow::Took(0)
    }

    /// Goes where the end of the prompt leads: into a body, or before a header.
    pub(crate) fn prefilled(&mut self, prefill: &str) {
        if !self.look.messages {
            return;
        }
        let Some(at) = prefill.rfind(START[0]) else { return };
        let Some(header) = prefill[at..].strip_suffix(MESSAGE).filter(|header| is_header(header)) else { return };
        match recipient(header) {
            Recipient::Nobody => self.mode = Mode::Body { reasoning: true },
            Recipient::Reader => self.mode = Mode::Body { reasoning: false },
            Recipient::Tool(name, _) => self.mode = Mode::ToolBody { name },
        }
    }
}

/// Whether a text is a header, or the beginning of one.
fn is_header(text: &str) -> bool {
    if text.len() > LONGEST {
        return false;
    }
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c == '<' {
            match find(TOKENS, rest) {
                Found::Here(length) => rest = &rest[length..],
                Found::Perhaps => return true,
                Found::No => return false,
            }
        } else if c.is_alphanumeric() || matches!(c, ' ' | '=' | '_' | '-' | '.' | ':' | '/') {
            rest = &rest[c.len_utf8()..];
        } else {
            return false;
        }
    }
    true
}

/// Whether the role of this header is the assistant's, or not said: a model may go on and write the user's message too.
fn is_assistants(header: &str) -> bool {
    let Some(at) = header.rfind(START[0]) else { return true };
    let role = header[at + START[0].len()..].trim_start();
    let role = &role[..role.find([' ', '<']).unwrap_or(role.len())];
    matches!(role, "" | "assistant") || role.starts_with("to=")
}

/// Whom the message of this header is for.
fn recipient(header: &str) -> Recipient {
    let to = header.rfind("to=").map(|at| {
        let name = &header[at + 3..];
        &name[..name.find([' ', '<']).unwrap_or(name.len())]
    });
    // Of several channels the last counts: a model that began a header anew did not end the first.
    let channel = header.rfind("<|channel|>").map(|at| &header[at + "<|channel|>".len()..]);
    let channel = channel.map(|text| text.split([' ', '<']).next().unwrap_or_default());
    match to {
        Some("self") => Recipient::Nobody,
        None | Some("user" | "all" | "assistant" | "") => match channel {
            Some("analysis" | "thought") => Recipient::Nobody,
            _ => Recipient::Reader,
        },
        Some(name) => match name.strip_prefix("functions.") {
            Some(short) => Recipient::Tool(short.to_owned(), true),
            None => Recipient::Tool(name.to_owned(), false),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers() {
        for (header, want) in [
            ("<|channel|>analysis", Recipient::Nobody),
            ("<|start|>assistant<|channel|>final", Recipient::Reader),
            ("<|channel|>commentary", Recipient::Reader),
            ("<|channel|>commentary to=functions.f <|constrain|>json", Recipient::Tool("f".into(), true)),
            (" to=functions.f<|channel|>analysis", Recipient::Tool("f".into(), true)),
            (" to=user", Recipient::Reader),
            ("<|start|>assistant to=self", Recipient::Nobody),
            (" to=f", Recipient::Tool("f".into(), false)),
            ("<|channel|>commentary to=assistant<|channel|>analysis", Recipient::Nobody),
        ] {
            assert!(is_header(header));
            assert_eq!(recipient(header), want, "{header}");
        }
        for (header, want) in [
            ("<|start|>assistant<|channel|>commentary to=functions.f", true),
            ("<|start|> assistant to=functions.f", true),
            ("<|channel|>commentary to=functions.f", true),
            ("<|start|>user to=functions.f", false),
            ("<|start|>functions.g to=functions.f<|channel|>commentary", false),
        ] {
            assert_eq!(is_assistants(header), want, "{header}");
        }
        assert!(!is_header("<|channel|>x\ny") && !is_header("<|start|>a<|end|>") && is_header("<|start|>a<|cha"));
    }
}
