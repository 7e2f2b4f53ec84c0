//! `GET /v1/sessions/{id}?format=…`: a session rendered as by `tc-view`.

use super::follow::FollowBody;
use super::refused;
use crate::budget::Share;
use crate::http::response::{Content, Refusal, ResponseBody};
use crate::http::service::Service;
use crate::sessions::{LiveSession, PIECE, Sessions, event_of_line, lines};
use event::{Scanner, View};
use hyper::body::Bytes;
use hyper::header::HeaderValue;
use hyper::{Method, Response};
use std::io;
use std::rc::Rc;
use store::Store;

/// A format in which a session is rendered.
#[derive(Clone, Copy)]
pub(super) enum ShownForm {
    Text,
    Html,
    Markdown,
}

/// Added to the content security policy of a report: no page may frame the report, and it has no
/// origin.
const POLICY: &str = "frame-ancestors 'none'; sandbox";

impl ShownForm {
    /// Returns the format with this name, or `None` if the name is unknown.
    pub(super) fn of(name: &str) -> Option<ShownForm> {
        match name {
            "text" => Some(ShownForm::Text),
            "html" => Some(ShownForm::Html),
            "markdown" => Some(ShownForm::Markdown),
            _ => None,
        }
    }

    fn view(self) -> Box<dyn View> {
        match self {
            ShownForm::Text => Box::new(view::text(false, false)),
            ShownForm::Html => Box::new(view::html(false)),
            ShownForm::Markdown => Box::new(view::markdown(false)),
        }
    }

    fn media_type(self) -> &'static str {
        match self {
            ShownForm::Text => "text/plain; charset=utf-8",
            ShownForm::Html => "text/html; charset=utf-8",
            ShownForm::Markdown => "text/markdown; charset=utf-8",
        }
    }
}

impl Service {
    /// Renders a session in this format. Its lines are read as the client consumes the output, so a
    /// long session needs no more memory than a short one.
    pub(super) fn show_session(
        &self,
        (sessions, session): (&Rc<Sessions>, &LiveSession),
        method: &Method,
        form: ShownForm,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let mut share = self.pipe.budget.share();
        // Room for a piece of the session and its rendering.
        share.reserve(4 * PIECE, 0)?;
        let end = sessions.store.end(session.id).map_err(refused)?;
        let content = match *method {
            Method::HEAD => Content::Whole(Bytes::new()),
            _ => Content::Follow(body(sessions, session, form, end, share)),
        };
        let mut response = Response::new(ResponseBody::new(content));
        let headers = response.headers_mut();
        headers.insert("content-type", HeaderValue::from_static(form.media_type()));
        headers.insert("cache-control", HeaderValue::from_static("no-store"));
        let same = HeaderValue::from_static("same-origin");
        headers.insert("cross-origin-resource-policy", same);
        if let ShownForm::Html = form
            && let Ok(policy) = HeaderValue::from_str(&format!("{}; {POLICY}", view::html_policy()))
        {
            headers.insert("content-security-policy", policy);
            headers.insert("referrer-policy", HeaderValue::from_static("no-referrer"));
        }
        Ok(response)
    }
}

/// Returns the body that renders the lines up to `end`.
fn body(
    sessions: &Rc<Sessions>,
    session: &LiveSession,
    form: ShownForm,
    end: u64,
    share: Share,
) -> FollowBody {
    let (sessions, id) = (Rc::clone(sessions), session.id);
    FollowBody::new(None, move |out| async move {
        let _share = share;
        let mut view = form.view();
        let mut scanner = Scanner::default();
        let mut at = 0;
        while at < end {
            let read = sessions
                .store
                .read(id, at, PIECE)
                .map_err(io::Error::other)?;
            if read.is_empty() {
                return Err(io::Error::other("the session was cut"));
            }
            let mut bytes = Vec::new();
            for (line, place) in lines(&read, at) {
                at = place.end;
                if let Some(event) = event_of_line(&mut scanner, line) {
                    view.push(&event, &mut bytes);
                }
            }
            drop(read);
            match bytes.is_empty() {
                false => out.send(bytes).await,
                // Yield, so that other requests can run.
                true => tokio::task::yield_now().await,
            }
        }
        let mut bytes = Vec::new();
        view.finish(&mut bytes);
        if !bytes.is_empty() {
            out.send(bytes).await;
        }
        Ok(())
    })
}
