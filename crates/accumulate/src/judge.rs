//! The judgement on arguments that have ended: an object, a repaired object, or the reason why the
//! call must not run.

use crate::call::{CallError, OpenCall};
use json::{Repair, ToolList};

/// What arguments are judged by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules<'a> {
    /// Whether arguments that are not valid JSON are repaired (`--repair syntax`).
    pub repair: bool,
    /// The tools whose schemas bind the arguments, if any are known.
    pub tools: Option<&'a ToolList>,
}

/// Judges a call whose text is complete, and stores the result in it.
pub(crate) fn judge(call: &mut OpenCall, rules: Rules<'_>) {
    if call.name.is_empty() {
        call.error = Some(error(
            "no_name",
            "the call came without a name, so no tool can be run",
        ));
        return;
    }
    match read(call.text(), call.is_balanced(), &call.name, rules) {
        Ok((object, repairs)) => (call.object, call.repairs) = (Some(object), repairs),
        Err(e) => call.error = Some(e),
    }
}

/// Marks a call whose text was cut, even if the text is valid JSON by chance.
pub(crate) fn incomplete(call: &mut OpenCall, why: &str) {
    let name = if call.name.is_empty() {
        "a call"
    } else {
        &call.name
    };
    call.error = Some(error(
        "incomplete",
        &format!("the arguments of {name} were cut off ({why}), so it was not run; call it again"),
    ));
}

fn error(code: &'static str, message: &str) -> CallError {
    CallError {
        code,
        message: message.to_owned(),
    }
}

fn read(
    text: &str,
    balanced: bool,
    name: &str,
    rules: Rules<'_>,
) -> Result<(String, Vec<Repair>), CallError> {
    let trimmed = text.trim_ascii();
    let (object, repairs) = match trimmed {
        // Providers write empty arguments in these ways.
        "" | "null" => ("{}".to_owned(), Vec::new()),
        _ if balanced && json::check_balanced(trimmed).is_ok() => (minified(trimmed), Vec::new()),
        _ => match json::check(trimmed) {
            Ok(value) if value.shape == json::Shape::Object => (minified(trimmed), Vec::new()),
            other => match Some(rules.repair)
                .filter(|on| *on)
                .and_then(|_| json::repair(text, true))
            {
                Some(mended) => (minified(&mended.text), mended.repairs),
                None => {
                    let wrong = other.map_or_else(
                        |e| e.to_string(),
                        |value| format!("this is {} {}", article(value.shape), value.shape.name()),
                    );
                    return Err(error(
                        "invalid_json",
                        &format!("the arguments of {name} are not a JSON object: {wrong}"),
                    ));
                }
            },
        },
    };
    if let Some(tools) = rules.tools
        && let Err(e) = tools.check(name, &object)
    {
        // Some models put a list or an object into a string where the schema asks for it without.
        let coerced = match tools.schema(name) {
            Some(Ok(schema)) if rules.repair && repairs.is_empty() => schema.coerce(text),
            _ => None,
        };
        return match coerced {
            Some(mended) => Ok((minified(&mended.text), mended.repairs)),
            None => Err(error(
                "schema",
                &format!("the arguments of {name} do not fit its schema: {e}"),
            )),
        };
    }
    Ok((object, repairs))
}

fn article(shape: json::Shape) -> &'static str {
    if matches!(shape, json::Shape::Array) {
        "an"
    } else {
        "a"
    }
}

fn minified(json: &str) -> String {
    let mut out = Vec::with_capacity(json.len());
    event::minify(&mut out, json);
    // Only ASCII was removed or added, so this is UTF-8.
    String::from_utf8(out).unwrap_or_default()
}
