use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;

use super::*;

fn rules() -> Rules {
    let trust = ["10.0.0.0/8", "192.0.2.1/32", "2001:db8:aaaa::/48"];
    Rules {
        trust: trust.iter().map(|net| net.parse().expect("a net")).collect(),
        ipv6_prefix: 64,
        field: Field::Either,
    }
}

fn headers(lines: &[(&'static str, &[u8])]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(HeaderName::from_static(name), HeaderValue::from_bytes(value).expect("a value"));
    }
    headers
}

fn ask(peer: &str, lines: &[(&'static str, &str)]) -> String {
    let lines: Vec<_> = lines.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
    client_address(peer.parse().expect("an address"), &headers(&lines), &rules()).to_string()
}

/// A field and its value.
type Sent<'a> = (&'static str, &'a str);

const XFF: &str = "x-forwarded-for";
const FWD: &str = "forwarded";
/// A trusted peer.
const PROXY: &str = "10.0.0.1";

#[test]
fn x_forwarded_for() {
    let rows: &[(&str, &[&str], &str)] = &[
        // Nobody's word counts but that of a trusted peer.
        ("198.51.100.9", &["1.2.3.4"], "198.51.100.9"),
        ("192.0.2.2", &["1.2.3.4"], "192.0.2.2"),
        ("127.0.0.1", &["1.2.3.4"], "127.0.0.1"),
        ("::ffff:198.51.100.9", &["1.2.3.4"], "198.51.100.9"),
        ("2001:db8:bbbb::1", &["1.2.3.4"], "2001:db8:bbbb::1"),
        (PROXY, &[], PROXY),
        (PROXY, &["203.0.113.7"], "203.0.113.7"),
        ("192.0.2.1", &["203.0.113.7"], "203.0.113.7"),
        ("::ffff:10.0.0.1", &["203.0.113.7"], "203.0.113.7"),
        ("2001:db8:aaaa::1", &["203.0.113.7"], "203.0.113.7"),
        // From the right to the first that is not trusted.
        (PROXY, &["1.2.3.4, 203.0.113.7"], "203.0.113.7"),
        (PROXY, &["1.2.3.4, 203.0.113.7, 10.0.0.2"], "203.0.113.7"),
        (PROXY, &["203.0.113.7,10.0.0.3,10.0.0.2"], "203.0.113.7"),
        (PROXY, &["1.2.3.4, 10.0.0.3, 203.0.113.7, 10.0.0.2"], "203.0.113.7"),
        (PROXY, &["10.0.0.4, 10.0.0.3, 10.0.0.2"], "10.0.0.4"),
        // All lines are one.
        (PROXY, &["1.2.3.4", "203.0.113.7"], "203.0.113.7"),
        (PROXY, &["203.0.113.7", "10.0.0.2"], "203.0.113.7"),
        (PROXY, &["1.2.3.4, 203.0.113.7", "10.0.0.3", "10.0.0.2"], "203.0.113.7"),
        // Blanks, empty elements, commas too many.
        (PROXY, &["203.0.113.7,"], "203.0.113.7"),
        (PROXY, &["203.0.113.7, ,, ,10.0.0.2,"], "203.0.113.7"),
        (PROXY, &[" \t203.0.113.7\t "], "203.0.113.7"),
        (PROXY, &["", "203.0.113.7", ""], "203.0.113.7"),
        (PROXY, &[","], PROXY),
        // Ports, brackets, quotes, mapped addresses.
        (PROXY, &["203.0.113.7:4711"], "203.0.113.7"),
        (PROXY, &["203.0.113.7:_hidden"], "203.0.113.7"),
        (PROXY, &["2001:db8::7"], "2001:db8::7"),
        (PROXY, &["[2001:db8::7]"], "2001:db8::7"),
        (PROXY, &["[2001:db8::7]:4711"], "2001:db8::7"),
        (PROXY, &["\"[2001:db8::7]:4711\""], "2001:db8::7"),
        (PROXY, &["\"203.0.113.7\""], "203.0.113.7"),
        (PROXY, &["2001:db8::7:80"], "2001:db8::7:80"),
        (PROXY, &["::ffff:203.0.113.7"], "203.0.113.7"),
        (PROXY, &["::ffff:cb00:7107"], "203.0.113.7"),
        (PROXY, &["203.0.113.7, ::ffff:10.0.0.2"], "203.0.113.7"),
        (PROXY, &["2001:db8::1.2.3.4"], "2001:db8::102:304"),
        // Garbage stops the walk.
        (PROXY, &["unknown"], PROXY),
        (PROXY, &["1.2.3.4, _hidden"], PROXY),
        (PROXY, &["1.2.3.4, unknown, 10.0.0.2"], "10.0.0.2"),
        (PROXY, &["010.0.0.1"], PROXY),
        (PROXY, &["1.2.3"], PROXY),
        (PROXY, &["0x7f.1"], PROXY),
        (PROXY, &["203.0.113.7:"], PROXY),
        (PROXY, &["203.0.113.7:123456"], PROXY),
        (PROXY, &["203.0.113.7:80x"], PROXY),
        (PROXY, &["[203.0.113.7]"], PROXY),
        (PROXY, &["[2001:db8::7"], PROXY),
        (PROXY, &["[2001:db8::7]80"], PROXY),
        (PROXY, &["fe80::1%eth0"], PROXY),
        (PROXY, &["203.0.113.7 10.0.0.2"], PROXY),
        (PROXY, &["for=203.0.113.7"], PROXY),
        (PROXY, &["\u{e9}"], PROXY),
    ];
    for (peer, values, expected) in rows {
        let lines: Vec<_> = values.iter().map(|value| (XFF, *value)).collect();
        assert_eq!(ask(peer, &lines), *expected, "{peer} {values:?}");
    }
}

#[test]
fn forwarded() {
    let rows: &[(&str, &[&str], &str)] = &[
        ("198.51.100.9", &["for=1.2.3.4"], "198.51.100.9"),
        (PROXY, &["for=203.0.113.7"], "203.0.113.7"),
        (PROXY, &["For=203.0.113.7;proto=https;by=10.0.0.1"], "203.0.113.7"),
        (PROXY, &["proto=https; for=203.0.113.7 ;host=\"a.org:80\""], "203.0.113.7"),
        (PROXY, &["for=\"203.0.113.7:80\""], "203.0.113.7"),
        (PROXY, &["for=\"[2001:db8::7]:4711\""], "2001:db8::7"),
        (PROXY, &[";;for=203.0.113.7;"], "203.0.113.7"),
        (PROXY, &["for=1.2.3.4, for=203.0.113.7;by=_x, for=10.0.0.2"], "203.0.113.7"),
        (PROXY, &["for=1.2.3.4", "for=203.0.113.7", "for=10.0.0.2"], "203.0.113.7"),
        (PROXY, &["for=10.0.0.3, for=10.0.0.2"], "10.0.0.3"),
        (PROXY, &["for=1.2.3.4, for=unknown, for=10.0.0.2"], "10.0.0.2"),
        (PROXY, &["for=_hidden"], PROXY),
        (PROXY, &["for=[2001:db8::7]"], PROXY),
        (PROXY, &["for=2001:db8::7"], PROXY),
        (PROXY, &["for=203.0.113.7:80"], PROXY),
        (PROXY, &["for=203.0.113.7;for=1.2.3.4"], PROXY),
        (PROXY, &["proto=https"], PROXY),
        (PROXY, &["for = 203.0.113.7"], PROXY),
        (PROXY, &["for=203.0.113.7 proto=https"], PROXY),
        (PROXY, &["for=\"203.0.113.7\"x"], PROXY),
        (PROXY, &["for=\"203.0.113.7\\\""], PROXY),
        (PROXY, &["203.0.113.7"], PROXY),
        // What a client hides in quotes, its own or those that a proxy puts around its Host.
        (PROXY, &["for=\"1.2.3.4", "for=203.0.113.7"], "203.0.113.7"),
        (PROXY, &["for=\"1.2.3.4, for=203.0.113.7"], "203.0.113.7"),
        (PROXY, &["for=203.0.113.7;host=\"x,for=1.2.3.4\""], PROXY),
        (PROXY, &["for=203.0.113.7;host=\"x,for=1.2.3.4;y=\\\"\""], PROXY),
        (PROXY, &["for=203.0.113.7;host=\"x;for=1.2.3.4\""], "203.0.113.7"),
    ];
    for (peer, values, expected) in rows {
        let lines: Vec<_> = values.iter().map(|value| (FWD, *value)).collect();
        assert_eq!(ask(peer, &lines), *expected, "{peer} {values:?}");
    }
}

#[test]
fn a_client_can_not_forge_through_the_field_that_its_proxy_does_not_write() {
    let rows: &[(&[(&'static str, &str)], &str)] = &[
        (&[(XFF, "203.0.113.7"), (FWD, "for=203.0.113.7")], "203.0.113.7"),
        (&[(XFF, "1.2.3.4, 203.0.113.7"), (FWD, "for=203.0.113.7")], "203.0.113.7"),
        (&[(XFF, "203.0.113.7, 10.0.0.2"), (FWD, "for=203.0.113.7, for=10.0.0.2")], "203.0.113.7"),
        // One of the two is forged, and we can't know which: the hop is the last that both know.
        (&[(XFF, "203.0.113.7"), (FWD, "for=1.2.3.4")], PROXY),
        (&[(XFF, "1.2.3.4"), (FWD, "for=203.0.113.7")], PROXY),
        (&[(XFF, "1.2.3.4"), (FWD, "for=unknown")], PROXY),
        (&[(XFF, "1.2.3.4, 10.0.0.2"), (FWD, "for=203.0.113.7, for=10.0.0.2")], "10.0.0.2"),
        (&[(XFF, "203.0.113.7, 10.0.0.2"), (FWD, "for=10.0.0.2")], "10.0.0.2"),
        (&[(XFF, "1.2.3.4"), (FWD, "")], PROXY),
    ];
    for (lines, expected) in rows {
        assert_eq!(ask(PROXY, lines), *expected, "{lines:?}");
    }
}

#[test]
fn the_field_that_proxies_write_is_read_alone() {
    let both = [(XFF, "203.0.113.7"), (FWD, "for=1.2.3.4")];
    let rows: &[(Field, &[Sent<'_>], &str)] = &[
        (Field::XForwardedFor, &both, "203.0.113.7"),
        (Field::Forwarded, &both, "1.2.3.4"),
        (Field::XForwardedFor, &both[1..], PROXY),
        (Field::Forwarded, &both[..1], PROXY),
        (Field::XForwardedFor, &[(XFF, "203.0.113.7"), (FWD, "x")], "203.0.113.7"),
        (Field::Forwarded, &[(XFF, "x"), (FWD, "for=203.0.113.7")], "203.0.113.7"),
    ];
    for (field, lines, expected) in rows {
        let lines: Vec<_> = lines.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        let rules = Rules { field: *field, ..rules() };
        let client = client_address(PROXY.parse().expect("an address"), &headers(&lines), &rules);
        assert_eq!(client.to_string(), *expected, "{field:?} {lines:?}");
    }
}

#[test]
fn a_proxy_at_which_the_walk_ended_for_want_of_better_is_not_the_caller() {
    let rows: &[(&[(&'static str, &str)], bool)] = &[
        (&[], true),
        (&[(XFF, "10.0.0.9")], true),
        (&[(XFF, "10.0.0.9, 10.0.0.2")], true),
        (&[(XFF, "203.0.113.7")], true),
        (&[(FWD, "for=10.0.0.9"), (XFF, "10.0.0.9")], true),
        (&[(XFF, "unknown")], false),
        (&[(XFF, "unknown, 10.0.0.2")], false),
        (&[(FWD, "for=_hidden")], false),
        (&[(FWD, "for=1.2.3.4"), (XFF, "203.0.113.7")], false),
        (&[(FWD, ""), (XFF, "203.0.113.7")], false),
        (&[(FWD, "for=10.0.0.2"), (XFF, "203.0.113.7, 10.0.0.2")], false),
    ];
    for (lines, expected) in rows {
        let lines: Vec<_> = lines.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        let headers = headers(&lines);
        let client = client_address(PROXY.parse().expect("an address"), &headers, &rules());
        assert_eq!(is_callers(client, &headers, &rules()), *expected, "{lines:?} {client}");
    }
    let many = format!("1.2.3.4, {}", vec!["10.0.0.2"; 32].join(", "));
    assert!(!is_callers("10.0.0.2".parse().expect("an address"), &headers(&[(XFF, many.as_bytes())]), &rules()));
}

#[test]
fn a_long_field_is_read_from_the_right_and_not_to_its_end() {
    let many = format!("1.2.3.4, {}", vec!["10.0.0.2"; 32].join(", "));
    assert_eq!(ask(PROXY, &[(XFF, &many)]), "10.0.0.2");
    let few = format!("1.2.3.4, {}", vec!["10.0.0.2"; 31].join(", "));
    assert_eq!(ask(PROXY, &[(XFF, &few)]), "1.2.3.4");
    let long = format!("1.2.3.4,{},203.0.113.7", "x".repeat(10_000));
    assert_eq!(ask(PROXY, &[(XFF, &long)]), "203.0.113.7");
    let blank = format!("1.2.3.4{}", ",".repeat(10_000));
    assert_eq!(ask(PROXY, &[(XFF, &blank)]), PROXY);
}

#[test]
fn blocks_of_addresses() {
    let show = |address: &str| block(address.parse().expect("an address"), &rules()).to_string();
    let rows = [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("64:ff9b::cb00:7107", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::", "2001:db8:1:3::/64"),
        ("::1", "::/64"),
        // Neither NAT64 nor mapped.
        ("64:ff9b:1::cb00:7107", "64:ff9b:1::/64"),
    ];
    for (address, expected) in rows {
        assert_eq!(show(address), expected, "{address}");
    }
    let bytes = |address: &str, ipv6_prefix| {
        block(address.parse().expect("an address"), &Rules { ipv6_prefix, ..rules() }).as_bytes().to_vec()
    };
    assert_eq!(bytes("203.0.113.7", 64), [4, 32, 203, 0, 113, 7]);
    assert_eq!(bytes("2001:db8::1", 0), [&[6, 0][..], &[0; 16]].concat());
    assert_eq!(bytes("2001:db8::1", 128)[17], 1);
    assert_eq!(bytes("2001:db8::1", 255), bytes("2001:db8::1", 128));
    assert_eq!(size_of::<Block>(), 18);
}

/// Values of the pieces that matter.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just("for="),
        Just("\""),
        Just(","),
        Just(";"),
        Just("10.0.0.2"),
        Just("1.2.3.4"),
        Just("["),
        Just("]"),
        Just("2001:db8::7"),
        Just(":80"),
        Just(" "),
        Just("unknown"),
        Just("\\"),
        Just("="),
        Just("x"),
    ];
    prop_oneof![
        3 => proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat().into_bytes()),
        1 => proptest::collection::vec(prop_oneof![0x20_u8..=0x7E, 0x80_u8..=0xFF], 0..40),
    ]
}

proptest! {
    #[test]
    fn nothing_that_an_untrusted_peer_sends_changes_its_address(
        peer: u128, lines in proptest::collection::vec((any::<bool>(), hostile()), 0..4),
    ) {
        let peer = IpAddr::from(std::net::Ipv6Addr::from(peer));
        let lines: Vec<_> = lines.iter().map(|(xff, value)| (if *xff { XFF } else { FWD }, &value[..])).collect();
        let (headers, rules) = (headers(&lines), rules());
        prop_assume!(!trusted(peer, &rules));
        prop_assert_eq!(client_address(peer, &headers, &rules), peer.to_canonical());
    }

    #[test]
    fn what_a_client_sends_stays_left_of_what_its_proxy_appends(
        sent in proptest::collection::vec(hostile(), 0..4), other in proptest::option::of(hostile()), xff: bool,
    ) {
        let (ours, theirs, appended): (_, _, &[u8]) =
            if xff { (XFF, FWD, b"203.0.113.7") } else { (FWD, XFF, b"for=203.0.113.7") };
        let mut lines: Vec<_> = sent.iter().map(|value| (ours, &value[..])).collect();
        lines.push((ours, appended));
        lines.extend(other.iter().map(|value| (theirs, &value[..])));
        let proxy: IpAddr = PROXY.parse().expect("an address");
        let client = client_address(proxy, &headers(&lines), &rules());
        prop_assert!(client == proxy || client.to_string() == "203.0.113.7", "{client}");
        prop_assert!(other.is_some() || client != proxy);
    }
}
