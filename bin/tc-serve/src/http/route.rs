//! What a path is for.

use api::Front;
use hyper::{HeaderMap, Method};

/// What a path is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// `/`
    Root,
    /// `/health`
    Health,
    /// `/health?upstream`
    UpstreamHealth,
    /// A path that is passed to the provider as it is. The flag: it takes `GET`, and forms as
    /// bodies.
    Pass(bool),
    /// `/v1/models`
    Models,
    /// `/v1/models/NAME`
    Model,
    /// The path of a front.
    Answer(Front),
    /// `/v1/events`
    Events,
    /// `/v1/messages/count_tokens`
    CountTokens,
    /// None of these.
    Unknown,
}

impl Route {
    /// What `path` is for. The prefix `/v1` may be missing, or be there twice: people give a base
    /// URL with and without it.
    pub fn of(path: &str) -> Route {
        let rest = unversioned(path);
        match rest {
            "" => Route::Root,
            "/health" => Route::Health,
            "/models" => Route::Models,
            "/events" => Route::Events,
            "/messages/count_tokens" => Route::CountTokens,
            _ if rest
                .strip_prefix("/models/")
                .is_some_and(|name| !name.is_empty()) =>
            {
                Route::Model
            }
            _ => {
                let path = |front: Front| front.path().strip_prefix("/v1").unwrap_or(front.path());
                Front::ALL
                    .into_iter()
                    .find(|front| path(*front) == rest)
                    .map_or(Route::Unknown, Route::Answer)
            }
        }
    }

    /// The API that a client of this path speaks.
    pub fn front(self) -> Option<Front> {
        match self {
            Route::Answer(front) => Some(front),
            Route::CountTokens => Some(Front::Messages),
            _ => None,
        }
    }

    /// The API in whose shape errors are written: that of the path, also of a path which only that
    /// API has elsewhere, such as `/v1/messages/batches`, or that of a client of Anthropic's, which
    /// names the version of its API.
    pub fn front_of_errors(self, path: &str, headers: &HeaderMap) -> Option<Front> {
        let is_below = |front: &Front| {
            let tail = front.path().strip_prefix("/v1").unwrap_or(front.path());
            path.split_once(tail)
                .is_some_and(|(_, rest)| rest.is_empty() || rest.starts_with('/'))
        };
        let by_header = || {
            headers
                .contains_key("anthropic-version")
                .then_some(Front::Messages)
        };
        self.front()
            .or_else(|| Front::ALL.into_iter().find(is_below))
            .or_else(by_header)
    }

    /// The methods that it has.
    pub fn methods(self) -> &'static [Method] {
        match self {
            Route::Root | Route::Health | Route::UpstreamHealth | Route::Models | Route::Model => {
                &[Method::GET, Method::HEAD]
            }
            Route::Pass(true) => &[Method::GET, Method::POST],
            Route::Answer(_) | Route::Events | Route::CountTokens | Route::Pass(false) => {
                &[Method::POST]
            }
            Route::Unknown => &[],
        }
    }

    /// Whether a client has to send a key.
    pub fn needs_key(self) -> bool {
        !matches!(self, Route::Root | Route::Health)
    }
}

/// `path` without `/v1` before it, however often it is there, and without a slash at its end.
pub fn unversioned(path: &str) -> &str {
    let mut rest = path.strip_suffix('/').unwrap_or(path);
    while let Some(shorter) = rest
        .strip_prefix("/v1")
        .filter(|rest| rest.starts_with('/'))
    {
        rest = shorter;
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_and_without_their_version() {
        for (path, route) in [
            ("/", Route::Root),
            ("", Route::Root),
            ("/v1/chat/completions", Route::Answer(Front::Chat)),
            ("/chat/completions", Route::Answer(Front::Chat)),
            ("/v1/v1/messages", Route::Answer(Front::Messages)),
            ("/v1/responses/", Route::Answer(Front::Responses)),
            ("/v1/messages/count_tokens", Route::CountTokens),
            ("/v1/models", Route::Models),
            ("/v1/models/org/name", Route::Model),
            ("/v1/models/", Route::Models),
            ("/v1", Route::Unknown),
            ("/v1x/models", Route::Unknown),
            ("/v1/messages/batches", Route::Unknown),
        ] {
            assert_eq!(Route::of(path), route, "{path}");
        }
    }

    #[test]
    fn an_error_has_the_shape_of_the_path_or_of_the_client() {
        let claude: HeaderMap = [("anthropic-version", "2023-06-01")]
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .into_iter()
            .collect();
        for (path, front) in [
            ("/v1/messages/batches", Some(Front::Messages)),
            ("/v1/v1/messages/x", Some(Front::Messages)),
            ("/v1/responses/resp_1", Some(Front::Responses)),
            ("/v1/messagesx", None),
            ("/v1/models/x", None),
        ] {
            let route = Route::of(path);
            assert_eq!(
                route.front_of_errors(path, &HeaderMap::new()),
                front,
                "{path}"
            );
            assert_eq!(
                route.front_of_errors(path, &claude),
                front.or(Some(Front::Messages)),
                "{path}"
            );
        }
    }
}
