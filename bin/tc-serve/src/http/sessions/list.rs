//! `GET /v1/sessions` and `GET /v1/sessions/{id}` as JSON.

use super::refused;
use super::shown::ShownForm;
use crate::http::query::Query;
use crate::http::refusals::Named;
use crate::http::response::{KeptBytes, Refusal, RequestRecord, ResponseBody, whole};
use crate::http::service::{Admitted, Service};
use crate::pipe::JSON;
use crate::sessions::{self, IndexedSession, forget, indexed_sessions};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response, StatusCode};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::path::Path;
use std::rc::Rc;
use store::{SessionId, SessionScan, StoreError};

/// The formats of a session.
const FORMATS: &str = "json, text, html or markdown";

impl Service {
    /// Returns a page of the sessions of the client's key, newest first.
    pub(in crate::http) async fn list_sessions(
        self: &Rc<Self>,
        request: Request<Incoming>,
        admitted: &Admitted,
        exchange: &mut RequestRecord,
    ) -> Result<Response<ResponseBody>, Refusal> {
        exchange.begin_answer();
        let folder = self.all_sessions()?.store.path().to_owned();
        let wanted = Page::read(Query::of(request.uri()))?;
        let key = self.key_hash(admitted.key);
        let page = blocking(move || wanted.list(&folder, key.as_deref())).await??;
        Ok(whole(StatusCode::OK, JSON, page.to_string()))
    }

    /// Returns one session.
    pub(in crate::http) async fn read_session(
        self: &Rc<Self>,
        request: Request<Incoming>,
        admitted: &Admitted,
        exchange: &mut RequestRecord,
    ) -> Result<Response<ResponseBody>, Refusal> {
        exchange.begin_answer();
        let (sessions, session) = self.session(request.uri().path(), admitted)?;
        if let Some(name) = Query::of(request.uri())
            .get("format")
            .filter(|name| *name != "json")
        {
            let Some(form) = ShownForm::of(name) else {
                let message = format!("format={}: unknown, use {FORMATS}", event::cut(name, 40));
                return Err(Refusal::new(400, "invalid_request_error", message));
            };
            return self.show_session((sessions, &session), request.method(), form);
        }
        let mut share = self.pipe.budget.share();
        let folder = sessions.store.path().to_owned();
        let id = session.id;
        let length = store::Store::end(&sessions.store, id).map_err(refused)?;
        // The output for a session is not longer than its lines.
        share.reserve(usize::try_from(length).unwrap_or(usize::MAX), 0)?;
        let read = move || -> Result<Vec<u8>, Refusal> {
            let scan = open(&folder)?;
            let indexed =
                IndexedSession::read(&scan, id).ok_or_else(|| Named::Session.unknown())?;
            let session = sessions::whole(&scan, &indexed).map_err(refused)?;
            Ok(session.to_string().into_bytes())
        };
        let bytes = blocking(read).await??;
        share.keep(bytes.len());
        let kept = KeptBytes {
            bytes,
            _share: share,
        };
        Ok(whole(StatusCode::OK, JSON, Bytes::from_owner(kept)))
    }
}

/// The page of sessions to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Page {
    limit: usize,
    /// The last session of the previous page; `None` for the first page.
    after: Option<SessionId>,
}

impl Page {
    /// # Errors
    /// Those of [`Query::limit`], and 404 for an id that is not one.
    fn read(query: Query<'_>) -> Result<Page, Refusal> {
        let limit = query.limit()?;
        let after = match query.get("after") {
            None => None,
            Some(typed) => Some(SessionId::of(typed).ok_or_else(|| Named::Session.unknown())?),
        };
        Ok(Page { limit, after })
    }

    /// Returns the page as JSON.
    ///
    /// # Errors
    /// 404 if the session before the page does not exist.
    fn list(self, folder: &Path, key: Option<&str>) -> Result<Value, Refusal> {
        let scan = open(folder)?;
        // Try twice: if the index turns out to be wrong, the folder is read.
        if let Some(page) = self.try_list(&scan, key)? {
            return Ok(page);
        }
        forget(&scan);
        let page = self.try_list(&scan, key)?;
        page.ok_or_else(|| Refusal::new(503, "sessions_changed", "the sessions change, try again"))
    }

    /// Tries to list the page. Returns `None` if the first line of a session differs from the
    /// index.
    fn try_list(self, scan: &SessionScan, key: Option<&str>) -> Result<Option<Value>, Refusal> {
        let all = indexed_sessions(scan).map_err(|error| refused(StoreError::from(error)))?;
        let mut own: Vec<IndexedSession> = all
            .into_iter()
            .filter(|session| session.is_of(key))
            .collect();
        own.sort_unstable_by_key(|session| Reverse((session.created, session.id)));
        let first = match self.after {
            None => 0,
            Some(after) => {
                let at = own.iter().position(|session| session.id == after);
                at.ok_or_else(|| Named::Session.unknown())? + 1
            }
        };
        let mut rest = own[first..].iter();
        let mut page: Vec<Value> = Vec::new();
        while page.len() < self.limit
            && let Some(indexed) = rest.next()
        {
            match IndexedSession::read(scan, indexed.id) {
                // The session was removed after the folder was read.
                None if scan.stored(indexed.id).is_err() => continue,
                Some(own) if own == *indexed => {}
                _ => return Ok(None),
            }
            match sessions::summary(scan, indexed) {
                Ok(summary) => page.push(summary),
                Err(StoreError::Unknown) => {}
                Err(error) => return Err(refused(error)),
            }
        }
        let id = |session: Option<&Value>| session.map(|session| session["id"].clone());
        Ok(Some(json!({
            "object": "list",
            "data": page,
            "first_id": id(page.first()),
            "last_id": id(page.last()),
            "has_more": rest.next().is_some(),
        })))
    }
}

/// Opens the folder, on a thread that may wait for the disk.
pub(super) fn open(folder: &Path) -> Result<SessionScan, Refusal> {
    SessionScan::open(folder).map_err(|error| {
        let message = format!("the sessions cannot be read: {error:#}");
        Refusal::new(500, "sessions_not_read", message)
    })
}

/// Runs `work` on a thread that may wait for the disk, and returns its result.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Refusal::new(500, "internal_error", "the sessions were not read"))
}
