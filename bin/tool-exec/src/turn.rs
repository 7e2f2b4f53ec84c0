//! A turn as it is read: its calls run, or what would run is shown.

mod calls;
pub mod dry;
mod session;

pub use calls::{CallOptions, Calls};
pub use session::ToolSession;
