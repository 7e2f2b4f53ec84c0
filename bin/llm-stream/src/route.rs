//! Where an address leads: to this machine, or to another one.

use reqwest::Url;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// The way to the server of a base URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// Whether every connection stays on this machine.
    pub is_local: bool,
    /// The host's name and its addresses, where its name promises this machine: no other address is connected to.
    pub pinned: Option<(String, Vec<SocketAddr>)>,
}

impl Route {
    /// Looks at `url`; asks the system for the addresses of `localhost` and of the names under it. A name is a promise only
    /// (RFC 6761): what counts is the addresses that it really has.
    pub fn of(url: &str) -> Route {
        let Ok(url) = Url::parse(url) else { return Route::default() };
        let host = url.host_str().unwrap_or_default();
        if let Ok(address) = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            return Route { is_local: address.to_canonical().is_loopback(), pinned: None };
        }
        let name = host.trim_end_matches('.');
        if name != "localhost" && !name.ends_with(".localhost") {
            return Route::default();
        }
        let port = url.port_or_known_default().unwrap_or(80);
        // Files of hosts have names without the dot that ends a full name.
        Route::to(host, (name, port).to_socket_addrs().map(Iterator::collect).unwrap_or_default())
    }

    /// A name that has these addresses.
    fn to(host: &str, addresses: Vec<SocketAddr>) -> Route {
        let is_local = !addresses.is_empty() && addresses.iter().all(|a| a.ip().to_canonical().is_loopback());
        Route { is_local, pinned: is_local.then(|| (host.to_owned(), addresses)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_by_its_address() {
        for url in [
            "http://127.0.0.1",
            "http://127.1",
            "http://127.255.3.4:80/v1",
            "http://[::1]:1/",
            "http://0x7f000001",
            "http://2130706433",
            "http://0177.0.0.1",
            "http://[::ffff:127.0.0.1]",
            "http://[::ffff:7f00:1]",
        ] {
            assert_eq!(Route::of(url), Route { is_local: true, pinned: None }, "{url}");
        }
        for url in [
            "http://localhost.example.com",
            "http://mylocalhost",
            "http://10.0.0.1",
            "http://0.0.0.0",
            "http://127.0.0.1.example.com",
            "http://127.0.0.1@example.com",
            "http://[::ffff:10.0.0.1]",
            "http://[::127.0.0.1]",
            "nonsense",
        ] {
            assert_eq!(Route::of(url), Route::default(), "{url}");
        }
    }

    #[test]
    fn a_name_is_this_machine_only_if_all_its_addresses_are() {
        let to =
            |addresses: &[&str]| Route::to("x.localhost", addresses.iter().map(|text| text.parse().unwrap()).collect());
        let local = to(&["127.0.0.1:80", "[::1]:80"]);
        let (host, addresses) = local.pinned.unwrap();
        assert!(local.is_local && host == "x.localhost" && addresses.len() == 2);
        assert!(to(&["[::ffff:127.0.0.1]:80"]).is_local);
        for addresses in [&[][..], &["10.0.0.1:80"], &["127.0.0.1:80", "10.0.0.1:80"], &["[fe80::1]:80"]] {
            assert_eq!(to(addresses), Route::default(), "{addresses:?}");
        }
        for url in ["http://localhost:8080/v1", "http://LOCALHOST.:8080"] {
            let route = Route::of(url);
            assert!(route.is_local && route.pinned.unwrap().1.iter().all(|a| a.port() == 8080), "{url}");
        }
    }
}
