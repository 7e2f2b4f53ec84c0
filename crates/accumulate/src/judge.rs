//! Checks arguments that have ended. The result is an object, a repaired object, or the reason why
//! the call must not run.

use crate::call::OpenCall;
use event::payload::{CallErrorCode, FinishReason};
use event::{Array, WriteJson};
use json::{JsonError, Repair, Shape, ToolList};

/// The rules for checking arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArgumentRules<'a> {
    /// Whether arguments that are not valid JSON are repaired (`--repair syntax`).
    pub repair: bool,
    /// The tools whose schemas the arguments must match; `None` if the tools are unknown.
    pub tools: Option<&'a ToolList>,
}

/// Arguments that passed: an object on one line, and the edits that repaired it.
pub(crate) type Judged = (String, Repairs);

/// The edits of a repair, written as the `repairs` member of a `tool_call`.
#[derive(Debug)]
pub(crate) struct Repairs(pub Vec<Repair>);

/// Why a call must not run.
#[derive(Debug)]
pub(crate) struct CallRefusal {
    /// The kind of fault.
    pub code: CallErrorCode,
    /// A sentence that the model or the user can act on.
    pub message: String,
}

impl CallRefusal {
    fn new<T>(code: CallErrorCode, message: String) -> Result<T, CallRefusal> {
        Err(CallRefusal { code, message })
    }

    /// Returns the refusal of a call whose text is incomplete, even if the text happens to be valid
    /// JSON. If the answer finished normally, nothing was cut off: the model left the JSON open or
    /// wrote other markup into it.
    pub(crate) fn incomplete(call: &OpenCall, reason: FinishReason) -> CallRefusal {
        let name = if call.name.is_empty() {
            "a call"
        } else {
            call.tool_name()
        };
        let why = reason.name();
        let message = if reason.is_whole() {
            format!(
                "the arguments of {name} end before their JSON does, although the finish reason is \
                 {why}, so it was not run; call it again"
            )
        } else {
            format!(
                "the arguments of {name} were cut off ({why}), so it was not run; call it again"
            )
        };
        CallRefusal {
            code: CallErrorCode::Incomplete,
            message,
        }
    }
}

/// Checks a call whose text is complete.
///
/// # Errors
/// Returns the reason why the call must not run.
pub(crate) fn judge(call: &OpenCall, rules: ArgumentRules<'_>) -> Result<Judged, CallRefusal> {
    let name = call.tool_name();
    let text = call.text();
    if name.is_empty() {
        let message = "the call came without a name, so no tool can be run";
        return CallRefusal::new(CallErrorCode::NoName, message.to_owned());
    }
    let (object, repairs) = match text.trim_ascii() {
        // Providers write empty arguments in these forms.
        "" | "null" => ("{}".to_owned(), Vec::new()),
        trimmed => match checked(call, trimmed) {
            Ok((Shape::Object, object)) => (object, Vec::new()),
            other => match rules.repair.then(|| json::repair(text, true)).flatten() {
                Some(mended) => (minified(&mended.text), mended.repairs),
                None => {
                    let wrong = match other {
                        Ok((Shape::Array, _)) => "this is an array".to_owned(),
                        Ok((shape, _)) => format!("this is a {}", shape.name()),
                        Err(e) => e.to_string(),
                    };
                    let message = format!("the arguments of {name} are not a JSON object: {wrong}");
                    return CallRefusal::new(CallErrorCode::InvalidJson, message);
                }
            },
        },
    };
    if let Some(tools) = rules.tools
        && let Err(e) = tools.check(name, &object)
    {
        // Some models quote a list or an object as a string where the schema expects the value
        // itself.
        let coerced = match tools.schema(name) {
            Some(Ok(schema)) if rules.repair && repairs.is_empty() => schema.coerce(text),
            _ => None,
        };
        return match coerced {
            Some(mended) => Ok((minified(&mended.text), Repairs(mended.repairs))),
            None => {
                let message = format!("the arguments of {name} do not fit its schema: {e}");
                CallRefusal::new(CallErrorCode::Schema, message)
            }
        };
    }
    Ok((object, Repairs(repairs)))
}

/// Checks the arguments of a call, without white space around them. Returns the type of their value,
/// and the value on one line.
fn checked(call: &OpenCall, trimmed: &str) -> Result<(Shape, String), JsonError> {
    // Nearly all arguments were found to be an object while they arrived.
    if call.is_balanced() {
        return Ok((Shape::Object, json::check_scanned(trimmed)?));
    }
    let value = json::check(trimmed)?;
    Ok((value.shape, minified(trimmed)))
}

fn minified(json: &str) -> String {
    let mut out = Vec::with_capacity(json.len());
    event::minify(&mut out, json);
    // The change added or removed only ASCII, so the result is UTF-8.
    String::from_utf8(out).unwrap_or_default()
}

impl WriteJson for Repairs {
    fn write_json(&self, out: &mut Vec<u8>) {
        let mut list = Array::open(out);
        for repair in &self.0 {
            list.object(|o| {
                o.int("offset", repair.offset as u64)
                    .str("kind", repair.kind.name())
                    .str("before", &repair.before)
                    .str("after", &repair.after);
            });
        }
        list.close();
    }
}
