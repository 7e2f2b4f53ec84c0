//! The protocols that clients speak: the APIs of providers, the protocols of user interfaces, and
//! toolpipe's own events.

use api::{Api, Front, InboundError, InboundRequest, UiFront};

/// The protocol that a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnyFront {
    /// The API of a provider.
    Api(Front),
    /// A protocol of user interfaces.
    Ui(UiFront),
    /// Toolpipe's events.
    Events,
}

impl AnyFront {
    /// Returns all protocols.
    pub(crate) fn all() -> impl Iterator<Item = AnyFront> {
        let apis = Front::ALL.into_iter().map(AnyFront::Api);
        let uis = UiFront::ALL.into_iter().map(AnyFront::Ui);
        apis.chain(uis).chain([AnyFront::Events])
    }

    /// Returns the protocol with this name, as stored in the `response` event of a session, or
    /// `None` if the name is unknown.
    pub(crate) fn of(name: &str) -> Option<AnyFront> {
        AnyFront::all().find(|front| front.name() == name)
    }

    /// Returns the name used in sessions, the access log and the metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            AnyFront::Api(front) => front.name(),
            AnyFront::Ui(front) => front.name(),
            AnyFront::Events => "events",
        }
    }

    /// Returns the path of requests in this protocol.
    pub(crate) fn path(self) -> &'static str {
        match self {
            AnyFront::Api(front) => front.path(),
            AnyFront::Ui(front) => front.path(),
            AnyFront::Events => "/v1/events",
        }
    }

    /// Returns the API whose settings a request contains; chat completions if the client speaks no
    /// provider's API.
    pub(crate) fn settings(self) -> Front {
        match self {
            AnyFront::Api(front) => front,
            AnyFront::Ui(_) | AnyFront::Events => Front::Chat,
        }
    }

    /// Returns the API of [`AnyFront::settings`].
    pub(crate) fn api(self) -> Api {
        self.settings().api()
    }

    /// Whether the client is a user interface.
    pub(crate) fn is_ui(self) -> bool {
        matches!(self, AnyFront::Ui(_))
    }

    /// Whether the response to a request is a stream.
    pub(crate) fn streams(self, request: &InboundRequest) -> bool {
        request.streams || self == AnyFront::Events
    }

    /// Returns the headers specific to streams in this protocol.
    pub(crate) fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            AnyFront::Ui(front) => front.headers(),
            AnyFront::Api(_) | AnyFront::Events => &[],
        }
    }

    /// Parses the body of a request.
    ///
    /// # Errors
    /// As [`api::inbound`].
    pub(crate) fn read(self, body: &[u8]) -> Result<InboundRequest, InboundError> {
        match self {
            AnyFront::Ui(front) => api::ui_inbound(front, body),
            AnyFront::Api(_) | AnyFront::Events => api::inbound(self.api(), body),
        }
    }
}
