//! The settings of a plan, and its steps.

use crate::approval::{AnswerSource, Reason};
use crate::call::RequestedCall;
use crate::judge::ReadyCall;
use crate::result::Answer;
use event::payload::Verdict;
use std::rc::Rc;

/// The order in which results are written. Tool messages are always in call order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The order of the calls in the message.
    #[default]
    Call,
    /// The order in which the calls end.
    Completion,
}

/// The settings of a plan.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How many calls may run at once, at least 1.
    pub jobs: usize,
    /// The order of results.
    pub order: Order,
    /// The choice whose calls are run.
    pub choice: u32,
    /// How many calls of one turn are run; further ones are denied.
    pub max_calls: usize,
    /// Whether a person can be asked. If not, a call that needs a yes is pending.
    pub can_ask: bool,
    /// How many calls of one turn may wait for a person's answer; further ones are denied.
    pub max_questions: usize,
    /// After how many turns in a row with the same result the same call does not run again; 0:
    /// never.
    pub max_repeats: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            jobs: 8,
            order: Order::Call,
            choice: 0,
            max_calls: 1024,
            can_ask: false,
            max_questions: 20,
            max_repeats: 3,
        }
    }
}

/// One thing to do.
#[derive(Debug)]
pub enum PlanStep {
    /// Start this call, and pass its answer to [`crate::Plan::done`].
    Start {
        /// The key of the call for [`crate::Plan::done`] and [`PlanStep::Stop`].
        key: u64,
        /// The call.
        call: Rc<RequestedCall>,
        /// What to run.
        ready: Rc<ReadyCall>,
    },
    /// Ask a person whether this call may run, and pass the answer to [`crate::Plan::answered`].
    /// There is one question at a time.
    Ask {
        /// The key of the call.
        key: u64,
        /// The call.
        call: Rc<RequestedCall>,
        /// What would run.
        ready: Rc<ReadyCall>,
        /// Why it needs a yes.
        reason: Reason,
    },
    /// Withdraw the question; no answer is expected any more.
    Withdraw {
        /// The key of the call.
        key: u64,
    },
    /// Write the `approval` event: a person or a rule has answered for a call.
    Approval {
        /// The call.
        call: Rc<RequestedCall>,
        /// What would run.
        ready: Rc<ReadyCall>,
        /// What was answered.
        verdict: Verdict,
        /// Where the answer came from.
        source: AnswerSource,
    },
    /// Stop a call that runs; its answer still goes to [`crate::Plan::done`].
    Stop {
        /// The key of its start.
        key: u64,
    },
    /// Write the `tool_result`.
    Result {
        /// The call.
        call: Rc<RequestedCall>,
        /// Its answer.
        answer: Rc<Answer>,
    },
    /// Write the tool message.
    Message {
        /// The call.
        call: Rc<RequestedCall>,
        /// Its answer.
        answer: Rc<Answer>,
    },
}
