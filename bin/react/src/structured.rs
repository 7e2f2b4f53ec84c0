//! Answers that must match a JSON Schema.

use event::Raw;
use json::Schema;
use std::path::Path;
use std::sync::Arc;

/// Maximum number of times the model is asked again for a matching answer.
const AGAIN: usize = 3;

/// The schema that an answer must match, for the answers to one question. Clones share the schema.
#[derive(Clone)]
pub(crate) struct AnswerForm {
    path: Arc<Path>,
    schema: Arc<Schema>,
    text: Arc<str>,
    asked_again: usize,
}

/// The result of checking an answer.
pub(crate) enum AnswerCheck {
    /// The answer matches.
    Fits,
    /// The answer does not match; this question asks the model again.
    Again(String),
    /// The answer does not match; this is the reason why the model is not asked again.
    Never(String),
}

impl AnswerForm {
    /// Reads the schema.
    ///
    /// # Errors
    /// Returns one line that names the file and its fault.
    pub(crate) fn new(path: &Path) -> anyhow::Result<AnswerForm> {
        let (schema, text) = ::args::file(path, |text| {
            Ok::<_, anyhow::Error>((Schema::new(text)?, text.into()))
        })?;
        Ok(AnswerForm {
            path: path.into(),
            schema: Arc::new(schema),
            text,
            asked_again: 0,
        })
    }

    /// Returns the names of the members that the schema describes.
    pub(crate) fn member_names(&self) -> Vec<String> {
        let schema = Raw::parse(&self.text);
        let members = schema.ok().and_then(|schema| schema.get("properties"));
        let members = members.into_iter().flat_map(Raw::entries);
        members.map(|(name, _)| name.into_owned()).collect()
    }

    /// Checks an answer against the schema.
    pub(crate) fn check(&mut self, answer: &str) -> AnswerCheck {
        let Err(misfit) = self.schema.check(bare(answer)) else {
            self.asked_again = 0;
            return AnswerCheck::Fits;
        };
        if self.asked_again == AGAIN {
            return AnswerCheck::Never(format!(
                "the answer does not fit {} after {AGAIN} further attempts ({misfit}), name a \
                 model that can",
                self.path.display()
            ));
        }
        self.asked_again += 1;
        // A server that cannot enforce a schema may not have shown it to the model.
        AnswerCheck::Again(format!(
            "Your answer does not fit the JSON Schema ({misfit}). Answer again, with nothing but \
             the JSON. The schema:\n{}",
            self.text.trim()
        ))
    }
}

/// Returns the JSON of an answer, without the Markdown fence that some models add.
pub(crate) fn bare(answer: &str) -> &str {
    let answer = answer.trim();
    let inner = answer
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
        .and_then(|rest| rest.split_once('\n'));
    inner.map_or(answer, |(_, json)| json.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_around_the_answer_is_left_out() {
        for answer in [" {} \n", "```json\n{}\n```", "```\n{}```\n"] {
            assert_eq!(bare(answer), "{}", "{answer}");
        }
        assert_eq!(bare("``` {}"), "``` {}");
    }
}
