//! Finds the deviations of one stream in its events.

use super::calls::DeltaCalls;
use super::table::{
    BAD_FRAME, CONNECTION_CUT, Deviation, ERROR_IN_STREAM, FINISH_HIDES_CUT, FINISH_LIES,
    INVALID_ARGUMENTS, MESSAGE_RESTARTED, NO_FINISH, REASONING_BEFORE_CALL, SERVER_ITEMS,
    SEVERAL_CHOICES, TEXT_AFTER_CALL, TEXT_BEFORE_CALL, TOOL_USE_FAILED, WHITE_SPACE_BEFORE_CALL,
    of_warning,
};
use event::payload::{
    ContentDelta, Error, FinishReason, Retract, StreamEnd, StreamStart, Thinking, ToolCall,
    ToolCallDelta, Warning,
};
use event::{Event, Kind, Text};
use std::collections::BTreeMap;

/// Where a deviation shows for the first time in a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviationPlace {
    /// The number of the event in its stream, from 1 on; 0 where only the bytes show the deviation.
    pub event: u64,
    /// The number of bytes of the recording up to the end of the event.
    pub offset: u64,
}

/// Finds the deviations of one stream, from two readings of it. The first has the events of the
/// provider's stream, in which calls are deltas. The full reading has the output of all stages:
/// calls that were written as text are calls there, and the warnings of all stages are in it.
#[derive(Debug, Default)]
pub struct DeviationFinder {
    found: BTreeMap<&'static str, DeviationPlace>,
    place: DeviationPlace,
    has_indexes: bool,
    choices: BTreeMap<u32, ChoiceDeviations>,
    has_failed: bool,
}

/// What is known of one choice.
#[derive(Debug, Default)]
struct ChoiceDeviations {
    calls: DeltaCalls,
    reading: ChoiceReading,
}

/// What the full reading of one choice has shown so far.
#[derive(Debug, Default)]
struct ChoiceReading {
    has_text: bool,
    has_white_space: bool,
    has_reasoning: bool,
    has_call: bool,
    has_cut_call: bool,
}

/// Further choices are ignored: each costs memory, and no API gives that many.
const CHOICES: usize = 1024;

impl DeviationFinder {
    /// A finder for one stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the next event of the provider's stream. `offset` is the number of bytes of the
    /// recording up to the end of the event.
    pub fn push(&mut self, event: &Event<'_>, offset: u64) {
        self.place = DeviationPlace {
            event: self.place.event + 1,
            offset,
        };
        let choice = event.choice();
        if choice > 0 {
            self.find(SEVERAL_CHOICES);
        }
        if self.choices.len() >= CHOICES && !self.choices.contains_key(&choice) {
            return;
        }
        match event.kind() {
            Kind::StreamStart => {
                let api = StreamStart::read(event).api.map(Text::str);
                self.has_indexes = matches!(api.as_deref(), Some("openai-chat" | "mistral"));
            }
            Kind::ToolCallDelta => {
                let delta = ToolCallDelta::read(event);
                let place = self.place;
                let has_indexes = self.has_indexes;
                let found = &mut self.found;
                let calls = &mut self.choices.entry(choice).or_default().calls;
                calls.push(&delta, has_indexes, &mut |deviation| {
                    found.entry(deviation.code).or_insert(place);
                });
            }
            Kind::Retract => {
                let retract = Retract::read(event);
                let id = retract.tool_id.map(Text::str);
                let index = retract.index;
                self.choices
                    .entry(choice)
                    .or_default()
                    .calls
                    .retract(index, id.as_deref());
            }
            Kind::ServerItem => self.find(SERVER_ITEMS),
            Kind::Error => {
                self.has_failed = true;
                match &*Error::read(event).code.str() {
                    "disconnected" => {}
                    "tool_use_failed" => self.find(TOOL_USE_FAILED),
                    "bad_json" => self.find(BAD_FRAME),
                    _ => self.find(ERROR_IN_STREAM),
                }
            }
            _ => {}
        }
    }

    /// Reads the next event of the full reading; it comes from the last event of
    /// [`DeviationFinder::push`].
    pub fn push_reading(&mut self, event: &Event<'_>) {
        let choice = event.choice();
        if self.choices.len() >= CHOICES && !self.choices.contains_key(&choice) {
            return;
        }
        let reading = &mut self.choices.entry(choice).or_default().reading;
        match event.kind() {
            Kind::ContentDelta => {
                let text = ContentDelta::read(event).text.str();
                let is_blank = text.trim().is_empty();
                reading.has_white_space |= !text.is_empty();
                reading.has_text |= !is_blank;
                if reading.has_call && !is_blank {
                    self.find(TEXT_AFTER_CALL);
                }
            }
            Kind::Thinking => reading.has_reasoning |= !Thinking::read(event).text.is_empty(),
            Kind::ToolCallDelta => self.call(choice),
            Kind::ToolCall => {
                self.call(choice);
                let code = ToolCall::read(event).error.map(|error| error.code.str());
                match code.as_deref() {
                    Some("incomplete") => {
                        self.choices.entry(choice).or_default().reading.has_cut_call = true;
                    }
                    Some("invalid_json") => self.find(INVALID_ARGUMENTS),
                    _ => {}
                }
            }
            Kind::Warning => {
                let deviation = of_warning(&Warning::read(event).code.str());
                if let Some(deviation) = deviation {
                    if deviation == MESSAGE_RESTARTED {
                        *reading = ChoiceReading::default();
                    }
                    self.find(deviation);
                }
            }
            Kind::StreamEnd => self.end(choice, &StreamEnd::read(event)),
            _ => {}
        }
    }

    /// Notes a deviation that does not show in events, but such as in the bytes of a body.
    pub fn note(&mut self, deviation: &'static Deviation, place: DeviationPlace) {
        self.found.entry(deviation.code).or_insert(place);
    }

    /// The deviations by their codes, each with the first place that shows it.
    pub fn finish(self) -> BTreeMap<&'static str, DeviationPlace> {
        self.found
    }

    fn find(&mut self, deviation: &'static Deviation) {
        self.found.entry(deviation.code).or_insert(self.place);
    }

    /// Reads the beginning or the next piece of a call.
    fn call(&mut self, choice: u32) {
        let reading = &mut self.choices.entry(choice).or_default().reading;
        if std::mem::replace(&mut reading.has_call, true) {
            return;
        }
        let text = reading.has_text;
        let white_space = reading.has_white_space;
        let reasoning = reading.has_reasoning;
        if text {
            self.find(TEXT_BEFORE_CALL);
        } else if white_space {
            self.find(WHITE_SPACE_BEFORE_CALL);
        }
        if reasoning {
            self.find(REASONING_BEFORE_CALL);
        }
    }

    /// Reads the end of choice 0, or of the whole stream.
    fn end(&mut self, choice: u32, end: &StreamEnd<'_>) {
        let provider = end.provider_finish_reason.map(Text::str);
        let was_cut =
            end.finish_reason != FinishReason::Stop && end.finish_reason != FinishReason::ToolCalls;
        let one = self.choices.entry(choice).or_default();
        let place = self.place;
        let found = &mut self.found;
        one.calls.finish(was_cut, &mut |deviation| {
            found.entry(deviation.code).or_insert(place);
        });
        let has_call = one.reading.has_call;
        let has_cut_call = one.reading.has_cut_call;
        if end.finish_reason == FinishReason::Cut {
            self.find(CONNECTION_CUT);
        }
        let Some(provider) = provider else {
            if !self.has_failed {
                self.find(NO_FINISH);
            }
            return;
        };
        match provider.to_ascii_lowercase().as_str() {
            "tool_calls" | "tool_use" | "tool_call" | "function_call" if !has_call => {
                self.find(FINISH_LIES)
            }
            "tool_calls" | "tool_use" | "tool_call" | "function_call" if has_cut_call => {
                self.find(FINISH_HIDES_CUT)
            }
            "stop" | "end_turn" | "complete" | "stop_sequence" if has_call => {
                self.find(FINISH_LIES)
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::{CUMULATIVE_ARGUMENTS, NAME_REPEATED};
    use super::*;
    use event::Scanner;

    fn found(lines: &[&str]) -> Vec<(&'static str, u64)> {
        let mut finder = DeviationFinder::new();
        let mut scanner = Scanner::default();
        for (n, line) in lines.iter().enumerate() {
            let event = scanner.read(line).expect("an event");
            finder.push(&event, n as u64 * 10);
            finder.push_reading(&event);
        }
        finder
            .finish()
            .into_iter()
            .map(|(code, place)| (code, place.event))
            .collect()
    }

    const START: &str = r#"{"type":"stream_start","api":"openai-chat"}"#;
    const END: &str = r#"{"type":"stream_end","finish_reason":"tool_calls","provider_finish_reason":"tool_calls"}"#;

    #[test]
    fn a_stream_as_openai_sends_it_has_none() {
        let lines = [
            START,
            r#"{"type":"tool_call_delta","index":0,"tool_id":"a","tool_name":"f"}"#,
            r#"{"type":"tool_call_delta","index":0,"arguments":"{\"x\":"}"#,
            r#"{"type":"tool_call_delta","index":0,"arguments":"1}"}"#,
            r#"{"type":"tool_call_delta","index":1,"tool_id":"b","tool_name":"f"}"#,
            r#"{"type":"tool_call_delta","index":1,"arguments":"{\"x\":2}"}"#,
            END,
        ];
        assert_eq!(found(&lines), []);
    }

    #[test]
    fn the_first_place_of_each_is_kept() {
        let lines = [
            START,
            r#"{"type":"content_delta","text":"I look."}"#,
            r#"{"type":"tool_call_delta","index":0,"tool_id":"a","tool_name":"f","arguments":"{\"x\":"}"#,
            r#"{"type":"tool_call_delta","index":0,"tool_name":"f","arguments":"{\"x\":[1"}"#,
            r#"{"type":"tool_call_delta","index":0,"tool_name":"f","arguments":"{\"x\":[1,2]}"}"#,
            r#"{"type":"stream_end","finish_reason":"tool_calls","provider_finish_reason":"stop"}"#,
        ];
        let expected = [
            (CUMULATIVE_ARGUMENTS.code, 4),
            (FINISH_LIES.code, 6),
            (NAME_REPEATED.code, 4),
            (TEXT_BEFORE_CALL.code, 3),
        ];
        assert_eq!(found(&lines), expected);
    }

    #[test]
    fn choices_are_apart_and_their_number_is_bounded() {
        let many: Vec<String> = (0..3000)
            .map(|n| format!(r#"{{"type":"content_delta","choice":{n},"text":"x"}}"#))
            .collect();
        let mut lines = vec![START];
        lines.extend(many.iter().map(String::as_str));
        assert_eq!(found(&lines), [(SEVERAL_CHOICES.code, 3)]);
    }
}
