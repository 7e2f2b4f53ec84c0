//! The addresses that an HTTP tool may connect to although they are not of the public internet:
//! `"127.0.0.1:8080"`, `"10.0.0.0/8"`, `"[::1]:80"`, `"localhost:8080"`, `"registry.internal"`.

// `core::net` has the types of addresses alone; nothing here can open a socket.
use core::net::IpAddr;

/// A list of such addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedAddresses {
    entries: Vec<AllowedAddress>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct AllowedAddress {
    host: AllowedHost,
    /// `None`: any port.
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum AllowedHost {
    /// A network: an address, and how many of its first bits count.
    Network(IpAddr, u32),
    /// A name in lower case, whatever address it has.
    Name(String),
}

impl AllowedAddresses {
    /// Reads the entries.
    ///
    /// # Errors
    /// The first entry that is not an address.
    pub(crate) fn read(entries: &[String]) -> Result<AllowedAddresses, String> {
        let read = |text: &String| AllowedAddress::read(text).ok_or_else(|| text.clone());
        Ok(AllowedAddresses {
            entries: entries.iter().map(read).collect::<Result<_, _>>()?,
        })
    }

    /// Whether a connection to `host`, in lower case, at this address and port is allowed. An IPv4
    /// address must not be inside of an IPv6 address (see [`IpAddr::to_canonical`]).
    pub fn allows(&self, host: &str, address: IpAddr, port: u16) -> bool {
        let is_host = |allowed: &AllowedHost| match allowed {
            AllowedHost::Name(name) => name == host,
            AllowedHost::Network(network, bits) => is_in(address, *network, *bits),
        };
        self.entries
            .iter()
            .any(|entry| is_host(&entry.host) && entry.port.is_none_or(|allowed| allowed == port))
    }
}

impl AllowedAddress {
    fn read(text: &str) -> Option<AllowedAddress> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']')?;
                (
                    host,
                    if rest.is_empty() {
                        None
                    } else {
                        Some(rest.strip_prefix(':')?)
                    },
                )
            }
            None if text.matches(':').count() == 1 => text
                .split_once(':')
                .map(|(host, port)| (host, Some(port)))?,
            None => (text, None),
        };
        let port = match port {
            Some(port) => Some(port.parse().ok().filter(|port| *port > 0)?),
            None => None,
        };
        let (address, bits) = match host.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u32>().ok()?)),
            None => (host, None),
        };
        let host = match (address.parse::<IpAddr>(), bits) {
            (Ok(address), bits) => {
                let all = if address.is_ipv4() { 32 } else { 128 };
                AllowedHost::Network(address, bits.unwrap_or(all)).in_range(all)?
            }
            (Err(_), None) if is_name(host) => AllowedHost::Name(host.to_ascii_lowercase()),
            _ => return None,
        };
        Some(AllowedAddress { host, port })
    }
}

impl AllowedHost {
    fn in_range(self, all: u32) -> Option<AllowedHost> {
        matches!(&self, AllowedHost::Network(_, bits) if *bits <= all).then_some(self)
    }
}

/// Whether it is a name of a host. One that ends with a digit would be read as a number (`127.1`).
fn is_name(text: &str) -> bool {
    text.bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
        && text.ends_with(|c: char| c.is_ascii_alphabetic())
}

fn is_in(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            bits == 0 || (a.to_bits() ^ b.to_bits()) >> (32 - bits) == 0
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            bits == 0 || (a.to_bits() ^ b.to_bits()) >> (128 - bits) == 0
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_networks_and_names_are_allowed_with_a_port_or_any() {
        for (entry, host, address, port, is_allowed) in [
            ("127.0.0.1:8080", "localhost", "127.0.0.1", 8080, true),
            ("127.0.0.1:8080", "localhost", "127.0.0.1", 8081, false),
            ("127.0.0.1:8080", "localhost", "127.0.0.2", 8080, false),
            ("127.0.0.1", "h", "127.0.0.1", 1, true),
            ("10.0.0.0/8", "h", "10.255.0.1", 1, true),
            ("10.0.0.0/8", "h", "11.0.0.1", 1, false),
            ("10.1.2.3/8:443", "h", "10.255.0.1", 443, true),
            ("10.1.2.3/8:443", "h", "10.255.0.1", 80, false),
            ("0.0.0.0/0", "h", "169.254.169.254", 80, true),
            ("0.0.0.0/0", "h", "::1", 80, false),
            ("[::1]:80", "[::1]", "::1", 80, true),
            ("[::1]:80", "[::1]", "::1", 81, false),
            ("::1", "[::1]", "::1", 81, true),
            ("fd00::/8", "h", "fd12::1", 1, true),
            ("[fd00::/8]:443", "h", "fd12::1", 1, false),
            ("[fd00::/8]:443", "h", "fe12::1", 443, false),
            ("LocalHost:80", "localhost", "127.0.0.1", 80, true),
            (
                "registry.internal",
                "registry.internal",
                "10.0.0.1",
                5000,
                true,
            ),
            (
                "registry.internal",
                "x.registry.internal",
                "10.0.0.1",
                5000,
                false,
            ),
        ] {
            let allowed = AllowedAddresses::read(&[entry.to_owned()]).unwrap();
            assert_eq!(
                allowed.allows(host, address.parse().unwrap(), port),
                is_allowed,
                "{entry} {host} {address} {port}"
            );
        }
    }

    #[test]
    fn other_texts_are_no_addresses() {
        for entry in [
            "",
            "*",
            "127.1",
            "10.0.0.0/33",
            "::/129",
            "h:0",
            "h:x",
            "h/8",
            "[::1",
            "[::1]8",
            "http://h",
            "a b",
            "h:1:2",
        ] {
            assert_eq!(
                AllowedAddresses::read(&[entry.to_owned()]),
                Err(entry.to_owned()),
                "{entry}"
            );
        }
    }
}
