//! The settings of a plan, and its steps.

use crate::call::RequestedCall;
use crate::judge::ReadyCall;
use crate::result::Answer;
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
}

impl Default for Settings {
    fn default() -> Self {
        Settings { jobs: 8, order: Order::Call, choice: 0, max_calls: 1024 }
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
