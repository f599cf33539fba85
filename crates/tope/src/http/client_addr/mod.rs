//! Who is calling, by address: the peer, unless the peer is a proxy that the policy trusts.
//!
//! A trusted proxy appends to `Forwarded` (RFC 7239) or to `X-Forwarded-For`, so both are read from the right, over
//! all their lines, to the first address that is not trusted. Garbage stops the walk at the last good hop: what stands
//! left of it may be anybody's. When all hops are trusted the leftmost is the caller.
//!
//! When a request has both fields, a proxy may have written only one of them, and the other is the client's own word.
//! They are walked together and the walk ends where they part, at the last hop of which both speak: so a client that
//! forges the field its proxy doesn't write gets no address but that of a hop which is really there.
//!
//! | room | what is in it |
//! |---|---|
//! | `elements` | one hop as text to an address |
//! | `block` | the addresses that are one caller |

mod block;
mod elements;

use std::net::IpAddr;

use http::header::FORWARDED;
use http::{HeaderMap, HeaderName};
use ipnet::IpNet;

pub use block::{Block, block};

/// Whose word about addresses is believed.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Proxies whose `Forwarded` and `X-Forwarded-For` count. Nobody unless said.
    pub trust: Vec<IpNet>,
    /// IPv6 addresses that share this many leading bits are one caller.
    pub ipv6_prefix: u8,
}

static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The caller's address in canonical form: an IPv4-mapped IPv6 address is the IPv4 address. `peer` is the other end of
/// the connection. At most 32 hops and 4 KiB of a field are read, from the right.
pub fn client_address(peer: IpAddr, headers: &HeaderMap, rules: &Rules) -> IpAddr {
    let peer = peer.to_canonical();
    if !trusted(peer, rules) {
        return peer;
    }
    let forwarded = headers.get_all(&FORWARDED);
    let x_forwarded_for = headers.get_all(&X_FORWARDED_FOR);
    let (mut forwarded, mut x_forwarded_for) =
        (elements::from_right(forwarded, elements::forwarded), elements::from_right(x_forwarded_for, elements::plain));
    match (headers.contains_key(&FORWARDED), headers.contains_key(&X_FORWARDED_FOR)) {
        (false, false) => peer,
        (true, false) => walk(peer, forwarded, rules),
        (false, true) => walk(peer, x_forwarded_for, rules),
        (true, true) => {
            let both = std::iter::from_fn(|| forwarded.next().filter(|hop| x_forwarded_for.next() == Some(*hop)));
            walk(peer, both, rules)
        }
    }
}

/// Whether this peer's word about addresses (and clients) is believed.
pub fn trusted(peer: IpAddr, rules: &Rules) -> bool {
    let peer = peer.to_canonical();
    rules.trust.iter().any(|net| net.contains(&peer))
}

/// From the nearest hop on, to the first that is not trusted.
fn walk(peer: IpAddr, hops: impl Iterator<Item = IpAddr>, rules: &Rules) -> IpAddr {
    let mut client = peer;
    for hop in hops {
        client = hop;
        if !trusted(hop, rules) {
            break;
        }
    }
    client
}

#[cfg(test)]
mod tests;
