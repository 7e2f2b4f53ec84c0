//! An answer that has to fit a JSON Schema.

use json::Schema;
use std::path::{Path, PathBuf};

/// How often the model is asked again for an answer that fits.
const AGAIN: usize = 3;

/// What the answer has to fit.
pub(crate) struct AnswerForm {
    path: PathBuf,
    schema: Schema,
    text: String,
    asked_again: usize,
}

/// What follows from an answer.
pub(crate) enum AnswerCheck {
    /// It fits.
    Fits,
    /// The question that asks for another one.
    Again(String),
    /// Why no further one is asked for.
    Never(String),
}

impl AnswerForm {
    /// Reads the schema.
    ///
    /// # Errors
    /// One line that names the file and what is wrong with it.
    pub(crate) fn new(path: &Path) -> anyhow::Result<AnswerForm> {
        let (schema, text) = ::args::file(path, |text| {
            Ok::<_, anyhow::Error>((Schema::new(text)?, text.to_owned()))
        })?;
        Ok(AnswerForm {
            path: path.to_owned(),
            schema,
            text,
            asked_again: 0,
        })
    }

    /// Checks an answer.
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
        // A server that cannot keep to a schema may not have shown it to the model.
        AnswerCheck::Again(format!(
            "Your answer does not fit the JSON Schema ({misfit}). Answer again, with nothing but \
             the JSON. The schema:\n{}",
            self.text.trim()
        ))
    }
}

/// The JSON of an answer, which some models put into a fence.
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
