//! Inputs of the benches: always the same, shaped as models and providers shape theirs.

use event::quoted;
use std::fmt::Write;

const WORDS: &[&str] = &[
    "the", "of", "and", "a", "to", "in", "is", "you", "that", "it", "he", "was", "for", "on",
    "are", "with", "as", "hut", "lake", "beds", "path", "snow", "rain", "summit", "bridge",
    "valley",
];

/// Numbers that look like chance and are the same in every run (xorshift).
pub struct Dice(u64);

impl Dice {
    pub fn new() -> Dice {
        Dice(0x9e37_79b9_7f4a_7c15)
    }

    /// A number below `n`.
    pub fn roll(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }

    pub fn word(&mut self) -> &'static str {
        WORDS[self.roll(WORDS.len())]
    }

    pub fn words(&mut self, n: usize) -> String {
        (0..n).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }
}

/// One JSON object of about `size` bytes with escapes, nesting and numbers.
pub fn arguments(dice: &mut Dice, size: usize) -> String {
    let mut json = String::from("{");
    while json.len() < size {
        let comma = if json.len() > 1 { "," } else { "" };
        let (key, words, number) = (json.len(), dice.words(12), dice.roll(1_000_000));
        let _ = write!(
            json,
            r#"{comma}"k{key}":{{"text":"{words} \"q\" \\ <b>\n é","n":[0.{number},{number},null,true]}}"#
        );
    }
    json.push('}');
    json
}

/// The text in pieces of `size` bytes or a few more, each whole characters.
pub fn pieces(text: &str, size: usize) -> Vec<&str> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(size));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// Events of one stream, a line each.
pub struct Lines(pub Vec<String>);

impl Lines {
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|line| line.len() + 1).sum()
    }

    fn stream(start: &str, events: impl IntoIterator<Item = String>, reason: &str) -> Lines {
        let end = format!(r#"{{"type":"stream_end","finish_reason":"{reason}"}}"#);
        Lines(
            std::iter::once(start.to_owned())
                .chain(events)
                .chain([end])
                .collect(),
        )
    }
}

const NATIVE: &str = r#"{"type":"stream_start","v":1,"api":"openai-chat","model":"m","id":"r1","tools_mode":"native"}"#;
const TAGGED: &str = r#"{"type":"stream_start","v":1,"api":"openai-chat","model":"m","id":"r1","tools_mode":"tag","dialect":"hermes"}"#;

fn text(text: &str) -> String {
    format!(
        r#"{{"type":"content_delta","t":12.5,"text":{}}}"#,
        quoted(text)
    )
}

fn fragment(index: usize, fragment: &str) -> String {
    format!(
        r#"{{"type":"tool_call_delta","index":{index},"arguments":{}}}"#,
        quoted(fragment)
    )
}

fn opening(index: usize) -> String {
    format!(
        r#"{{"type":"tool_call_delta","index":{index},"tool_id":"c{index}","tool_name":"f{}"}}"#,
        index % 7
    )
}

/// Text only, a word a delta.
pub fn prose(deltas: usize) -> Lines {
    let mut dice = Dice::new();
    Lines::stream(
        NATIVE,
        (0..deltas).map(|_| text(&(dice.word().to_owned() + " "))),
        "stop",
    )
}

/// One call with arguments of `size` bytes, 16 bytes a delta.
pub fn one_call(size: usize) -> Lines {
    let arguments = arguments(&mut Dice::new(), size);
    let deltas = pieces(&arguments, 16)
        .into_iter()
        .map(|piece| fragment(0, piece));
    Lines::stream(
        NATIVE,
        std::iter::once(opening(0)).chain(deltas),
        "tool_calls",
    )
}

/// Calls whose fragments alternate, 8 bytes a delta.
pub fn interleaved(calls: usize) -> Lines {
    let mut dice = Dice::new();
    let texts: Vec<String> = (0..calls).map(|_| arguments(&mut dice, 400)).collect();
    let mut parts: Vec<(usize, Vec<&str>)> = texts
        .iter()
        .map(|text| pieces(text, 8))
        .enumerate()
        .collect();
    parts.iter_mut().for_each(|(_, parts)| parts.reverse());
    let mut events: Vec<String> = (0..calls).map(opening).collect();
    while !parts.is_empty() {
        let at = dice.roll(parts.len());
        match parts[at].1.pop() {
            Some(piece) => events.push(fragment(parts[at].0, piece)),
            None => drop(parts.swap_remove(at)),
        }
    }
    Lines::stream(NATIVE, events, "tool_calls")
}

/// Text without calls, in which one delta of twenty holds what may begin a marker.
pub fn near_markers(deltas: usize) -> Lines {
    let mut dice = Dice::new();
    let near = ["<", "<t", "<tool", "a < b", "<div>", "<tool_cal l"];
    let mut word = || {
        if dice.roll(20) == 0 {
            near[dice.roll(near.len())]
        } else {
            dice.word()
        }
    };
    Lines::stream(
        TAGGED,
        (0..deltas).map(|_| text(&(word().to_owned() + " "))),
        "stop",
    )
}

/// Text with calls between, cut anywhere, up to 8 bytes a delta.
pub fn tagged_calls(calls: usize) -> Lines {
    let mut dice = Dice::new();
    let mut all = String::new();
    for n in 0..calls {
        let (words, arguments) = (dice.words(20), arguments(&mut dice, 90));
        let _ = write!(
            all,
            "{words}\n<tool_call>\n{{\"name\": \"f{}\", \"arguments\": {arguments}}}\n</tool_call>\n",
            n % 7
        );
    }
    Lines::stream(TAGGED, pieces(&all, 5).into_iter().map(text), "stop")
}

/// A body of OpenAI's chat completions: text, then a call in small fragments.
pub fn openai(words: usize, size: usize) -> String {
    let mut dice = Dice::new();
    let mut body = String::new();
    let mut frame = |delta: &str, finish: &str| {
        let _ = write!(
            body,
            "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1790000000,\"model\":\"gpt-4o\",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_44709d6fcb\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"logprobs\":null,\"finish_reason\":{finish}}}]}}\n\n"
        );
    };
    (0..words).for_each(|_| frame(&format!(r#"{{"content":"{} "}}"#, dice.word()), "null"));
    frame(
        r#"{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"write","arguments":""}}]}"#,
        "null",
    );
    for piece in pieces(&arguments(&mut dice, size), 5) {
        frame(
            &format!(
                r#"{{"tool_calls":[{{"index":0,"function":{{"arguments":{}}}}}]}}"#,
                quoted(piece)
            ),
            "null",
        );
    }
    frame("{}", "\"tool_calls\"");
    body + "data: [DONE]\n\n"
}

/// The same as Anthropic's Messages API sends it.
pub fn anthropic(words: usize, size: usize) -> String {
    let mut dice = Dice::new();
    let mut body = String::new();
    let mut frame = |kind: &str, fields: &str| {
        let _ = write!(
            body,
            "event: {kind}\ndata: {{\"type\":\"{kind}\"{fields}}}\n\n"
        );
    };
    frame(
        "message_start",
        r#","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":9}}"#,
    );
    frame(
        "content_block_start",
        r#","index":0,"content_block":{"type":"text","text":""}"#,
    );
    for _ in 0..words {
        let delta = format!(
            r#","index":0,"delta":{{"type":"text_delta","text":"{} "}}"#,
            dice.word()
        );
        frame("content_block_delta", &delta);
    }
    frame("content_block_stop", r#","index":0"#);
    let block = r#","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"write","input":{}}"#;
    frame("content_block_start", block);
    for piece in pieces(&arguments(&mut dice, size), 5) {
        let delta = format!(
            r#","index":1,"delta":{{"type":"input_json_delta","partial_json":{}}}"#,
            quoted(piece)
        );
        frame("content_block_delta", &delta);
    }
    frame("content_block_stop", r#","index":1"#);
    frame(
        "message_delta",
        r#","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":99}"#,
    );
    frame("message_stop", "");
    body
}
