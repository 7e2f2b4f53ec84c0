//! The endpoints that paths name, and the paths that are forwarded to the provider unchanged.

use crate::front::AnyFront;
use anyhow::{Result, bail};
use api::Front;
use hyper::{HeaderMap, Method};

/// What a path is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// `/`
    Root,
    /// `/health`
    Health,
    /// `/ready`
    Ready,
    /// `/metrics`
    Metrics,
    /// `/health?upstream`
    UpstreamHealth,
    /// A path that is forwarded to the provider unchanged. The flag says whether it accepts `GET`
    /// and form bodies.
    Pass(bool),
    /// `/v1/models`
    Models,
    /// `/v1/models/NAME`
    Model,
    /// The path of a client's protocol.
    Answer(AnyFront),
    /// A path for a user interface's chat; see [`ChatPath`].
    Chat(ChatPath),
    /// `/v1/messages/count_tokens`
    CountTokens,
    /// `/v1/sessions`
    Sessions,
    /// `/v1/sessions/events`
    AllEvents,
    /// `/v1/sessions/ID`
    Session,
    /// `/v1/sessions/ID/events`
    SessionEvents,
    /// A path for stored responses, conversations and sessions; see [`KeptPath`].
    Kept(KeptPath),
    /// An unknown path.
    Unknown,
}

/// A path of a chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChatPath {
    /// `/api/chat/ID/stream`
    Stream,
    /// `/api/chat/ID/stop`
    Stop,
}

impl ChatPath {
    /// Returns the path with this last segment, or `None` if no such path ends in it.
    pub(crate) fn of(verb: &str) -> Option<ChatPath> {
        match verb {
            "stream" => Some(ChatPath::Stream),
            "stop" => Some(ChatPath::Stop),
            _ => None,
        }
    }

    /// Returns the methods that the path supports.
    pub(crate) fn methods(self) -> &'static [Method] {
        match self {
            ChatPath::Stream => &[Method::GET],
            ChatPath::Stop => &[Method::POST],
        }
    }
}

/// A path for stored responses, conversations or sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeptPath {
    /// `/v1/responses/ID`
    Response,
    /// `/v1/responses/ID/cancel`
    Cancel,
    /// `/v1/responses/ID/input_items`
    InputItems,
    /// `/v1/conversations`
    Conversations,
    /// `/v1/conversations/ID`
    Conversation,
    /// `/v1/conversations/ID/items`
    Items,
    /// `/v1/conversations/ID/items/ITEM`
    Item,
    /// `/v1/sessions/ID/calls/CALL/VERB`
    Call(CallVerb),
    /// `/v1/sessions/ID/messages`
    Say,
    /// `/v1/sessions/ID/cancel`
    CancelSession,
}

impl KeptPath {
    /// Returns the endpoint for these path segments without the version, or `None` if there is
    /// none.
    pub(crate) fn of(segments: &[&str]) -> Option<KeptPath> {
        Some(match *segments {
            // The service does not implement these itself.
            ["responses", "compact" | "input_tokens"] => return None,
            ["responses", _] => KeptPath::Response,
            ["responses", _, "cancel"] => KeptPath::Cancel,
            ["responses", _, "input_items"] => KeptPath::InputItems,
            ["conversations"] => KeptPath::Conversations,
            ["conversations", _] => KeptPath::Conversation,
            ["conversations", _, "items"] => KeptPath::Items,
            ["conversations", _, "items", _] => KeptPath::Item,
            ["sessions", _, "calls", _, verb] => KeptPath::Call(CallVerb::of(verb)?),
            ["sessions", _, "messages"] => KeptPath::Say,
            ["sessions", _, "cancel"] => KeptPath::CancelSession,
            _ => return None,
        })
    }

    /// Returns the methods that the path supports.
    pub(crate) fn methods(self) -> &'static [Method] {
        match self {
            KeptPath::Response => &[Method::GET, Method::DELETE],
            KeptPath::Cancel
            | KeptPath::Conversations
            | KeptPath::Call(_)
            | KeptPath::Say
            | KeptPath::CancelSession => &[Method::POST],
            KeptPath::InputItems | KeptPath::Item => &[Method::GET],
            KeptPath::Items => &[Method::GET, Method::POST],
            KeptPath::Conversation => &[Method::GET, Method::POST, Method::DELETE],
        }
    }
}

/// A user's action on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallVerb {
    /// Allows the call to run.
    Approve,
    /// Denies the call.
    Deny,
    /// Supplies the result of a call that may have run before a crash.
    Answer,
    /// Stops the running call.
    Cancel,
}

impl CallVerb {
    /// Returns the verb of a path, or `None` for an unknown word.
    pub(crate) fn of(word: &str) -> Option<CallVerb> {
        Some(match word {
            "approve" => CallVerb::Approve,
            "deny" => CallVerb::Deny,
            "answer" => CallVerb::Answer,
            "cancel" => CallVerb::Cancel,
            _ => return None,
        })
    }
}

impl Endpoint {
    /// Returns the endpoint of `path`. The prefix `/v1` may be missing or doubled, since users
    /// write base URLs with and without it.
    pub(crate) fn of(path: &str) -> Endpoint {
        let rest = unversioned(path);
        let segments: Vec<&str> = rest.split('/').skip(1).collect();
        match segments[..] {
            [] => Endpoint::Root,
            ["health"] => Endpoint::Health,
            ["ready"] => Endpoint::Ready,
            ["metrics"] => Endpoint::Metrics,
            ["models"] => Endpoint::Models,
            ["models", ..] => Endpoint::Model,
            ["messages", "count_tokens"] => Endpoint::CountTokens,
            ["sessions"] => Endpoint::Sessions,
            ["sessions", "events"] => Endpoint::AllEvents,
            ["sessions", _] => Endpoint::Session,
            ["sessions", _, "events"] => Endpoint::SessionEvents,
            ["api", "chat", _, verb] => {
                ChatPath::of(verb).map_or(Endpoint::Unknown, Endpoint::Chat)
            }
            _ => {
                let is_here = |front: &AnyFront| unversioned(front.path()) == rest;
                let front = AnyFront::all().find(is_here).map(Endpoint::Answer);
                let kept = || KeptPath::of(&segments).map(Endpoint::Kept);
                front.or_else(kept).unwrap_or(Endpoint::Unknown)
            }
        }
    }

    /// Returns the protocol that clients of this path speak, for the access log.
    pub(crate) fn front(self) -> Option<AnyFront> {
        match self {
            Endpoint::Answer(front) => Some(front),
            Endpoint::CountTokens => Some(AnyFront::Api(Front::Messages)),
            _ => None,
        }
    }

    /// Returns the API whose error format to use: the API of the path, even if only that API
    /// elsewhere has the path, such as `/v1/messages/batches`; or Anthropic's, if the client sends
    /// the header with the version of Anthropic's API.
    pub(crate) fn front_of_errors(path: &str, headers: &HeaderMap) -> Option<Front> {
        let is_below = |front: &Front| {
            path.split_once(unversioned(front.path()))
                .is_some_and(|(_, rest)| rest.is_empty() || rest.starts_with('/'))
        };
        let by_header = || {
            headers
                .contains_key("anthropic-version")
                .then_some(Front::Messages)
        };
        let by_path = Front::ALL.into_iter().find(is_below);
        by_path.or_else(by_header)
    }

    /// Whether a `--pass` path takes precedence over this endpoint. Ollama also has `/api/chat`.
    pub(crate) fn gives_way(self) -> bool {
        matches!(
            self,
            Endpoint::Answer(AnyFront::Ui(_)) | Endpoint::Chat(_) | Endpoint::Unknown
        )
    }

    /// Returns the methods that the endpoint supports.
    pub(crate) fn methods(self) -> &'static [Method] {
        match self {
            Endpoint::Root
            | Endpoint::Health
            | Endpoint::Ready
            | Endpoint::Metrics
            | Endpoint::UpstreamHealth
            | Endpoint::Models
            | Endpoint::Model
            | Endpoint::Sessions
            | Endpoint::AllEvents
            | Endpoint::SessionEvents => &[Method::GET, Method::HEAD],
            Endpoint::Session => &[Method::GET, Method::HEAD, Method::DELETE],
            Endpoint::Pass(true) => &[Method::GET, Method::POST],
            Endpoint::Answer(_) | Endpoint::CountTokens | Endpoint::Pass(false) => &[Method::POST],
            Endpoint::Kept(path) => path.methods(),
            Endpoint::Chat(path) => path.methods(),
            Endpoint::Unknown => &[],
        }
    }

    /// Whether clients must send a key.
    pub(crate) fn needs_key(self) -> bool {
        !matches!(self, Endpoint::Root | Endpoint::Health | Endpoint::Ready)
    }

    /// Whether the path reports on the service, and so answers during shutdown too.
    pub(crate) fn is_about_service(self) -> bool {
        matches!(self, Endpoint::Health | Endpoint::Ready | Endpoint::Metrics)
    }
}

/// Returns one segment of a path, not counting the version. Segments are numbered from 0; a number
/// past the last segment returns "".
pub(crate) fn segment(path: &str, at: usize) -> &str {
    unversioned(path).split('/').nth(at + 1).unwrap_or_default()
}

/// `path` without `/v1` before it, however often it is there, and without a slash at its end.
pub(crate) fn unversioned(path: &str) -> &str {
    let mut rest = path.strip_suffix('/').unwrap_or(path);
    while let Some(shorter) = rest
        .strip_prefix("/v1")
        .filter(|rest| rest.starts_with('/'))
    {
        rest = shorter;
    }
    rest
}

/// The paths that clients of local servers need, as the server spells them, with whether they
/// accept `GET` and form bodies. A final `*` matches one or more segments.
const PATHS: [(&str, bool); 7] = [
    ("/v1/embeddings", false),
    ("/v1/completions", false),
    ("/v1/rerank", false),
    ("/tokenize", false),
    ("/detokenize", false),
    ("/infill", false),
    ("/v1/audio/*", true),
];

/// The paths that are forwarded.
#[derive(Clone, Debug)]
pub(crate) struct PassedPaths(Vec<(String, bool)>);

impl PassedPaths {
    /// Creates the list from the table and the paths of `--pass`.
    ///
    /// # Errors
    /// A one-line error for a path that cannot be forwarded.
    pub(crate) fn new(typed: &[String]) -> Result<PassedPaths> {
        let mut paths: Vec<(String, bool)> =
            PATHS.map(|(path, forms)| (path.to_owned(), forms)).into();
        for path in typed {
            let fixed = path.strip_suffix("/*").unwrap_or(path);
            let is_path = path == "/*" || fixed.strip_prefix('/').is_some_and(is_safe);
            if !is_path {
                bail!(
                    "--pass {path}: not a path, write it as /api/tags or, with all below it, as /api/*"
                );
            }
            if !Endpoint::of(fixed).gives_way() && path != "/*" {
                bail!("--pass {path}: tc-serve answers this path itself, name another");
            }
            paths.push((path.clone(), true));
        }
        Ok(PassedPaths(paths))
    }

    /// Returns the provider's path for a client's path, which may omit or double `/v1`, and whether
    /// the path accepts `GET` and forms. Returns `None` if the path is not forwarded.
    pub(crate) fn find(&self, path: &str) -> Option<(String, bool)> {
        let rest = unversioned(path);
        let (known, forms) = self.0.iter().find(|(known, _)| {
            let known = unversioned(known);
            match known.strip_suffix('*') {
                Some(begin) => rest.strip_prefix(begin).is_some_and(is_safe),
                None => known == rest,
            }
        })?;
        let version = if known.starts_with("/v1/") { "/v1" } else { "" };
        Some((format!("{version}{rest}"), *forms))
    }
}

/// Whether the segments mean the same to every server: they contain no `..`, no percent-encoding
/// and no empty segment.
fn is_safe(segments: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:@".contains(&byte);
    segments
        .split('/')
        .all(|segment| !matches!(segment, "" | "." | "..") && segment.bytes().all(is_plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_and_without_their_version() {
        for (path, route) in [
            ("/", Endpoint::Root),
            ("", Endpoint::Root),
            (
                "/v1/chat/completions",
                Endpoint::Answer(AnyFront::Api(Front::Chat)),
            ),
            (
                "/chat/completions",
                Endpoint::Answer(AnyFront::Api(Front::Chat)),
            ),
            (
                "/v1/v1/messages",
                Endpoint::Answer(AnyFront::Api(Front::Messages)),
            ),
            (
                "/v1/responses/",
                Endpoint::Answer(AnyFront::Api(Front::Responses)),
            ),
            ("/v1/messages/count_tokens", Endpoint::CountTokens),
            ("/v1/models", Endpoint::Models),
            ("/v1/models/org/name", Endpoint::Model),
            ("/v1/models/", Endpoint::Models),
            ("/events", Endpoint::Answer(AnyFront::Events)),
            (
                "/api/ag-ui",
                Endpoint::Answer(AnyFront::Ui(api::UiFront::AgUi)),
            ),
            ("/api/chat/3f/stop", Endpoint::Chat(ChatPath::Stop)),
            ("/api/chat/3f/stops", Endpoint::Unknown),
            ("/v1", Endpoint::Unknown),
            ("/v1x/models", Endpoint::Unknown),
            ("/v1/messages/batches", Endpoint::Unknown),
            ("/v1/sessions/", Endpoint::Sessions),
            ("/v1/sessions/events", Endpoint::AllEvents),
            ("/v1/sessions/3f", Endpoint::Session),
            ("/v1/sessions/..", Endpoint::Session),
            ("/v1/sessions/3f/events", Endpoint::SessionEvents),
            ("/sessions/..%2f/events", Endpoint::SessionEvents),
            ("/v1/sessions/../models", Endpoint::Unknown),
            ("/v1/sessions/3f/events/x", Endpoint::Unknown),
        ] {
            assert_eq!(Endpoint::of(path), route, "{path}");
        }
    }

    #[test]
    fn an_error_has_the_shape_of_the_path_or_of_the_client() {
        let claude: HeaderMap = [("anthropic-version", "2023-06-01")]
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .into_iter()
            .collect();
        for (path, front) in [
            ("/chat/completions/", Some(Front::Chat)),
            ("/v1/messages/count_tokens", Some(Front::Messages)),
            ("/v1/messages/batches", Some(Front::Messages)),
            ("/v1/v1/messages/x", Some(Front::Messages)),
            ("/v1/responses/resp_1", Some(Front::Responses)),
            ("/v1/messagesx", None),
            ("/v1/models/x", None),
        ] {
            let of_errors = |headers: &HeaderMap| Endpoint::front_of_errors(path, headers);
            assert_eq!(of_errors(&HeaderMap::new()), front, "{path}");
            let front = front.or(Some(Front::Messages));
            assert_eq!(of_errors(&claude), front, "{path}");
        }
    }
}

#[cfg(test)]
mod passed_tests {
    use super::*;

    #[test]
    fn a_path_is_passed_as_the_server_has_it_or_not_at_all() {
        let paths = PassedPaths::new(&["/api/tags".to_owned(), "/v1/files/*".to_owned()]).unwrap();
        for (path, passed) in [
            ("/v1/embeddings", Some("/v1/embeddings")),
            ("/embeddings", Some("/v1/embeddings")),
            ("/v1/v1/rerank/", Some("/v1/rerank")),
            ("/v1/tokenize", Some("/tokenize")),
            ("/tokenize", Some("/tokenize")),
            ("/v1/audio/transcriptions", Some("/v1/audio/transcriptions")),
            ("/audio/speech", Some("/v1/audio/speech")),
            ("/api/tags", Some("/api/tags")),
            ("/v1/files/f-1/content", Some("/v1/files/f-1/content")),
            ("/v1/audio", None),
            ("/v1/audio/", None),
            ("/v1/audio/..", None),
            ("/v1/audio/../models", None),
            ("/v1/audio/%2e%2e/models", None),
            ("/v1/audio/..%2fmodels", None),
            ("/v1/audio/a//b", None),
            ("/v1/audio/./a", None),
            ("/v1/audio/a\\b", None),
            ("/v1/audio/a;b", None),
            ("/v1/embeddings/..", None),
            ("/v1/embeddingsx", None),
            ("/api/tagsx", None),
            ("/slots", None),
        ] {
            assert_eq!(
                paths.find(path).map(|(path, _)| path).as_deref(),
                passed,
                "{path}"
            );
        }
        for wrong in [
            "",
            "api",
            "/",
            "/..",
            "/a/../b",
            "/%2e",
            "/a?b",
            "/v1/messages",
            "/models",
            "/health",
            "/a*",
        ] {
            assert!(PassedPaths::new(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
        let all = PassedPaths::new(&["/*".to_owned()]).unwrap();
        assert_eq!(
            (all.find("/slots/1"), all.find("/a/../b")),
            (Some(("/slots/1".to_owned(), true)), None)
        );
    }
}
