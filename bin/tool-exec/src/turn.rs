//! One turn of the input: runs its calls, or shows which calls would run.

mod calls;
pub(crate) mod dry;
mod session;

pub(crate) use calls::{CallOptions, Calls};
pub(crate) use session::ToolSession;
