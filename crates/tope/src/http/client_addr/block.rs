//! The addresses that are one caller: an IPv4 address, or the IPv6 addresses of one prefix.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Rules;

/// A block of addresses that are one caller: 18 bytes. Blocks are equal when their bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// Family (4 or 6), prefix length, and the address with all other bits 0; an IPv4 address fills the first four.
    bytes: [u8; 18],
}

impl Block {
    /// The bytes for a bucket's key: family, prefix length, address; never two blocks alike.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..if self.bytes[0] == 4 { 6 } else { 18 }]
    }
}

/// The block of an address: IPv4 whole, IPv6 by the prefix of the rules. An IPv4-mapped address, and one behind NAT64
/// (`64:ff9b::/96`, RFC 6052), is its IPv4 address; else all callers behind NAT64 were one.
pub fn block(address: IpAddr, rules: &Rules) -> Block {
    let mut bytes = [0; 18];
    match unwrapped(address.to_canonical()) {
        IpAddr::V4(address) => {
            bytes[..2].copy_from_slice(&[4, 32]);
            bytes[2..6].copy_from_slice(&address.octets());
        }
        IpAddr::V6(address) => {
            let prefix = rules.ipv6_prefix.min(128);
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            bytes[..2].copy_from_slice(&[6, prefix]);
            bytes[2..].copy_from_slice(&(u128::from(address) & mask).to_be_bytes());
        }
    }
    Block { bytes }
}

fn unwrapped(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => match v6.octets() {
            [0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d] => Ipv4Addr::new(a, b, c, d).into(),
            _ => address,
        },
        IpAddr::V4(_) => address,
    }
}

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bytes {
            [4, _, one, two, three, four, ..] => Ipv4Addr::new(one, two, three, four).fmt(f),
            [_, prefix, address @ ..] => write!(f, "{}/{prefix}", Ipv6Addr::from(address)),
        }
    }
}
