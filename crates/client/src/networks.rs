//! Clients of several servers.

use crate::{Network, NetworkError, Route};
use std::time::Duration;
use url::Url;

/// Clients of several servers. Equal routes to a server share one client.
#[derive(Debug, Default)]
pub struct Networks(Vec<(Route, Duration, Network)>);

impl Networks {
    /// Returns the client for `route`, which [`Network::new`] creates if there is none yet.
    ///
    /// # Errors
    /// As [`Network::new`].
    pub fn along(
        &mut self,
        route: &Route,
        connect_timeout: Duration,
    ) -> Result<Network, NetworkError> {
        let to_server = Route {
            url: Url::parse(&route.url).map_or_else(
                |_| route.url.clone(),
                |url| url.origin().ascii_serialization(),
            ),
            ..route.clone()
        };
        let mut known = self.0.iter();
        match known.find(|(route, time, _)| (route, *time) == (&to_server, connect_timeout)) {
            Some((_, _, network)) => Ok(network.clone()),
            None => {
                let network = Network::new(route, connect_timeout)?;
                self.0.push((to_server, connect_timeout, network.clone()));
                Ok(network)
            }
        }
    }
}
