//! Random logs like those that pipelines write, with the expected state of each call.

use crate::Random;
use std::fmt::Write;

/// A generated log with its calls.
#[derive(Debug, Default)]
pub struct MadeLog {
    /// The lines, each with its line feed.
    pub text: String,
    /// The calls, with their expected states.
    pub calls: Vec<MadeCall>,
}

/// A call of a generated log. The first member of its arguments is the number of the call. If the
/// call has an output, it is `r` followed by this number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MadeCall {
    /// The name of the tool.
    pub name: &'static str,
    /// The arguments; cut short if the call was truncated.
    pub arguments: String,
    /// The expected state: the status of the result; `answered` if only a message has the result;
    /// otherwise `called`, `incomplete`, `refused`, `running`, `retracted` or `cancelled`.
    pub state: &'static str,
    /// Whether the log has a `tool_call` event for it.
    pub is_merged: bool,
    /// Whether the call was retracted.
    pub is_retracted: bool,
    /// Whether the call has a run in the log that becomes a trace span: a command ran it, or
    /// reported a final result for it.
    pub has_run: bool,
    /// The id that events of its run use; empty if the call has no id.
    id: String,
    /// The label of the call, and its position in the turn.
    label: usize,
    place: usize,
}

const NAMES: [&str; 3] = ["read_file", "ls", "search"];
const RESULTS: [&str; 6] = [
    "success",
    "error",
    "timeout",
    "denied",
    "cancelled",
    "invalid",
];

/// Generates the log for a seed.
pub fn log(seed: u64) -> MadeLog {
    let mut maker = Maker {
        random: Random::new(seed),
        calls: Vec::new(),
    };
    let mut streams: Vec<Vec<String>> = Vec::new();
    for (n, name) in ["", r#""stream":"a","#, r#""stream":"b","#]
        .iter()
        .enumerate()
    {
        if n == 0 || maker.one_in(3) {
            streams.push(maker.stream(name));
        }
    }
    // Interleaves the streams; the lines of each stream stay in order.
    let mut text = String::new();
    let mut lines: Vec<_> = streams.into_iter().map(Vec::into_iter).collect();
    while !lines.is_empty() {
        let at = maker.random.below(lines.len());
        match lines[at].next() {
            Some(line) => text.extend([&line, "\n"]),
            None => drop(lines.remove(at)),
        }
    }
    MadeLog {
        text,
        calls: maker.calls,
    }
}

struct Maker {
    random: Random,
    calls: Vec<MadeCall>,
}

/// The events in which a turn has its calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Deltas that no stage has merged.
    Deltas,
    /// Deltas, and a `tool_call` after them or before the last of them.
    Both,
    /// `tool_call` events without deltas.
    Merged,
    /// Deltas, with the best reading so far beside them.
    Partial,
}

impl Maker {
    fn one_in(&mut self, n: usize) -> bool {
        self.random.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.random.below(all.len())]
    }

    /// Generates the lines of a stream; `name` is the JSON of the members that name the stream.
    fn stream(&mut self, name: &str) -> Vec<String> {
        let mut lines = Vec::new();
        // Lines that follow the start of the next turn.
        let mut late = Vec::new();
        // A message after a stream without an end would count as that stream's message.
        let mut has_end = true;
        for turn in 0..1 + self.random.below(4) {
            if self.one_in(3) {
                lines.push(event(
                    name,
                    "message",
                    r#""message":{"role":"user","content":"And?"}"#,
                ));
            }
            if has_end && self.one_in(4) {
                lines.append(&mut late);
                self.bare(name, &mut lines);
            } else {
                has_end = self.turn(name, turn, &mut lines, &mut late);
            }
        }
        lines.append(&mut late);
        lines
    }

    /// Adds a call. Its id may repeat an id of an earlier turn.
    fn call(&mut self, place: usize) -> usize {
        let n = self.calls.len();
        let name = self.pick(&NAMES);
        let more = self.pick(&["", r#","s":"a b""#, r#","list":[1,{"x":null}],"t":"é""#]);
        self.calls.push(MadeCall {
            name,
            arguments: format!(r#"{{"n":{n}{more}}}"#),
            state: "called",
            id: format!("call_{place}"),
            label: place,
            place,
            ..MadeCall::default()
        });
        n
    }

    /// Generates a turn that has only messages, without a stream.
    fn bare(&mut self, name: &str, lines: &mut Vec<String>) {
        let calls: Vec<usize> = (0..self.random.below(3))
            .map(|place| self.call(place))
            .collect();
        lines.push(self.message(name, &calls));
        for call in calls {
            self.run(name, call, lines);
        }
    }

    fn message(&self, name: &str, calls: &[usize]) -> String {
        let calls = calls.iter().map(|call| {
            let call = &self.calls[*call];
            let arguments = match call.state {
                "refused" | "incomplete" => "{}",
                _ => &call.arguments,
            };
            let arguments = quoted(arguments);
            format!(
                r#"{{"id":"{}","type":"function","function":{{"name":"{}","arguments":{arguments}}}}}"#,
                call.id, call.name
            )
        });
        let calls: Vec<String> = calls.collect();
        let calls = match calls.is_empty() {
            true => String::new(),
            false => format!(r#","tool_calls":[{}]"#, calls.join(",")),
        };
        let message = format!(r#""message":{{"role":"assistant","content":"Well."{calls}}}"#);
        event(name, "message", &message)
    }

    /// Generates a streamed turn. Returns whether its stream has an end.
    fn turn(
        &mut self,
        name: &str,
        turn: usize,
        lines: &mut Vec<String>,
        late: &mut Vec<String>,
    ) -> bool {
        // A filter in the middle of a pipe may not see the start of a stream.
        if turn > 0 || !self.one_in(5) {
            lines.push(event(
                name,
                "stream_start",
                r#""v":1,"api":"openai-chat","model":"m""#,
            ));
        }
        lines.append(late);
        let form = self.pick(&[
            Form::Deltas,
            Form::Both,
            Form::Both,
            Form::Merged,
            Form::Partial,
        ]);
        let is_cut = self.one_in(5);
        let mut all = Vec::new();
        for choice in 0..=usize::from(self.one_in(6)) {
            let name = match choice {
                0 => name.to_owned(),
                _ => format!(r#"{name}"choice":{choice},"#),
            };
            if self.one_in(2) {
                lines.push(event(&name, "content_delta", r#""text":"Well.""#));
            }
            let calls = (0..self.random.below(4)).map(|place| self.call(place));
            let calls: Vec<usize> = calls.collect();
            // Some providers send no ids, and number calls in their own way.
            let (has_ids, labels) = (!self.one_in(4), self.random.below(2));
            for call in &calls {
                self.calls[*call].label += labels;
            }
            let last = calls.last().copied().filter(|_| is_cut);
            self.write(&name, &calls, form, has_ids, last, lines);
            if form != Form::Deltas && !is_cut && !self.one_in(4) {
                lines.push(self.message(&name, &calls));
            }
            all.push((name, calls));
        }
        let reason = match is_cut {
            true => self.pick(&["length", "cut", "cancelled"]),
            false => "tool_calls",
        };
        if reason == "cancelled" {
            for call in all.iter().flat_map(|(_, calls)| calls) {
                self.calls[*call].state = "cancelled";
            }
        }
        let has_end = reason != "cut" || self.one_in(2);
        if has_end {
            lines.push(event(
                name,
                "session_stats",
                r#""prompt_tokens":3,"completion_tokens":2"#,
            ));
            lines.push(event(
                name,
                "stream_end",
                &format!(r#""finish_reason":"{reason}""#),
            ));
        }
        for (name, calls) in all {
            for call in calls {
                let is_late = self.one_in(5) && turn > 0;
                // The next turn may reuse other ids.
                if is_late && self.calls[call].id.starts_with("late") {
                    self.run(&name, call, late);
                } else {
                    self.run(&name, call, lines);
                }
            }
        }
        has_end
    }

    /// Writes the calls of a choice; the call `cut` is truncated.
    fn write(
        &mut self,
        name: &str,
        calls: &[usize],
        form: Form,
        has_ids: bool,
        cut: Option<usize>,
        lines: &mut Vec<String>,
    ) {
        for n in calls {
            let whole = self.calls[*n].arguments.clone();
            let first = whole.find([',', '}']).unwrap_or_default() + 1;
            if self.one_in(5) {
                self.calls[*n].id = format!("late_{n}");
            }
            let MadeCall {
                name: tool,
                id,
                label,
                place,
                ..
            } = self.calls[*n].clone();
            let is_cut = cut == Some(*n);
            if is_cut {
                // The number of the call is kept.
                let end = if first == whole.len() {
                    first - 1
                } else {
                    first
                };
                whole[..end].clone_into(&mut self.calls[*n].arguments);
                self.calls[*n].state = "incomplete";
            }
            let arguments = self.calls[*n].arguments.clone();
            let mut pieces = Vec::new();
            let mut rest = &*arguments;
            while !rest.is_empty() {
                let end = (1 + self.random.below(6)).min(rest.len());
                let end = (end..=rest.len()).find(|end| rest.is_char_boundary(*end));
                let (piece, more) = rest.split_at(end.unwrap_or(rest.len()));
                pieces.push(piece.to_owned());
                rest = more;
            }
            let mut deltas: Vec<String> = Vec::new();
            for (at, piece) in pieces.iter().enumerate() {
                let mut fields = format!(r#""index":{label}"#);
                if at == 0 {
                    if has_ids {
                        _ = write!(fields, r#","tool_id":"{id}""#);
                    }
                    _ = write!(fields, r#","tool_name":"{tool}""#);
                }
                _ = write!(fields, r#","arguments":{}"#, quoted(piece));
                deltas.push(event(name, "tool_call_delta", &fields));
            }
            let error = match is_cut {
                true => format!(
                    r#","arguments":null,"arguments_text":{},"error":{{"code":"incomplete","message":"cut"}}"#,
                    quoted(&arguments)
                ),
                false => format!(r#","arguments":{arguments},"commit":"balanced""#),
            };
            let fields = format!(r#""index":{place},"tool_id":"{id}","tool_name":"{tool}"{error}"#);
            let merged = event(name, "tool_call", &fields);
            if form == Form::Partial && !is_cut {
                let fields = format!(
                    r#""index":{place},"tool_id":"{id}","tool_name":"{tool}","arguments":{{"n":{n}}}"#
                );
                deltas = vec![event(name, "tool_call_partial", &fields)];
            }
            match form {
                Form::Deltas => lines.append(&mut deltas),
                Form::Merged => lines.push(merged),
                Form::Both | Form::Partial => {
                    // The byte that completes the arguments is in the last delta.
                    let at = deltas.len() - usize::from(deltas.len() > 1 && self.one_in(2));
                    deltas.insert(at, merged);
                    lines.append(&mut deltas);
                }
            }
            let call = &mut self.calls[*n];
            call.is_merged = form != Form::Deltas;
            if is_cut && call.is_merged {
                call.state = "refused";
            }
            if form == Form::Deltas && !has_ids {
                call.id.clear();
            }
            if self.one_in(8) {
                let MadeCall { id, is_merged, .. } = &self.calls[*n];
                let by_index = match is_merged {
                    true => place,
                    false => label,
                };
                let by_index = format!(r#""index":{by_index},"reason":"unparsed""#);
                let by_id = format!(r#""tool_id":"{id}","reason":"unparsed""#);
                if !id.is_empty() {
                    lines.push(event(name, "retract", &by_id));
                }
                if id.is_empty() || self.one_in(2) {
                    lines.push(event(name, "retract", &by_index));
                }
                let call = &mut self.calls[*n];
                (call.state, call.is_retracted) = ("retracted", true);
            }
        }
    }

    /// Generates the run of a call that has an id.
    fn run(&mut self, name: &str, n: usize, lines: &mut Vec<String>) {
        let MadeCall {
            id,
            name: tool,
            state,
            ..
        } = self.calls[n].clone();
        let is_whole = self.calls[n].arguments.ends_with('}');
        let is_run = is_whole || self.calls[n].is_merged;
        if id.is_empty() || self.calls[n].is_retracted || !is_run {
            return;
        }
        let of = format!(r#""tool_id":"{id}","tool_name":"{tool}""#);
        let used = event(name, "tool_use", &format!(r#"{of},"status":"running""#));
        let result = |status: &str| {
            let fields = format!(
                r#"{of},"status":"{status}","output":"r{n}","output_summary":"r{n}","output_bytes":3"#
            );
            event(name, "tool_result", &fields)
        };
        let sent = format!(r#""message":{{"role":"tool","tool_call_id":"{id}","content":"r{n}"}}"#);
        let sent = event(name, "message", &sent);
        let status = self.pick(&RESULTS);
        let how = match state {
            "refused" => self.pick(&[0, 5]),
            _ => self.random.below(9),
        };
        let progress = event(name, "tool_progress", &format!(r#"{of},"text":"half""#));
        let approval = event(
            name,
            "approval",
            &format!(r#"{of},"decision":"approved","by":"ann""#),
        );
        let (mut all, end) = match how {
            0 => return,
            1 => (vec![used], "running"),
            2 => (vec![result("pending")], "pending"),
            3 => (
                vec![result("pending"), approval, used, result(status)],
                status,
            ),
            4 => (vec![sent.clone()], "answered"),
            5 => (vec![result("invalid")], "invalid"),
            6 => (
                vec![used.clone(), used, result(status), result(status)],
                status,
            ),
            _ => (vec![used, progress, result(status)], status),
        };
        if !["running", "pending", "answered"].contains(&end) && self.one_in(2) {
            all.push(sent);
        }
        self.calls[n].state = match (state, end) {
            ("cancelled", "running") => state,
            _ => end,
        };
        self.calls[n].has_run = !["pending", "answered"].contains(&end);
        lines.append(&mut all);
    }
}

/// Returns the line of an event; `name` is the JSON of the members that name the stream and the
/// choice.
fn event(name: &str, kind: &str, fields: &str) -> String {
    format!(r#"{{"type":"{kind}",{name}{fields}}}"#)
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}
