//! Sends requests over the network, or answers them from recordings, optionally with injected
//! faults.
//!
//! [`Network`] sends any number of concurrent requests to one server, and returns each response
//! with a [`Body`] that is read in pieces. [`Networks`] holds connections to several servers.
//! [`TimeLimits`] bounds how long a response may take, with a [`LazyTimer`]. [`Route`] determines whether a server is on
//! this machine and whether a secret may be sent to it; [`Guard`] determines which addresses may be
//! connected to at all. [`RequestHeader`] is a header whose value may be secret. [`Attempts`]
//! decides what to do after an [`AttemptTrouble`], and how long to [`Wait`] before a retry.
//! [`Recorder`] reads and writes a tape. [`RecordedAnswer`] and [`ReplayFaults`] are a recorded
//! response to replay and the faults to inject into it. All settings are values, and all errors are
//! types: [`Error`] names what happened, and the caller adds which of its options helps.
//!
//! The crate does not parse the command line, print anything or write events. From the environment
//! it reads only the location of the system's certificates, and [`Network::new`] the proxy
//! (`HTTPS_PROXY`). All clients share the trusted certificate authorities, which are loaded once per
//! process.
//!
//! Without the feature `network`, no [`Network`] can be created, so requests cannot be sent;
//! everything else works.
//!
//! Async functions run on the caller's tokio runtime, which needs timers and sockets enabled. Every
//! wait may be dropped.

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
mod timer;

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
pub use timer::LazyTimer;
