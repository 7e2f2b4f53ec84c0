//! Restricts which addresses may be connected to: those of the public internet, and those that the
//! caller allows by name or IP address. Also resolves the names.

use crate::body::start_thread;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Returns whether the caller allows a non-public address for a host of this name.
type Allowed = Arc<dyn Fn(&str, SocketAddr) -> bool + Send + Sync>;

/// Restricts which addresses may be connected to, and resolves names.
#[derive(Clone)]
pub struct Guard {
    allowed: Allowed,
    needs_loopback: bool,
    lookup: Lookup,
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("needs_loopback", &self.needs_loopback)
            .finish_non_exhaustive()
    }
}

/// Why an address must not be connected to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ForbiddenAddress {
    /// The address is not public and not allowed.
    #[error("{0} is {1}, which is not allowed")]
    Address(String, &'static str),
    /// The name resolves to such an address.
    #[error("{0} has the address {1}, {2}, which is not allowed")]
    Name(String, String, &'static str),
    /// A secret would be sent unencrypted.
    #[error("a secret would go over http to {0}, where anybody on the way can read it")]
    Exposed(String),
    /// The request is for a server other than that of its [`crate::Network`].
    #[error("the request is not for {0}, which the connection is for")]
    OtherServer(String),
}

impl Guard {
    /// Creates a guard that allows public addresses, and other addresses for which `allowed`
    /// returns true. `allowed` receives the host, in lower case and without a trailing dot, and the
    /// address.
    pub fn new(allowed: impl Fn(&str, SocketAddr) -> bool + Send + Sync + 'static) -> Guard {
        Guard {
            allowed: Arc::new(allowed),
            needs_loopback: false,
            lookup: system(),
        }
    }

    /// Restricts the guard to addresses of this machine. Used for requests with a secret over http.
    #[must_use]
    pub fn only_loopback(self) -> Guard {
        Guard {
            needs_loopback: true,
            ..self
        }
    }

    pub(crate) fn needs_loopback(&self) -> bool {
        self.needs_loopback
    }

    /// Returns the guard with another way to resolve names.
    #[cfg(test)]
    pub(crate) fn with_lookup(
        self,
        lookup: impl Fn(&str) -> std::io::Result<Vec<SocketAddr>> + Send + Sync + 'static,
    ) -> Guard {
        Guard {
            lookup: Arc::new(lookup),
            ..self
        }
    }

    /// Checks every address of `host`. One forbidden address forbids them all, because the server
    /// decides which address a client tries first.
    ///
    /// # Errors
    /// The first forbidden address.
    pub(crate) fn check(
        &self,
        host: &str,
        addresses: &[SocketAddr],
    ) -> Result<(), ForbiddenAddress> {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        for address in addresses {
            let ip = address.ip().to_canonical();
            if let Some(kind) = special(address.ip())
                && !(self.allowed)(&host, SocketAddr::new(ip, address.port()))
            {
                let is_number =
                    host.trim_start_matches('[').trim_end_matches(']').parse() == Ok(address.ip());
                return Err(match is_number {
                    true => ForbiddenAddress::Address(ip.to_string(), kind),
                    false => ForbiddenAddress::Name(host, ip.to_string(), kind),
                });
            }
            if self.needs_loopback && !ip.is_loopback() {
                return Err(ForbiddenAddress::Exposed(host));
            }
        }
        Ok(())
    }
}

/// Resolves a name to addresses with port 0. May block.
type Lookup = Arc<dyn Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync>;

/// Returns the system's resolver.
fn system() -> Lookup {
    Arc::new(|name| Ok((name, 0).to_socket_addrs()?.collect()))
}

/// Resolves each name in a separate thread: the HTTP client's own resolver panics if the system
/// cannot start a thread.
async fn in_thread(
    lookup: Lookup,
    name: String,
) -> Result<Vec<SocketAddr>, Box<dyn std::error::Error + Send + Sync>> {
    let (send, receive) = oneshot::channel();
    start_thread(move || {
        let _ = send.send(lookup(&name)); // fails when the request was dropped
    })?;
    Ok(receive.await??)
}

/// Resolves the host of a connection. The HTTP client connects only to the addresses returned here,
/// so a name that changes its address after the check gains nothing.
#[derive(Debug)]
pub(crate) struct Resolver {
    /// The guard that checks all addresses, and the port of the connection; `None` if nothing is
    /// checked.
    pub guard: Option<(Guard, u16)>,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.guard.clone();
        let name = name.as_str().to_owned();
        Box::pin(async move {
            let lookup = guard.as_ref().map(|(guard, _)| Arc::clone(&guard.lookup));
            let lookup = lookup.unwrap_or_else(system);
            let mut addresses = in_thread(lookup, name.clone()).await?;
            if let Some((guard, port)) = guard {
                for address in &mut addresses {
                    address.set_port(port);
                }
                guard.check(&name, &addresses)?;
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// What kind of address it is, such as `a loopback address`, if it is not one of the public
/// internet: `None` for a public one. An IPv4 address inside an IPv6 address counts as itself. The
/// kinds are those of IANA's registries of special addresses
/// (<https://www.iana.org/assignments/iana-ipv4-special-registry>,
/// <https://www.iana.org/assignments/iana-ipv6-special-registry>).
fn special(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) => special_v4(v4),
        IpAddr::V6(v6) => special_v6(v6),
    }
}

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    let kind = match address.octets() {
        [127, ..] => "a loopback address",
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => "a private address",
        // Cloud providers serve the machine's credentials here (169.254.169.254).
        [169, 254, ..] => "a link-local address",
        [100, 64..=127, ..] => "an address inside a provider's network",
        [0, ..] => "an address of this machine or its network",
        [224..=239, ..] => "a multicast address",
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => "an address for documentation",
        [192, 0, 0, _] | [192, 88, 99, _] | [198, 18..=19, ..] | [240..=255, ..] => {
            "a reserved address"
        }
        _ => return None,
    };
    Some(kind)
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    if let Some(v4) = address.to_ipv4_mapped() {
        return special_v4(v4);
    }
    let kind = match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => "a loopback address",
        [0, 0, 0, 0, 0, 0, 0, 0] => "an address of this machine or its network",
        // NAT64 (RFC 6052): IPv6-only networks reach the whole IPv4 internet through it.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            return special_v4(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
        }
        [0xfc00..=0xfdff, ..] => "a private address",
        [0xfe80..=0xfebf, ..] => "a link-local address",
        [0xff00..=0xffff, ..] => "a multicast address",
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => "an address for documentation",
        // 6to4 and Teredo hold an IPv4 address that their relays connect to; both are out of use
        // (RFC 7526).
        [0x2002, ..] | [0x2001, 0, ..] => "an address of a tunnel",
        [0x2001, 1..=0x1ff, ..] => "a reserved address",
        [0x2000..=0x3fff, ..] => return None,
        _ => "a reserved address",
    };
    Some(kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, Network, TimeLimits};
    use api::Request;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    /// A server on loopback that answers every request with 204 and keeps its connections, and its
    /// port.
    fn server() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                std::thread::spawn(move || {
                    let lines = BufReader::new(stream.try_clone().unwrap())
                        .lines()
                        .map_while(Result::ok);
                    for _ in lines.filter(String::is_empty) {
                        let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n");
                    }
                });
            }
        });
        port
    }

    /// The status of the answer to a request, or why none came.
    fn ask(network: &Network, url: &str) -> Result<u16, String> {
        let [first, _] = ask_twice(network, url);
        first
    }

    /// The same for two requests, one after the other.
    fn ask_twice(network: &Network, url: &str) -> [Result<u16, String>; 2] {
        let request = Request {
            method: "GET",
            url: url.to_owned(),
            headers: vec![],
            body: String::new(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let ask = async || {
            let sent = network
                .send(request.clone(), TimeLimits::default(), None)
                .await;
            let mut response = sent.map_err(|(e, _)| e.to_string())?;
            let piece = response.body.next().await;
            assert!(matches!(piece.what, crate::PieceContent::End), "{piece:?}");
            Ok(response.head.status)
        };
        runtime.block_on(async { [ask().await, ask().await] })
    }

    fn guarded(url: &str, guard: Guard) -> Result<Network, Error> {
        Network::guarded(url, guard, Duration::from_secs(10), None)
    }

    fn nothing() -> Guard {
        Guard::new(|_, _| false)
    }

    fn at(addresses: &'static [&'static str]) -> Guard {
        nothing().with_lookup(|_| {
            Ok(addresses
                .iter()
                .map(|a| SocketAddr::new(a.parse().unwrap(), 0))
                .collect())
        })
    }

    #[test]
    fn a_host_that_is_a_number_is_refused_in_every_spelling_before_anything_is_sent() {
        for (url, says) in [
            ("http://127.0.0.1/", "127.0.0.1 is a loopback address"),
            ("http://127.1/", "127.0.0.1 is a loopback address"),
            ("http://0x7f000001/", "127.0.0.1 is a loopback address"),
            ("http://2130706433/", "127.0.0.1 is a loopback address"),
            ("http://0177.0.0.1/", "127.0.0.1 is a loopback address"),
            ("http://127.0.0.1./", "127.0.0.1 is a loopback address"),
            (
                "http://\u{ff11}27.0.0.1/",
                "127.0.0.1 is a loopback address",
            ),
            ("http://[::1]/", "::1 is a loopback address"),
            (
                "http://[::ffff:127.0.0.1]/",
                "127.0.0.1 is a loopback address",
            ),
            ("http://[::ffff:10.0.0.1]/", "10.0.0.1 is a private address"),
            ("http://[::ffff:a00:1]/", "10.0.0.1 is a private address"),
            ("http://[64:ff9b::a9fe:a9fe]/", "is a link-local address"),
            (
                "https://169.254.169.254/latest/meta-data",
                "169.254.169.254 is a link-local address",
            ),
            ("http://user@10.0.0.1:80/", "10.0.0.1 is a private address"),
            ("http://0/", "0.0.0.0 is an address of this machine"),
            ("file:///etc/passwd", "the URL has no host"),
            ("gopher://h:70/", "gopher is neither http nor https"),
            ("unix:/run/docker.sock", "the URL has no host"),
            ("http://", "the URL is not valid"),
            ("//h/", "the URL is not valid"),
        ] {
            let refused = guarded(url, nothing()).map(drop).unwrap_err().to_string();
            assert!(refused.contains(says), "{url}: {refused}");
        }
    }

    #[test]
    fn every_address_of_a_name_is_checked() {
        for (addresses, says) in [
            (
                &["127.0.0.1"][..],
                "h.example has the address 127.0.0.1, a loopback address",
            ),
            (
                &["1.1.1.1", "10.0.0.1"],
                "h.example has the address 10.0.0.1, a private address",
            ),
            (
                &["1.1.1.1", "::ffff:192.168.0.1"],
                "192.168.0.1, a private address",
            ),
            (&["2606:4700::1", "fd00::1"], "fd00::1, a private address"),
        ] {
            let network = guarded("http://H.example./", at(addresses)).unwrap();
            let refused = ask(&network, "http://h.example./x").unwrap_err();
            assert!(refused.contains(says), "{refused}");
        }
        // The names of this machine are names like any other. Some systems do not know the one with
        // a dot.
        for (url, guard) in [
            ("http://localhost./", at(&["::1"])),
            ("http://LOCALHOST/", nothing()),
        ] {
            let refused = ask(&guarded(url, guard).unwrap(), url).unwrap_err();
            assert!(
                refused.contains("localhost has the address") && refused.contains("loopback"),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_name_is_looked_up_once_a_connection_and_what_was_checked_is_what_is_connected_to() {
        let port = server();
        let url = format!("http://rebinding.example:{port}/");
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let allowed = move |host: &str, address: SocketAddr| {
            host == "rebinding.example" && address == SocketAddr::from(([127, 0, 0, 1], port))
        };
        // The first answer is the server that is allowed, all later ones are the metadata of a
        // cloud.
        let guard = Guard::new(allowed).with_lookup(move |_| {
            let first = counted.fetch_add(1, Ordering::SeqCst) == 0;
            Ok(vec![SocketAddr::from((
                if first {
                    [127, 0, 0, 1]
                } else {
                    [169, 254, 169, 254]
                },
                0,
            ))])
        });
        let network = guarded(&url, guard).unwrap();
        let [first, second] = ask_twice(&network, &url);
        assert_eq!(first, Ok(204));
        // The second request uses no connection of the first, and what it looks up is checked
        // again.
        assert_eq!(count.load(Ordering::SeqCst), 2, "looked up once each");
        let refused = second.unwrap_err();
        assert!(
            refused.contains("169.254.169.254, a link-local address"),
            "{refused}"
        );
    }

    #[test]
    fn what_is_allowed_is_allowed_by_host_and_port() {
        let port = server();
        let allowed =
            move |host: &str, address: SocketAddr| host == "127.0.0.1" && address.port() == port;
        let url = |port: u16| format!("http://127.0.0.1:{port}/");
        let network = guarded(&url(port), Guard::new(allowed)).unwrap();
        assert_eq!(ask(&network, &url(port)), Ok(204));
        assert!(guarded(&url(port ^ 1), Guard::new(allowed)).is_err());
        // A connection is for one server.
        for other in [
            url(port ^ 1),
            format!("https://127.0.0.1:{port}/"),
            format!("http://h:{port}/"),
        ] {
            assert!(
                ask(&network, &other)
                    .unwrap_err()
                    .contains("is not for 127.0.0.1"),
                "{other}"
            );
        }
    }

    #[test]
    fn a_secret_over_http_stays_on_this_machine_whatever_the_name_says() {
        let url = "http://localhost:1/";
        let guard = || at(&["10.0.0.1"]).only_loopback();
        let allowed = Guard {
            allowed: Arc::new(|_, _| true),
            ..guard()
        };
        let refused = ask(&guarded(url, allowed).unwrap(), url).unwrap_err();
        assert!(
            refused.contains("a secret would go over http to localhost"),
            "{refused}"
        );
        let proxy = crate::Proxy {
            url: "http://127.0.0.1:1".to_owned(),
        };
        let refused = Network::guarded(url, guard(), Duration::from_secs(1), Some(&proxy))
            .map(drop)
            .unwrap_err();
        assert!(
            refused.to_string().contains("a secret would go over http"),
            "{refused}"
        );
    }
}

#[cfg(test)]
mod address_tests {
    use super::*;

    #[test]
    fn every_address_that_is_not_public_is_special() {
        for (address, word) in [
            ("127.0.0.1", "loopback"),
            ("127.255.255.254", "loopback"),
            ("10.0.0.1", "private"),
            ("172.16.0.1", "private"),
            ("172.31.255.255", "private"),
            ("192.168.1.1", "private"),
            ("169.254.169.254", "link-local"),
            ("100.64.0.1", "provider"),
            ("100.127.255.255", "provider"),
            ("0.0.0.0", "this machine"),
            ("0.1.2.3", "this machine"),
            ("224.0.0.1", "multicast"),
            ("239.255.255.255", "multicast"),
            ("255.255.255.255", "reserved"),
            ("240.0.0.1", "reserved"),
            ("192.0.0.8", "reserved"),
            ("192.88.99.1", "reserved"),
            ("198.19.0.1", "reserved"),
            ("192.0.2.1", "documentation"),
            ("198.51.100.1", "documentation"),
            ("203.0.113.1", "documentation"),
            ("::1", "loopback"),
            ("::", "this machine"),
            ("::127.0.0.1", "reserved"),
            ("::ffff:127.0.0.1", "loopback"),
            ("::ffff:10.0.0.1", "private"),
            ("::ffff:a9fe:a9fe", "link-local"),
            ("64:ff9b::10.0.0.1", "private"),
            ("64:ff9b::169.254.169.254", "link-local"),
            ("64:ff9b:1::8.8.8.8", "reserved"),
            ("2002:7f00:1::", "tunnel"),
            ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "tunnel"),
            ("2001:db8::1", "documentation"),
            ("3fff::1", "documentation"),
            ("2001:10::1", "reserved"),
            ("2001:2::1", "reserved"),
            ("fc00::1", "private"),
            ("fd12:3456::1", "private"),
            ("fd00:ec2::254", "private"),
            ("fe80::1", "link-local"),
            ("fec0::1", "reserved"),
            ("ff02::1", "multicast"),
            ("100::1", "reserved"),
            ("5f00::1", "reserved"),
            ("4000::1", "reserved"),
        ] {
            let kind = special(address.parse().unwrap());
            assert!(
                kind.is_some_and(|kind| kind.contains(word)),
                "{address}: {kind:?}"
            );
        }
    }

    #[test]
    fn public_addresses_are_not() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "192.167.0.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2a00:1450::1",
            "2001:200::1",
            "2001:4860:4860::8888",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
        ] {
            assert_eq!(special(address.parse().unwrap()), None, "{address}");
        }
    }
}
