//! A call that has no result of its tool, and whether the tool may have acted on it all the same.

use crate::result::{Answer, Status};

/// What the model reads of a call that may have acted.
const MAY_HAVE_RUN: &str = "The call may have acted; look before you repeat it.";

/// Why a call has no result of its tool. The call may have acted once the first byte of its request
/// was sent, or the first process for its command was started: from then on no result reports that
/// the call did not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallFailure {
    /// Nothing of the call has left this process, and no command was started.
    NotRun(String),
    /// A part of the call was sent, or its command may have begun.
    MayHaveRun(String),
    /// The other side has answered that the call failed. Its own words say what it did.
    Answered(String),
}

impl CallFailure {
    /// Why, for the model.
    pub fn why(&self) -> &str {
        match self {
            CallFailure::NotRun(why)
            | CallFailure::MayHaveRun(why)
            | CallFailure::Answered(why) => why,
        }
    }

    /// The same with another text.
    pub fn with(self, text: impl FnOnce(String) -> String) -> CallFailure {
        match self {
            CallFailure::NotRun(why) => CallFailure::NotRun(text(why)),
            CallFailure::MayHaveRun(why) => CallFailure::MayHaveRun(text(why)),
            CallFailure::Answered(why) => CallFailure::Answered(text(why)),
        }
    }

    /// The answer to the call.
    pub fn answer(&self, status: Status) -> Answer {
        self.within(Answer::new(status, self.why()))
    }

    /// An answer whose output is why, as the model reads it, with what is known of the call.
    pub fn within(&self, answer: Answer) -> Answer {
        if !matches!(self, CallFailure::MayHaveRun(_)) {
            return answer;
        }
        let why = answer.output.trim_end();
        // After a text of several lines, which may be those of a program, it is a line of its own.
        let between = match why {
            why if why.contains('\n') => "\n",
            why if why.ends_with(['.', '!', '?']) => " ",
            _ => ". ",
        };
        Answer {
            output: format!("{why}{between}{MAY_HAVE_RUN}"),
            ..answer
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_call_that_may_have_run_says_so() {
        let text = |failure: CallFailure| failure.answer(Status::Error).output;
        assert_eq!(text(CallFailure::NotRun("No.".to_owned())), "No.");
        assert_eq!(text(CallFailure::Answered("No.".to_owned())), "No.");
        assert_eq!(
            text(CallFailure::MayHaveRun("No.".to_owned())),
            format!("No. {MAY_HAVE_RUN}")
        );
        assert_eq!(
            text(CallFailure::MayHaveRun("no".to_owned())),
            format!("no. {MAY_HAVE_RUN}")
        );
        assert_eq!(
            text(CallFailure::MayHaveRun("a\nb\n".to_owned())),
            format!("a\nb\n{MAY_HAVE_RUN}")
        );
    }
}
