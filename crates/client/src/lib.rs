//! The way out to the network, and what replaces it: recorded answers, and faults put into them.
//!
//! What it is: [`Network`], which sends requests to one server, any number at once, and gives each
//! answer as a [`Body`] that is read piece by piece; [`Networks`], where servers are several;
//! [`TimeLimits`] on how long that may take; [`Route`], which finds out whether a server is on this
//! machine and a secret may go there; [`Guard`], which addresses may be connected to at all;
//! [`RequestHeader`], a header whose value may be secret; [`Attempts`], which decide what follows
//! from a [`AttemptTrouble`], and after which [`Wait`]; [`Recorder`], a tape in use;
//! [`RecordedAnswer`] and [`ReplayFaults`], an answer played again and what goes wrong in it. All
//! settings are values, and all errors are types: [`Error`] names what happened, and the caller
//! adds which of its options helps.
//!
//! What it is not: it reads no command line, nor of the environment more than where the system's
//! certificates are, prints nothing, and writes no events. Clients share what TLS needs, which is
//! read once a process: the authorities whose certificates this system trusts.
//!
//! Without the feature `network` requests cannot be sent: [`Network`] cannot be made then, and all
//! the rest works.
//!
//! Everything async runs on a tokio runtime of the caller's, with its timers and sockets enabled.
//! Each wait may be dropped.

mod body;
mod error;
mod faults;
mod header;
mod limits;
#[cfg_attr(not(feature = "network"), path = "network/absent.rs")]
mod network;
mod networks;
mod recorder;
mod redirect;
mod retry;
mod route;

pub use api::{Request, tape::Head};
pub use body::{Body, BodyPiece, FileBody, PieceContent, Response};
pub use error::{Error, ErrorKind};
pub use faults::{BodySplit, RecordedAnswer, ReplayFaults, Speed, Stall, TimedRead};
pub use header::{HeaderError, RequestHeader};
pub use limits::TimeLimits;
pub use network::{Guard, Network, NetworkError, document};
pub use networks::Networks;
pub use recorder::{Recorder, RecorderError, TapeMode};
pub use redirect::{RedirectError, follow, redirect};
pub use retry::{AttemptPolicy, AttemptTrouble, Attempts, NextAttempt, Wait, retry_after};
pub use route::{AddressError, Proxy, Route, secrets_in_url, with_path_of};
