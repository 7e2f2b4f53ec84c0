//! Which addresses are not of the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What kind of address it is, such as `a loopback address`, if it is not one of the public
/// internet: `None` for a public one. An IPv4 address inside an IPv6 address counts as itself. The
/// kinds are those of IANA's registries of special addresses
/// (<https://www.iana.org/assignments/iana-ipv4-special-registry>,
/// <https://www.iana.org/assignments/iana-ipv6-special-registry>).
pub fn special(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) => special_v4(v4),
        IpAddr::V6(v6) => special_v6(v6),
    }
}

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    let kind = match address.octets() {
        [127, ..] => "a loopback address",
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => "a private address",
        // Clouds answer here with the credentials of the machine (169.254.169.254).
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
        // NAT64 (RFC 6052): networks without IPv4 reach all of it so.
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
