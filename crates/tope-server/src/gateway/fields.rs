//! Header fields between two hops: what belongs to one connection stays there, what is said of the caller is ours.
//!
//! One pass over the names finds what has to be done; most requests need nothing removed.

use http::header::{CONNECTION, HOST, TE, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Version};

use super::Caller;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const PROXY_AUTHENTICATE: HeaderName = HeaderName::from_static("proxy-authenticate");
const PROXY_AUTHORIZATION: HeaderName = HeaderName::from_static("proxy-authorization");
const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_TOPE_CLIENT: HeaderName = HeaderName::from_static("x-tope-client");
const X_TOPE_PLAN: HeaderName = HeaderName::from_static("x-tope-plan");

/// What a header has that concerns one hop only, or that we say ourselves: a set of the constants below.
#[derive(Clone, Copy, Debug, Default)]
struct Found(u8);

const OPTIONS: u8 = 1;
const HOP: u8 = 2;
const CODINGS: u8 = 4;
const CALLER: u8 = 8;
const ALIAS: u8 = 16;

impl Found {
    fn has(self, what: u8) -> bool {
        self.0 & what != 0
    }
}

fn survey(fields: &HeaderMap) -> Found {
    let mut found = Found::default();
    for name in fields.keys() {
        found.0 |= match name.as_str() {
            "connection" => OPTIONS,
            "te" => CODINGS,
            "keep-alive"
            | "proxy-connection"
            | "proxy-authenticate"
            | "proxy-authorization"
            | "transfer-encoding"
            | "upgrade"
            | "http2-settings" => HOP,
            other if is_callers(other) => CALLER,
            other if is_alias(other) => ALIAS,
            _ => 0,
        };
    }
    found
}

/// Whether many servers (CGI, WSGI, PHP) read this name as that of a field that says who is calling: they tell `_` and
/// `-` apart no more.
fn is_alias(name: &str) -> bool {
    name.contains('_') && is_callers(&name.replace('_', "-"))
}

/// Whether a name says who is calling.
fn is_callers(name: &str) -> bool {
    matches!(name, "x-tope-client" | "x-tope-plan" | "forwarded" | "x-real-ip") || name.starts_with("x-forwarded-")
}

fn drop_those(fields: &mut HeaderMap, those: impl Fn(&str) -> bool) {
    let names: Vec<_> = fields.keys().filter(|name| those(name.as_str())).cloned().collect();
    for name in names {
        fields.remove(name);
    }
}

/// Removes what belongs to the connection that a message came over, except a switch of protocols when `upgrade`.
fn strip(fields: &mut HeaderMap, found: Found, upgrade: bool) {
    if found.has(OPTIONS) {
        for name in named(fields) {
            // To name a field of ours, or one that frames or routes the message, must not make it vanish.
            if name != HOST && name != UPGRADE && name != TE && name != http::header::CONTENT_LENGTH {
                fields.remove(name);
            }
        }
        fields.remove(CONNECTION);
    }
    if found.has(HOP) {
        let switched = if upgrade { fields.remove(UPGRADE) } else { None };
        for name in [
            KEEP_ALIVE,
            PROXY_CONNECTION,
            PROXY_AUTHENTICATE,
            PROXY_AUTHORIZATION,
            TRANSFER_ENCODING,
            UPGRADE,
            HTTP2_SETTINGS,
        ] {
            fields.remove(name);
        }
        if let Some(protocol) = switched {
            fields.insert(UPGRADE, protocol);
            fields.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        }
    }
}

fn named(fields: &HeaderMap) -> Vec<HeaderName> {
    let options = fields.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let names = options.flat_map(|value| value.split(',')).map(str::trim);
    names
        .filter(|name| !name.eq_ignore_ascii_case("close") && !name.eq_ignore_ascii_case("keep-alive"))
        .filter_map(|name| HeaderName::from_bytes(name.as_bytes()).ok())
        .collect()
}

/// Whether a request asks to switch to WebSocket and nothing else: what another protocol does in a tunnel nobody limits.
pub(crate) fn upgrades(fields: &HeaderMap, version: Version) -> bool {
    version == Version::HTTP_11
        && fields.get_all(UPGRADE).iter().count() == 1
        && fields.get(UPGRADE).is_some_and(|to| to.as_bytes().eq_ignore_ascii_case(b"websocket"))
        && named(fields).contains(&UPGRADE)
}

/// Makes a request's header fit the next hop.
pub(crate) fn request(fields: &mut HeaderMap, host: Option<&HeaderValue>, caller: Option<&Caller>, upgrade: bool) {
    let found = survey(fields);
    let trailers = found.has(CODINGS) && wants_trailers(fields);
    strip(fields, found, upgrade);
    if found.has(CODINGS) {
        fields.remove(TE);
        if trailers {
            fields.insert(TE, HeaderValue::from_static("trailers"));
        }
    }
    if found.has(ALIAS) {
        drop_those(fields, is_alias);
    }
    if found.has(CALLER) {
        if caller.is_some_and(|caller| caller.trusted_peer) {
            fields.remove(X_TOPE_CLIENT);
            fields.remove(X_TOPE_PLAN);
        } else {
            drop_those(fields, is_callers);
        }
    }
    if let Some(caller) = caller {
        tell(fields, host, caller, found.has(CALLER));
    }
}

fn tell(fields: &mut HeaderMap, host: Option<&HeaderValue>, caller: &Caller, known: bool) {
    let address = if known { joined(fields, &caller.peer) } else { None };
    fields.insert(X_FORWARDED_FOR, address.unwrap_or_else(|| caller.peer.clone()));
    if !(known && fields.contains_key(X_FORWARDED_PROTO)) {
        fields.insert(X_FORWARDED_PROTO, HeaderValue::from_static("http"));
    }
    if let Some(host) = host.filter(|_| !(known && fields.contains_key(X_FORWARDED_HOST))) {
        fields.insert(X_FORWARDED_HOST, host.clone());
    }
    if let Some(client) = &caller.client {
        fields.insert(X_TOPE_CLIENT, client.clone());
    }
    if let Some(plan) = &caller.plan {
        fields.insert(X_TOPE_PLAN, plan.clone());
    }
}

/// The addresses that a trusted peer has named, and the peer behind them, in one line.
fn joined(fields: &HeaderMap, peer: &HeaderValue) -> Option<HeaderValue> {
    let mut line = Vec::new();
    for value in fields.get_all(X_FORWARDED_FOR) {
        line.extend_from_slice(value.as_bytes());
        line.extend_from_slice(b", ");
    }
    if line.is_empty() {
        return None;
    }
    line.extend_from_slice(peer.as_bytes());
    HeaderValue::from_maybe_shared(bytes::Bytes::from(line)).ok()
}

fn wants_trailers(fields: &HeaderMap) -> bool {
    let options = fields.get_all(TE).iter().filter_map(|value| value.to_str().ok());
    options.flat_map(|value| value.split(',')).any(|one| one.trim().eq_ignore_ascii_case("trailers"))
}

/// Drops from a request's trailers what says who is calling: some servers read them as header fields.
pub(crate) fn trailers(fields: &mut HeaderMap) {
    drop_those(fields, |name| is_callers(name) || is_alias(name));
}

/// Makes an answer's header fit the client's hop.
pub(crate) fn response(fields: &mut HeaderMap, upgrade: bool) {
    let found = survey(fields);
    strip(fields, found, upgrade);
    if found.has(CODINGS) {
        fields.remove(TE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let line = |&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        lines.iter().map(line).collect()
    }

    fn caller(trusted_peer: bool) -> Caller {
        let client = Some(HeaderValue::from_static("acme"));
        let peer = Caller::peer_text("::ffff:192.0.2.1".parse().unwrap());
        Caller { client, plan: None, peer, trusted_peer, forward_path: None }
    }

    static ASKED: HeaderValue = HeaderValue::from_static("a");

    #[test]
    fn what_belongs_to_one_hop_stays_there() {
        let mut all = fields(&[
            ("host", "a"),
            ("connection", "close, X-Private, host, content-length"),
            ("x-private", "1"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "x"),
            ("proxy-authorization", "x"),
            ("te", "gzip, trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("http2-settings", "x"),
            ("content-length", "3"),
            ("accept", "*/*"),
            ("x-tope-client", "forged"),
            ("x-tope-plan", "forged"),
        ]);
        request(&mut all, Some(&ASKED), None, false);
        assert_eq!(all, fields(&[("host", "a"), ("te", "trailers"), ("content-length", "3"), ("accept", "*/*")]));
    }

    #[test]
    fn a_switch_of_protocols_is_passed_on_alone() {
        let asked = fields(&[("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")]);
        assert!(upgrades(&asked, Version::HTTP_11));
        assert!(!upgrades(&asked, Version::HTTP_2));
        assert!(!upgrades(&fields(&[("upgrade", "websocket")]), Version::HTTP_11));
        for other in ["h2c", "websocket, h2c", "x, h2c", "TLS/1.0"] {
            assert!(!upgrades(&fields(&[("connection", "upgrade"), ("upgrade", other)]), Version::HTTP_11), "{other}");
        }
        let mut passed = asked;
        request(&mut passed, Some(&ASKED), None, true);
        assert_eq!(passed, fields(&[("connection", "upgrade"), ("upgrade", "websocket")]));
    }

    #[test]
    fn an_untrusted_peer_is_replaced_and_a_trusted_one_added_to() {
        let said = [
            ("x-forwarded-for", "203.0.113.9"),
            ("x-forwarded-for", "198.51.100.1"),
            ("x-forwarded-proto", "https"),
            ("forwarded", "for=203.0.113.9"),
            ("x-forwarded-port", "443"),
            ("x-forwarded-prefix", "/admin"),
            ("x-real-ip", "203.0.113.9"),
        ];
        let said = || {
            let mut map = fields(&said[..1]);
            for (name, value) in &said[1..] {
                map.append(*name, HeaderValue::from_static(value));
            }
            map
        };
        let mut outside = said();
        request(&mut outside, Some(&ASKED), Some(&caller(false)), false);
        let ours = [("x-forwarded-for", "192.0.2.1"), ("x-forwarded-proto", "http"), ("x-forwarded-host", "a")];
        assert_eq!(outside, fields(&[&ours[..], &[("x-tope-client", "acme")]].concat()));
        let mut inside = said();
        request(&mut inside, Some(&ASKED), Some(&caller(true)), false);
        assert_eq!(inside[X_FORWARDED_FOR], "203.0.113.9, 198.51.100.1, 192.0.2.1");
        assert_eq!(inside.get_all(X_FORWARDED_FOR).iter().count(), 1);
        assert_eq!(
            (&inside[X_FORWARDED_PROTO], &inside["forwarded"]),
            (&said()[X_FORWARDED_PROTO], &said()["forwarded"])
        );
        assert_eq!(
            (&inside["x-forwarded-port"], &inside["x-real-ip"]),
            (&said()["x-forwarded-port"], &said()["x-real-ip"])
        );
    }
}
