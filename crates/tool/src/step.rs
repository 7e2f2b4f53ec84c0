//! What a plan is told, and what it says is to be done.

use crate::call::RequestedCall;
use crate::judge::ReadyCall;
use crate::result::Answer;
use std::rc::Rc;

/// The order in which results are written. Tool messages are in call order always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As the calls stand in the message.
    #[default]
    Call,
    /// As they are done.
    Completion,
}

/// How the plan works.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How many calls run at once, at least 1.
    pub jobs: usize,
    /// The order of results.
    pub order: Order,
    /// The choice whose calls are run; those of others pass.
    pub choice: u32,
    /// How many calls of one turn are run; further ones are denied.
    pub max_calls: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { jobs: 8, order: Order::Call, choice: 0, max_calls: 1024 }
    }
}

/// What is to be done now.
#[derive(Debug)]
pub enum PlanStep {
    /// Start this call, and tell [`crate::Plan::done`] under this key.
    Start {
        /// Names the call in [`crate::Plan::done`] and [`PlanStep::Stop`].
        key: u64,
        /// The call.
        call: Rc<RequestedCall>,
        /// What to run.
        ready: Rc<ReadyCall>,
    },
    /// Stop that call, which runs; [`crate::Plan::done`] is still to be told.
    Stop {
        /// The key of its start.
        key: u64,
    },
    /// Write the `tool_result`.
    Result {
        /// The call.
        call: Rc<RequestedCall>,
        /// What came of it.
        answer: Rc<Answer>,
    },
    /// Write the tool message.
    Message {
        /// The call.
        call: Rc<RequestedCall>,
        /// What came of it.
        answer: Rc<Answer>,
    },
}
