//! An answer of any front, read by the strict reader of its API, and compared with what it has to
//! say.

use super::pipe::{Answered, Asked};
use super::reading::{Call, Choice, Ending, Finish, Reading, text};
use super::{chat, messages, responses};
use api::{AnswerForm, Front};
use serde_json::Value;

/// Reads an answer; the sentence of an error in place of an answer is its ending.
pub(crate) fn read(asked: &Asked, answered: &Answered) -> Reading {
    if answered.refused.is_some() {
        return refused(asked.front, answered);
    }
    let body = &answered.body;
    match (asked.front, asked.form) {
        (Front::Chat, AnswerForm::Stream) => chat::stream(body, asked.options.include_usage),
        (Front::Chat, AnswerForm::Whole | AnswerForm::Object) => chat::whole(body),
        (Front::Responses, AnswerForm::Stream) => responses::stream(body),
        (Front::Responses, AnswerForm::Whole | AnswerForm::Object) => responses::whole(body),
        (Front::Messages, AnswerForm::Stream) => messages::stream(body),
        (Front::Messages, AnswerForm::Whole | AnswerForm::Object) => messages::whole(body),
    }
}

/// An error that takes the place of an answer.
fn refused(front: Front, answered: &Answered) -> Reading {
    let mut r = Reading::default();
    let body: Value = serde_json::from_slice(&answered.body).unwrap_or(Value::Null);
    let error = &body["error"];
    let status = answered.refused.unwrap_or_default();
    r.rule((400..600).contains(&status), format!("the status {status}"));
    r.rule(
        error["message"].is_string(),
        format!("not an error: {}", answered.text()),
    );
    r.rule(
        !text(error, "type").is_empty(),
        format!("an error without a type: {}", answered.text()),
    );
    match front {
        Front::Messages => r.rule(
            body["type"] == "error",
            format!("not an error of this API: {body}"),
        ),
        _ => {
            for key in ["param", "code"] {
                r.rule(
                    error.get(key).is_some(),
                    format!("an error without {key}: {body}"),
                );
            }
        }
    }
    r.ending = Ending::Failed(text(error, "message").to_owned());
    r
}

/// What an answer says besides ids and the end, of the choices that the front has: those of the
/// chat front, else the first. A refusal is text where the API has no place for it.
pub(crate) fn content(front: Front, reading: &Reading) -> Vec<Choice> {
    let has = |c: &&Choice| front == Front::Chat || c.number == 0;
    let mut all: Vec<Choice> = reading.choices.iter().filter(has).cloned().collect();
    for choice in &mut all {
        choice.calls.retain(|call| call.is_finished);
        for Call { arguments, .. } in &mut choice.calls {
            // White space and the way of escapes do not count.
            if let Ok(value) = serde_json::from_str::<Value>(arguments) {
                *arguments = value.to_string();
            }
        }
        choice.order.clear();
        let said = std::mem::take(&mut choice.said);
        if front == Front::Messages {
            choice.refusal.clear();
            if !said.is_empty() {
                choice.text = said;
            }
        }
    }
    all.retain(|c| {
        *c != Choice {
            number: c.number,
            finish: c.finish,
            ..Choice::default()
        } || c.number == 0
    });
    all
}

/// What differs between an answer and what it has to say.
pub(crate) fn differences(asked: &Asked, got: &Reading, want: &Reading) -> Vec<String> {
    compare(asked, got, want, true)
}

/// The same without the order of calls: a call whose arguments need a repair goes out behind those
/// that came meanwhile.
pub(crate) fn differences_in_any_order(
    asked: &Asked,
    got: &Reading,
    want: &Reading,
) -> Vec<String> {
    compare(asked, got, want, false)
}

fn compare(asked: &Asked, got: &Reading, want: &Reading, ordered: bool) -> Vec<String> {
    let mut wrong = got.wrong.clone();
    if want.has_withdrawn && matches!(got.ending, Ending::Failed(_)) {
        return wrong;
    }
    let failed = matches!(want.ending, Ending::Failed(_));
    if failed != matches!(got.ending, Ending::Failed(_)) || got.ending == Ending::Open {
        wrong.push(format!(
            "the end is {:?}, to be {:?}",
            got.ending, want.ending
        ));
    }
    if failed {
        if got.choices.iter().any(|c| c.finish.is_some()) && got.choices.len() < 2 {
            wrong.push("a failed answer has a finish reason".to_owned());
        }
        return wrong;
    }
    let mut ours = content(asked.front, got);
    let mut theirs = content(asked.front, want);
    if asked.front == Front::Messages {
        // The API's word for a refusal is that of the filter; the text says the same on each front.
        for choice in ours
            .iter_mut()
            .chain(&mut theirs)
            .filter(|c| c.finish == Some(Finish::Filter))
        {
            choice.finish = Some(Finish::Stop);
        }
    }
    // An id that is made counts the calls before it, those that were taken back among them.
    for choice in ours
        .iter_mut()
        .chain(&mut theirs)
        .filter(|_| want.has_withdrawn)
    {
        choice.calls.iter_mut().for_each(|call| call.id.clear());
    }
    for choice in ours.iter_mut().chain(&mut theirs).filter(|_| !ordered) {
        choice
            .calls
            .sort_by(|a, b| (&a.id, &a.name, &a.arguments).cmp(&(&b.id, &b.name, &b.arguments)));
    }
    if ours != theirs {
        wrong.push(format!("came: {ours:?}\n  not: {theirs:?}"));
    }
    let want = want.usage.unwrap_or_default();
    if let Some(usage) = got.usage
        && (usage.input, usage.output, usage.cached) != (want.input, want.output, want.cached)
    {
        wrong.push(format!("usage {usage:?}, to be {want:?}"));
    }
    wrong
}
