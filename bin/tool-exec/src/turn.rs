//! A turn as it is read: its calls run, or what would run is shown.

mod calls;
pub(crate) mod dry;
mod session;

pub(crate) use calls::{CallOptions, Calls};
pub(crate) use session::ToolSession;
