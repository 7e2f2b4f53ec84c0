//! One tool call of a model, read from its event or from the assistant's message.

use super::argument::{ArgumentRefusal, Arguments};
use super::canonical::{Hash, digest, hex};
use event::payload::ToolCall;
use event::{Event, Raw, Text};

/// A stream's name as JSON, or `None` for the unnamed stream.
pub(crate) type StreamName = Option<Box<str>>;

/// Identifies a call in a log or a run by its stream and its id.
pub(crate) type CallKey = (StreamName, Box<str>);

/// Returns the name of an event's stream.
pub(crate) fn stream_of(event: &Event<'_>) -> StreamName {
    event.stream().map(|name| name.text().into())
}

/// A tool call as the model requested it. The tool it names may not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedCall {
    /// The stream of the call, as JSON, or `None` for the unnamed stream.
    pub stream: Option<Box<str>>,
    /// The choice that the call belongs to.
    pub choice: u32,
    /// The id of the response that contains the call, from `stream_start`. Calls from two responses
    /// are always distinct, even if they share an id.
    pub response: Option<Box<str>>,
    /// The number of earlier calls in the log with the same stream and id whose response id is
    /// unknown or equal to this call's.
    pub occurrence: usize,
    /// The time of the call's event in milliseconds, as JSON.
    pub t: Option<Box<str>>,
    /// The call's index in the turn, or `None` if the event has none.
    pub index: Option<i64>,
    /// The id of the call.
    pub id: Box<str>,
    /// The name of the tool, as the model wrote it.
    pub name: Box<str>,
    /// Whether an earlier stage repaired the arguments.
    pub repaired: bool,
    /// The arguments, or why they were rejected.
    pub arguments: Result<Arguments, ArgumentRefusal>,
}

impl RequestedCall {
    /// Reads a `tool_call` event.
    pub fn of_event(event: &Event<'_>) -> RequestedCall {
        let call = ToolCall::read(event);
        let arguments = match (call.error, call.arguments) {
            (Some(error), _) => {
                let [code, message] = [error.code, error.message].map(Text::str);
                let between = if message.is_empty() || code.is_empty() {
                    ""
                } else {
                    ": "
                };
                Err(ArgumentRefusal::Earlier(format!(
                    "{code}{between}{message}"
                )))
            }
            (None, Some(arguments)) => Arguments::read(&arguments.text()),
            (None, None) => Err(ArgumentRefusal::NotAnObject("null")),
        };
        RequestedCall {
            stream: stream_of(event),
            choice: event.choice(),
            response: None,
            occurrence: 0,
            t: event.t().map(|t| t.text().into()),
            index: call.index,
            id: id(Some(&call.tool_id.str()), call.index.unwrap_or(0)),
            name: call.tool_name.str().into(),
            repaired: call.repairs.is_some(),
            arguments,
        }
    }

    /// Reads the calls listed in an assistant's message, in order. `event` is the event that
    /// contains the message, or `None` for a bare message.
    pub fn of_message(event: Option<&Event<'_>>, message: Raw<'_>) -> Vec<RequestedCall> {
        let calls = message
            .get("tool_calls")
            .into_iter()
            .flat_map(Raw::items)
            .enumerate();
        calls
            .map(|(n, call)| {
                let function = call.get("function").unwrap_or(call);
                let arguments = match function.get("arguments") {
                    // Some servers send the object itself instead of its JSON text
                    // (docs/deviations.md).
                    Some(arguments) if arguments.is_str() => {
                        Arguments::read(&arguments.str().unwrap_or_default())
                    }
                    Some(arguments) => Arguments::read(arguments.text()),
                    None => Arguments::read(""),
                };
                RequestedCall {
                    stream: event.and_then(stream_of),
                    choice: event.map_or(0, |e| e.choice()),
                    response: None,
                    occurrence: 0,
                    t: event.and_then(|e| e.t()).map(|t| t.text().into()),
                    index: None,
                    id: id(call.get_str("id").as_deref(), i64::try_from(n).unwrap_or(0)),
                    name: function.get_str("name").unwrap_or_default().into(),
                    repaired: false,
                    arguments,
                }
            })
            .collect()
    }

    /// Returns the stream and id that identify the call in a log.
    pub(crate) fn key(&self) -> CallKey {
        (self.stream.clone(), self.id.clone())
    }

    /// Whether the call can belong to the response `other`. A response without an id may be any
    /// response, so `None` on either side counts as a match.
    pub(crate) fn is_in_response(&self, other: Option<&str>) -> bool {
        self.response.is_none() || other.is_none() || self.response.as_deref() == other
    }

    /// Returns a key of 32 hexadecimal digits, a digest of the call's stream, id, response,
    /// occurrence, tool and arguments. A rerun of the same call has the same key, and every other
    /// call of the log has a different one.
    pub fn idempotency_key(&self) -> String {
        let arguments = self
            .arguments
            .as_ref()
            .map(Arguments::canonical)
            .unwrap_or_default();
        let [stream, response] =
            [&self.stream, &self.response].map(|name| name.as_deref().unwrap_or_default());
        let occurrence = self.occurrence.to_string();
        let mut key = hex(&digest(
            [
                stream,
                &self.id,
                response,
                &occurrence,
                &self.name,
                &arguments,
            ]
            .map(str::as_bytes),
        ));
        key.truncate(32);
        key
    }

    /// Returns [`Arguments::fingerprint`], or `None` if the arguments were rejected.
    pub fn fingerprint(&self) -> Option<Hash> {
        self.arguments
            .as_ref()
            .ok()
            .map(|arguments| arguments.fingerprint(&self.name))
    }

    /// Returns [`Arguments::meaning`], or `None` if the arguments were rejected.
    pub(crate) fn meaning(&self) -> Option<Hash> {
        self.arguments
            .as_ref()
            .ok()
            .map(|arguments| arguments.meaning(&self.name))
    }

    /// Whether `other`, which has the same id in the same turn, has a different name or different
    /// arguments. Always `false` if this call's arguments were rejected, since such a call does not
    /// run.
    pub(crate) fn is_contradicted_by(&self, other: &RequestedCall) -> bool {
        self.arguments.is_ok()
            && (self.name != other.name || self.fingerprint() != other.fingerprint())
    }

    /// Returns a one-line summary of the arguments for people.
    pub fn summary(&self) -> String {
        self.arguments
            .as_ref()
            .map(Arguments::summary)
            .unwrap_or_default()
    }
}

/// Returns the id of a call. A call without an id gets one from its position, which is the same in
/// its event and in the message.
fn id(given: Option<&str>, position: i64) -> Box<str> {
    match given {
        Some(id) if !id.is_empty() => id.into(),
        _ => format!("call_{position}").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::Scanner;

    #[test]
    fn both_places_give_the_same_call() {
        let mut s = Scanner::default();
        let one = RequestedCall::of_event(
            &s.read(r#"{"type":"tool_call","index":0,"tool_id":"a","tool_name":"w","arguments":{ "x" : 1 }}"#).unwrap(),
        );
        let line = r#"{"type":"message","message":{"role":"assistant","tool_calls":[
            {"id":"a","type":"function","function":{"name":"w","arguments":"{\"x\":\n1}"}},{"function":{"name":"v","arguments":{"y":2}}},{"id":"c","function":{"name":"u"}}]}}"#
            .replace('\n', " ");
        let event = s.read(&line).unwrap();
        let all = RequestedCall::of_message(Some(&event), event.get("message").unwrap());
        assert_eq!(
            (&all[0].id, &all[0].name, &all[0].arguments),
            (&one.id, &one.name, &one.arguments)
        );
        assert_eq!(all[0].fingerprint(), one.fingerprint());
        assert_eq!(
            (
                all[1].id.as_ref(),
                all[1].arguments.as_ref().unwrap().text()
            ),
            ("call_1", "{\"y\":2}")
        );
        assert_eq!(all[2].arguments.as_ref().unwrap().text(), "{}");
    }

    #[test]
    fn what_an_earlier_stage_refused_stays_refused() {
        let mut s = Scanner::default();
        let line = r#"{"type":"tool_call","index":1,"tool_name":"w","arguments":null,"error":{"code":"incomplete","message":"cut"}}"#;
        let call = RequestedCall::of_event(&s.read(line).unwrap());
        assert_eq!(
            (call.id.as_ref(), call.arguments.unwrap_err().to_string()),
            ("call_1", "incomplete: cut".to_owned())
        );
        let call = RequestedCall::of_event(
            &s.read(r#"{"type":"tool_call","tool_id":"x","tool_name":"w"}"#)
                .unwrap(),
        );
        assert!(call.arguments.is_err() && call.fingerprint().is_none());
    }
}
