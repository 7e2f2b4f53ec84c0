//! The sessions of a client's key: their list, a single session, and the lines of one or all
//! sessions as they are written.

mod all;
mod durable;
mod events;
mod follow;
mod list;
mod shown;

pub(crate) use follow::FollowBody;

use super::refusals::Named;
use super::response::{Refusal, ResponseBody, no_content};
use super::service::{Admitted, Service};
use crate::route::segment;
use crate::sessions::{LiveSession, PlaceError, Sessions};
use hyper::Response;
use std::rc::Rc;
use store::SessionId;

/// The media type of event lines.
const LINES: &str = "application/x-ndjson; charset=utf-8";

impl Service {
    /// Returns the sessions.
    ///
    /// # Errors
    /// 404 if the service stores none.
    pub(super) fn all_sessions(&self) -> Result<&Rc<Sessions>, Refusal> {
        self.sessions.as_ref().ok_or_else(|| {
            let message = "this service keeps no sessions; start it with --sessions DIR";
            Refusal::new(404, "sessions_not_kept", message)
        })
    }

    /// Returns the session that the path names.
    ///
    /// # Errors
    /// 404 if the client's key does not have it, whether or not another key does.
    pub(super) fn session(
        &self,
        path: &str,
        admitted: &Admitted,
    ) -> Result<(&Rc<Sessions>, Rc<LiveSession>), Refusal> {
        let sessions = self.all_sessions()?;
        let id = SessionId::of(segment(path, 1));
        let key = self.key_hash(admitted.key);
        let open = |id| sessions.open(id, key.as_deref()).map_err(refused);
        Ok((sessions, open(id.ok_or_else(|| Named::Session.unknown())?)?))
    }

    /// Removes a session.
    pub(super) fn remove_session(
        &self,
        path: &str,
        admitted: &Admitted,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let (sessions, session) = self.session(path, admitted)?;
        if let Some(running) = &*session.running.borrow() {
            let id = Some(running.id.to_string());
            return Err(refused(PlaceError::Busy(id)));
        }
        let key = self.key_hash(admitted.key);
        sessions
            .remove(session.id, key.as_deref())
            .map_err(refused)?;
        Ok(no_content())
    }
}

/// Returns the refusal for a session that cannot be read or written.
fn refused(error: impl Into<PlaceError>) -> Refusal {
    Named::Session.refuse(error)
}
