//! What follows from a failed attempt. Nothing here waits, asks or looks at a clock.

use crate::{Trouble, Wait};

/// What may be tried.
#[derive(Clone, Copy, Debug, Default)]
pub struct AttemptPolicy {
    /// How often the same request may be sent again.
    pub retries: u32,
    /// Whether a request is sent again after a lost connection alone. After an error that may pass
    /// (429, 5xx) the caller's own client asks again, and two layers that do multiply: nothing is
    /// sent again then, in another form neither.
    pub only_lost: bool,
    /// Whether to ask for the whole answer where streaming is refused.
    pub may_ask_whole: bool,
    /// Whether to put the tools into the prompt where native tools are refused.
    pub may_tag: bool,
}

/// The attempts at one turn.
#[derive(Clone, Debug)]
pub struct Attempts {
    policy: AttemptPolicy,
    retries: u32,
    is_whole: bool,
    is_tagged: bool,
}

/// What to do after a failed attempt.
#[derive(Debug, PartialEq, Eq)]
pub enum NextAttempt {
    /// Ask with the tools in the prompt. The provider refused them in these words.
    Tagged(String),
    /// Ask for the whole answer at once.
    Whole,
    /// Ask the same again after this wait.
    Again(Wait),
    /// Nothing. The provider may have given advice.
    GiveUp(Option<String>),
}

impl Attempts {
    /// No attempt has failed yet.
    pub fn new(policy: AttemptPolicy) -> Attempts {
        Attempts {
            policy,
            retries: 0,
            is_whole: false,
            is_tagged: false,
        }
    }

    /// The number of the attempt, from 1. Asking for the whole answer does not count: the first
    /// request never reached the model.
    pub fn number(&self) -> u32 {
        1 + self.retries + u32::from(self.is_tagged)
    }

    /// How often the same request was sent again.
    pub fn retries(&self) -> u32 {
        self.retries
    }

    /// How often another form of the request was tried.
    pub fn fallbacks(&self) -> u32 {
        u32::from(self.is_whole) + u32::from(self.is_tagged)
    }

    /// Decides what follows from `trouble`. `fits` claims of a wait that there is time for it.
    pub fn after(&mut self, trouble: &Trouble, fits: impl Fn(&Wait) -> bool) -> NextAttempt {
        if let Some(words) = trouble
            .refuses_tools()
            .filter(|_| self.policy.may_tag && !self.is_tagged)
        {
            self.is_tagged = true;
            return NextAttempt::Tagged(words);
        }
        let is_left_to_client =
            self.policy.only_lost && !trouble.is_lost_connection() && trouble.may_pass();
        if self.policy.may_ask_whole
            && !self.is_whole
            && trouble.refuses_streaming()
            && !is_left_to_client
        {
            self.is_whole = true;
            return NextAttempt::Whole;
        }
        match trouble.wait(self.retries + 1) {
            Some(wait)
                if self.retries < self.policy.retries
                    && !is_left_to_client
                    && wait.is_granted()
                    && fits(&wait) =>
            {
                self.retries += 1;
                NextAttempt::Again(wait)
            }
            wait => NextAttempt::GiveUp(wait.and_then(|wait| wait.advice())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::tape::Head;

    fn refused(status: u16, headers: &[(&str, &str)], body: &str) -> Trouble {
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Trouble::Refused(
            Head {
                status,
                headers,
                ..Head::default()
            },
            body.to_owned(),
        )
    }

    /// A word for each decision, and the numbers after it.
    fn decisions(policy: AttemptPolicy, troubles: &[Trouble]) -> Vec<(String, u32, u32, u32)> {
        let mut attempts = Attempts::new(policy);
        let mut told = vec![];
        for trouble in troubles {
            let word = match attempts.after(trouble, |_| true) {
                NextAttempt::Tagged(_) => "tagged".to_owned(),
                NextAttempt::Whole => "whole".to_owned(),
                NextAttempt::Again(wait) => format!("again {}", wait.when()),
                NextAttempt::GiveUp(advice) => format!("give up {}", advice.is_some()),
            };
            told.push((
                word,
                attempts.number(),
                attempts.retries(),
                attempts.fallbacks(),
            ));
        }
        told
    }

    #[test]
    fn each_form_is_tried_once_and_retries_are_counted() {
        let all = AttemptPolicy {
            retries: 2,
            only_lost: false,
            may_ask_whole: true,
            may_tag: true,
        };
        let no_tools = || {
            refused(
                400,
                &[],
                r#"{"error":{"message":"this model does not support tools"}}"#,
            )
        };
        let no_stream = || refused(400, &[], "streaming is not supported");
        let busy = || refused(503, &[("retry-after", "1")], "busy");
        let steps = [no_tools(), no_stream(), busy(), busy(), busy()];
        let expected = [
            ("tagged".to_owned(), 2, 0, 1),
            ("whole".to_owned(), 2, 0, 2),
            ("again in 1 s (retry-after: 1)".to_owned(), 3, 1, 2),
            ("again in 1 s (retry-after: 1)".to_owned(), 4, 2, 2),
            ("give up false".to_owned(), 4, 2, 2),
        ];
        assert_eq!(decisions(all, &steps), expected);
        for again in [no_tools(), no_stream()] {
            let word = decisions(all, &[no_tools(), no_stream(), again])
                .pop()
                .unwrap()
                .0;
            assert_eq!(word, "give up false");
        }
        assert_eq!(
            decisions(AttemptPolicy::default(), &[no_tools()])[0].0,
            "give up false"
        );
    }

    #[test]
    fn an_error_that_may_pass_is_left_to_a_client_that_retries() {
        let policy = AttemptPolicy {
            retries: 1,
            only_lost: true,
            may_ask_whole: true,
            may_tag: true,
        };
        let lost = || Trouble::Lost(crate::Error::recorded_loss());
        for (trouble, first) in [
            (lost(), "again within 0.5 s"),
            (
                Trouble::Lost(crate::Error::idle(std::time::Duration::from_secs(1))),
                "give up false",
            ),
            (refused(429, &[("retry-after", "1")], ""), "give up false"),
            (refused(500, &[], ""), "give up false"),
            (refused(501, &[], ""), "give up false"),
            (refused(405, &[], ""), "whole"),
        ] {
            assert_eq!(decisions(policy, &[trouble])[0].0, first);
        }
        let words: Vec<String> = decisions(policy, &[lost(), lost()])
            .into_iter()
            .map(|(word, ..)| word)
            .collect();
        assert_eq!(words, ["again within 0.5 s", "give up false"]);
    }

    #[test]
    fn a_wait_that_is_too_long_ends_the_attempts_with_the_providers_figure() {
        let mut attempts = Attempts::new(AttemptPolicy {
            retries: 2,
            ..AttemptPolicy::default()
        });
        let long = refused(429, &[("retry-after", "3600")], "");
        assert!(
            matches!(attempts.after(&long, |_| true), NextAttempt::GiveUp(Some(advice)) if advice.contains("60 min"))
        );
        let short = refused(429, &[("retry-after", "60")], "");
        assert!(matches!(
            attempts.after(&short, |_| false),
            NextAttempt::GiveUp(Some(_))
        ));
        assert!(matches!(
            attempts.after(&short, |_| true),
            NextAttempt::Again(_)
        ));
    }
}
