//! Who is calling, by address: the peer, unless the peer is a proxy that the policy trusts.
//!
//! A trusted proxy appends to `Forwarded` (RFC 7239) or to `X-Forwarded-For`, so both are read from the right, over
//! all their lines, to the first address that is not trusted. Garbage stops the walk at the last good hop: what stands
//! left of it may be anybody's. When all hops are trusted the leftmost is the caller.
//!
//! When a request has both fields, a proxy may have written only one of them, and the other is the client's own word.
//! They are walked together and the walk ends where they part, at the last hop of which both speak: so a client that
//! forges the field its proxy doesn't write gets no address but that of a hop which is really there. A policy that says
//! which field its proxies write ([`Rules::field`]) has that one read alone.
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
    /// The field that the proxies write.
    pub field: Field,
}

/// Which field says who a proxy called for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Field {
    /// Either; where a request has both they have to agree.
    #[default]
    Either,
    /// `X-Forwarded-For` alone.
    XForwardedFor,
    /// `Forwarded` alone.
    Forwarded,
}

static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The caller's address in canonical form: an IPv4-mapped IPv6 address is the IPv4 address. `peer` is the other end of
/// the connection. At most 32 hops and 4 KiB of a field are read, from the right.
pub fn client_address(peer: IpAddr, headers: &HeaderMap, rules: &Rules) -> IpAddr {
    let peer = peer.to_canonical();
    if !trusted(peer, rules) {
        return peer;
    }
    walk(peer, headers, rules).0
}

/// Whether `address`, found with these fields, is that of a caller, and not of a proxy of ours at which the walk ended
/// because what stood left of it was garbage or in dispute. Only the caller itself may be let through by its address:
/// else whoever sends garbage would have the rights of the proxy.
pub fn is_callers(address: IpAddr, headers: &HeaderMap, rules: &Rules) -> bool {
    !trusted(address, rules) || walk(address, headers, rules).1
}

/// Whether this peer's word about addresses (and clients) is believed.
pub fn trusted(peer: IpAddr, rules: &Rules) -> bool {
    let peer = peer.to_canonical();
    rules.trust.iter().any(|net| net.contains(&peer))
}

/// From the nearest hop on, to the first that is not trusted; and whether the walk ended there or with the last hop.
fn walk(peer: IpAddr, headers: &HeaderMap, rules: &Rules) -> (IpAddr, bool) {
    let mut forwarded = elements::from_right(headers.get_all(&FORWARDED), elements::forwarded);
    let mut plain = elements::from_right(headers.get_all(&X_FORWARDED_FOR), elements::plain);
    let field = match (rules.field, headers.contains_key(&FORWARDED), headers.contains_key(&X_FORWARDED_FOR)) {
        (Field::Either, true, false) => Field::Forwarded,
        (Field::Either, false, _) => Field::XForwardedFor,
        (field, ..) => field,
    };
    let mut hop = || match field {
        Field::XForwardedFor => plain.next(),
        Field::Forwarded => forwarded.next(),
        Field::Either => match (forwarded.next(), plain.next()) {
            (None, None) => None,
            (a, b) => Some(a.flatten().filter(|_| a == b)),
        },
    };
    let mut client = peer;
    while let Some(next) = hop() {
        let Some(next) = next else { return (client, false) };
        client = next;
        if !trusted(next, rules) {
            break;
        }
    }
    (client, true)
}

#[cfg(test)]
mod tests;
