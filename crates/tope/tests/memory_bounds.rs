//! What the memory store weighs, and what a request allocates.

mod suite;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use http::HeaderMap;
use suite::{NOW, adopt, charge, on, rate};
use tope::facts::Client;
use tope::store::memory::Memory;
use tope::store::{Answer, Charged, Store};
use tope::{Facts, Limiter, policy};

/// A known key is judged without an allocation, whatever its algorithm, admitted or refused, alone or with others.
#[test]
fn a_known_key_allocates_nothing() {
    let store = Memory::new(1_000).unwrap();
    let texts = ["9/min", "9/min fixed-window", "9/min sliding-window", "9/min sliding-log"];
    let budgets = adopt(&store, texts.map(|text| rate(text, text)));
    let mut charged = Charged::default();
    let together: Vec<_> = budgets.iter().map(|budget| on(budget, b"client", 1)).collect();
    for late in 0..9 {
        charge(&store, &together, NOW + late);
    }
    let counted = allocation_counter::measure(|| {
        for late in 0..50_000_000 / 100_000 {
            let now = NOW + late * 100_000;
            assert!(matches!(store.charge(&together, now, &mut charged), Answer::Ready(Ok(()))));
            for alone in &together {
                assert!(matches!(store.charge(std::slice::from_ref(alone), now, &mut charged), Answer::Ready(Ok(()))));
            }
        }
    });
    assert_eq!(counted.count_total, 0);
}

/// The whole pass for a known client under three limits: facts to judgement without an allocation.
#[test]
fn a_known_client_is_judged_without_an_allocation() {
    let text = "upstream: demo\nlimits:\n  login: { by: ip, rate: 5/min }\n  api: { by: client, rate: 60/min }\n  \
                ceiling: { rate: 5000/s }\n";
    let limiter = Limiter::new(Memory::new(1_000).unwrap(), policy::read(text, "here", &()).unwrap()).unwrap();
    let (headers, policy) = (HeaderMap::new(), limiter.policy());
    let facts = Facts {
        method: "GET",
        path: "/api/orders",
        other_path: None,
        host: "api.example.org",
        query: None,
        headers: &headers,
        address: Some(IpAddr::V4(Ipv4Addr::new(203, 0, 113, 7))),
        client: Client { name: Some("acme"), plan: 0 },
        preflight: false,
        body: None,
        cost: None,
    };
    let judge = |late: u64| match limiter.judge(Arc::clone(&policy), &facts, NOW + late) {
        Answer::Ready(judgement) => judgement.unwrap(),
        Answer::Pending(_) => unreachable!("memory answers at once"),
    };
    assert_eq!(judge(0).rows().len(), 3);
    let counted = allocation_counter::measure(|| {
        for late in 1..1_000 {
            std::hint::black_box(judge(late * 1_000).allowed());
        }
    });
    assert_eq!(counted.count_total, 0);
}

/// At most 48 bytes a live key at rated capacity, everything included; 32 are the aim.
#[test]
fn a_key_weighs_32_bytes() {
    for max_keys in [1_000, 100_000, 1_000_000] {
        let counted = allocation_counter::measure(|| {
            let store = Memory::new(max_keys).unwrap();
            let [limit] = adopt(&store, [rate("limit", "5/min")]);
            for n in 0..max_keys as u64 {
                charge(&store, &[on(&limit, &n.to_le_bytes(), 1)], NOW);
            }
        });
        // The overflow buckets of one budget are 6 KiB, and the rest of the store a few more.
        let per_key = counted.bytes_max.saturating_sub(10_000) / max_keys as u64;
        assert!(per_key <= 32, "{per_key} bytes a key at {max_keys}");
    }
}

/// However many keys come, nothing grows.
#[test]
fn a_flood_of_keys_allocates_nothing() {
    let store = Memory::new(10_000).unwrap();
    let [bucket, log] = adopt(&store, [rate("bucket", "5/min"), rate("log", "5/min sliding-log")]);
    let mut charged = Charged::default();
    let mut flood = |keys: std::ops::Range<u64>| {
        for n in keys {
            let key = n.to_le_bytes();
            let charges = [on(&bucket, &key, 1), on(&log, &key, 1)];
            assert!(matches!(store.charge(&charges, NOW + n, &mut charged), Answer::Ready(Ok(()))));
        }
    };
    flood(0..20_000);
    let counted = allocation_counter::measure(|| flood(20_000..220_000));
    assert_eq!(counted.bytes_max, 0, "{counted:?}");
}
