use ::http::{HeaderMap, HeaderValue};
use proptest::prelude::*;

use super::*;
use crate::facts::Client;

const SEED: Seed = Seed([7; 16]);

fn facts<'a>(headers: &'a HeaderMap, address: Option<IpAddr>, client: Client<'a>) -> Facts<'a> {
    Facts {
        method: "GET",
        path: "/",
        other_path: None,
        host: "",
        query: None,
        headers,
        address,
        client,
        preflight: false,
        body: None,
        cost: None,
    }
}

fn key(form: &KeyForm, facts: &Facts<'_>) -> (Made, Vec<u8>) {
    let mut bytes = Bytes::new();
    let around = Around {
        plans: &[],
        address: &Rules { trust: Vec::new(), ipv6_prefix: 64, field: crate::http::client_addr::Field::Either },
        seed: &SEED,
    };
    let made = form.write(facts, &Matching::default(), Met { route: 0, path: facts.path }, around, &mut bytes);
    (made, bytes.to_vec())
}

fn form(parts: &[Part]) -> KeyForm {
    KeyForm { parts: parts.to_vec(), missing: Missing::Ip, by_plan: false }
}

fn by_headers(values: &[Vec<u8>; 3]) -> Vec<u8> {
    let names = ["x-a", "x-b", "x-c"].map(HeaderName::from_static);
    let mut headers = HeaderMap::new();
    for (name, value) in names.iter().zip(values) {
        if let Ok(value) = HeaderValue::from_bytes(value) {
            headers.insert(name, value);
        }
    }
    let parts: Vec<Part> = names.iter().cloned().map(Part::Header).collect();
    key(&form(&parts), &facts(&headers, Some([192, 0, 2, 1].into()), Client { name: None, plan: 0 })).1
}

/// Bytes that a header may carry and that would confuse a key without lengths; short and long.
fn value() -> impl Strategy<Value = Vec<u8>> {
    let byte =
        prop_oneof![Just(b'a'), Just(b','), Just(b'\t'), Just(1_u8 | 0x80), Just(8 | 0x80), Just(0xff), b'b'..b'e'];
    prop_oneof![proptest::collection::vec(byte.clone(), 1..5), proptest::collection::vec(byte, 60..70)].prop_map(
        |mut bytes| {
            // What surrounds a value is not part of it.
            bytes[0] = b'x';
            bytes.push(b'y');
            bytes
        },
    )
}

/// Bytes among which are tags, lengths and NUL.
fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0), Just(1), Just(tag::HEADER), Just(tag::HEADER | tag::HASHED), Just(b'a')];
    prop_oneof![proptest::collection::vec(byte.clone(), 0..4), proptest::collection::vec(byte, 62..68)]
}

proptest! {
    #[test]
    fn keys_of_different_facts_differ(a in [value(), value(), value()], b in [value(), value(), value()]) {
        prop_assert_eq!(by_headers(&a) == by_headers(&b), a == b);
    }

    #[test]
    fn rows_of_any_bytes_give_different_keys(
        a in [any_bytes(), any_bytes(), any_bytes()],
        b in [any_bytes(), any_bytes(), any_bytes()],
        shift in any_bytes(),
    ) {
        let of = |row: &[Vec<u8>; 3]| {
            let mut bytes = Bytes::new();
            for text in row {
                write_text(tag::HEADER, text, &SEED, &mut bytes);
            }
            bytes
        };
        prop_assert_eq!(of(&a) == of(&b), a == b);
        // The same bytes, parted elsewhere.
        let joined = |x: &[u8], y: &[u8]| [x, &[tag::HEADER, 0], y].concat();
        let (left, right) = (joined(&a[0], &shift), joined(&shift, &a[1]));
        let one = [a[0].clone(), right, a[2].clone()];
        let other = [left, a[1].clone(), a[2].clone()];
        prop_assert_eq!(of(&one) == of(&other), one == other);
    }

    #[test]
    fn names_with_any_bytes_give_different_keys(a in "\\PC{0,80}|[\0\x01\x05|]{0,5}", b in "\\PC{0,80}|[\0\x01\x05|]{0,5}") {
        let headers = HeaderMap::new();
        let of = |name| key(&form(&[Part::Client, Part::Plan]), &facts(&headers, None, Client { name: Some(name), plan: 0 }));
        prop_assert_eq!(of(&a) == of(&b), a == b);
    }

    #[test]
    fn a_key_is_short_whatever_is_sent(value in proptest::collection::vec(b'!'..b'~', 65..9000)) {
        let mut headers = HeaderMap::new();
        headers.insert("x-a", HeaderValue::from_bytes(&value).unwrap());
        let part = Part::Header(HeaderName::from_static("x-a"));
        let (_, bytes) = key(&form(&[part]), &facts(&headers, None, Client { name: None, plan: 0 }));
        prop_assert_eq!(bytes.len(), 25);
    }

    #[test]
    fn addresses_of_one_block_are_one_caller(high: u64, a: u64, b: u64, other: u64) {
        let of = |high: u64, low: u64| {
            let address = IpAddr::V6((u128::from(high) << 64 | u128::from(low)).into());
            let headers = HeaderMap::new();
            key(&form(&[Part::Ip]), &facts(&headers, Some(address), Client { name: None, plan: 0 }))
        };
        prop_assume!(high != 0 && high != 0x0064_ff9b << 32 && other != 0 && other != 0x0064_ff9b << 32);
        prop_assert_eq!(of(high, a), of(high, b));
        prop_assert_eq!(of(high, a) == of(other, a), high == other);
    }
}

#[test]
fn ipv4_is_ipv4_in_any_clothes() {
    let headers = HeaderMap::new();
    let of = |address: &str| {
        let address = address.parse().unwrap();
        key(&form(&[Part::Ip]), &facts(&headers, Some(address), Client { name: None, plan: 0 }))
    };
    for clothes in ["::ffff:192.0.2.1", "64:ff9b::192.0.2.1"] {
        assert_eq!(of(clothes), of("192.0.2.1"));
    }
    assert_ne!(of("192.0.2.2"), of("192.0.2.1"));
    assert_ne!(of("::192.0.2.1"), of("192.0.2.1"));
}

#[test]
fn a_client_without_a_key_is_its_address_and_its_plan_does_not_matter() {
    let headers = HeaderMap::new();
    let address = Some([192, 0, 2, 1].into());
    let by = |parts: &[Part], name, plan| key(&form(parts), &facts(&headers, address, Client { name, plan }));
    assert_eq!(by(&[Part::Client], None, 0), by(&[Part::Client], None, 1));
    assert_eq!(by(&[Part::Client], Some("acme"), 0), by(&[Part::Client], Some("acme"), 1));
    assert_ne!(by(&[Part::Client], Some("acme"), 0), by(&[Part::Client], None, 0));
    assert_eq!(by(&[Part::Client], None, 0), by(&[Part::Ip], None, 0));
}

#[test]
fn what_is_missing_is_never_one_bucket_for_all() {
    let part = Part::Header(HeaderName::from_static("x-user"));
    let mut headers = HeaderMap::new();
    let nobody = Client { name: None, plan: 0 };
    let of = |missing, headers: &HeaderMap, last: u8| {
        let form = KeyForm { parts: vec![part.clone()], missing, by_plan: false };
        key(&form, &facts(headers, Some([192, 0, 2, last].into()), nobody))
    };
    assert_ne!(of(Missing::Ip, &headers, 1), of(Missing::Ip, &headers, 2));
    assert_eq!(of(Missing::Deny, &headers, 1).0, Made::Deny);
    assert_eq!(of(Missing::Skip, &headers, 1).0, Made::Skip);
    headers.insert("x-user", HeaderValue::from_static(""));
    assert_eq!(of(Missing::Deny, &headers, 1).0, Made::Deny);
    headers.insert("x-user", HeaderValue::from_static("me"));
    assert_eq!(of(Missing::Deny, &headers, 1), of(Missing::Skip, &headers, 2));
}
