//! Far more keys than places: memory is bounded, whoever is in debt stays in debt, and who keeps to the limit is not
//! disturbed.

use std::fmt::Write as _;
use std::io::Write as _;

use crate::client::{Ask, Caller, ask};
use crate::support::Gateway;

const PROXY: &str = "127.0.0.9";
const BATCH: usize = 200;

fn policy(max_keys: &str, rate: &str) -> String {
    format!(
        "address: {{ trust: [{PROXY}] }}\nmemory: {{ max_keys: {max_keys} }}\nlimits: {{ api: {{ by: ip, rate: {rate} }} }}\n"
    )
}

/// A request from the client of this number, as the proxy tells it; every number is another address.
fn from(number: usize) -> Ask {
    ask("HEAD", "/").with("X-Forwarded-For", &address(number))
}

fn address(number: usize) -> String {
    let [a, b, c, d] = u32::try_from(number + (11 << 24)).unwrap().to_be_bytes();
    format!("{a}.{b}.{c}.{d}")
}

/// One request of each of these clients, in batches on one connection; how many were refused.
fn touch(proxy: &mut Caller, clients: impl Iterator<Item = usize>) -> usize {
    let (mut refused, mut waiting, mut text) = (0, 0, String::new());
    let mut flush = |text: &mut String, waiting: &mut usize| {
        proxy.send(text.as_bytes());
        refused += proxy.heads(*waiting);
        text.clear();
        *waiting = 0;
    };
    for client in clients {
        let _ = write!(text, "HEAD / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: {}\r\n\r\n", address(client));
        waiting += 1;
        if waiting == BATCH {
            flush(&mut text, &mut waiting);
        }
    }
    flush(&mut text, &mut waiting);
    refused
}

#[test]
fn an_exhausted_key_is_still_refused_after_100_000_others() {
    let gateway = Gateway::start(&policy("10k", "3/h"));
    let mut proxy = gateway.caller_from(PROXY);
    let debtor = 16_000_000;
    assert_eq!(touch(&mut proxy, std::iter::repeat_n(debtor, 5)), 2);
    touch(&mut proxy, 0..100_000);
    assert_eq!(proxy.ask(&from(debtor)).status, 429, "an attacker in debt is forgotten last");
    assert!(gateway.metric("tope_evictions_total") > 80_000, "the others did go for each other");
}

/// The 100 use half of their budgets while so many others come once each; no refusal, and no growth between the first
/// third and the end.
fn flood(max_keys: &str, others: usize) -> (u64, u64) {
    let gateway = Gateway::start(&policy(max_keys, "100/h"));
    let mut proxy = gateway.caller_from(PROXY);
    let known = || 16_000_000..16_000_100;
    let mut refused = touch(&mut proxy, known());
    let mut early = 0;
    let rounds = 50;
    for round in 0..rounds {
        let share = others / rounds;
        touch(&mut proxy, round * share..(round + 1) * share);
        refused += touch(&mut proxy, known());
        if round == rounds / 10 {
            early = gateway.rss();
        }
    }
    assert_eq!(refused, 0, "of 100 known clients within their budgets");
    // The table has a quarter more places than it is made for, and a flood fills them all.
    let (live, made_for) = (gateway.metric("tope_keys"), gateway.metric("tope_keys_max"));
    assert!((made_for..=made_for * 5 / 4 + 5).contains(&live), "{live} of {made_for}");
    (early, gateway.rss())
}

#[test]
fn in_a_flood_of_300_000_keys_known_clients_are_not_refused() {
    let (early, end) = flood("10k", 300_000);
    assert!(end < early + early / 20, "from {early} to {end} bytes");
}

/// `make soak`.
#[test]
#[ignore = "minutes: 10,000,000 keys"]
fn in_a_flood_of_10_000_000_keys_known_clients_are_not_refused() {
    let (early, end) = flood("100k", 10_000_000);
    let _ = writeln!(std::io::stdout(), "RSS at 1,000,000 keys: {early} bytes; at 10,000,000: {end} bytes");
    assert!(end < early + early / 20, "from {early} to {end} bytes");
}
