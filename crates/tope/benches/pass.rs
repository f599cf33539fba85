//! The whole pass for known keys: facts out of a request, three matching limits, the judgement, the header text. And what
//! `count` adds to it, when the answer takes nothing and a unit is given back.
//!
//! `cargo bench -p tope --bench pass`

#![allow(missing_docs, clippy::pedantic, clippy::print_stdout, clippy::float_arithmetic, clippy::unwrap_used)]
#![expect(clippy::disallowed_methods, reason = "a measurement")]

mod side;

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};

use http::{HeaderMap, Request, StatusCode};
use side::{interleaved, line};
use tope::facts::Reply;
use tope::http::path::{host, normalise, target};
use tope::http::{client_addr, cors, fields};
use tope::store::Answer;
use tope::store::memory::Memory;
use tope::{Facts, Judgement, Limiter, policy};

const POLICY: &str = "
upstream: demo
clients: { header: X-Api-Key, keys: { secret-of-acme: { name: acme, plan: pro } } }
plans: { free: { api: 60/min }, pro: { api: 1000000/s } }
limits:
  address: { match: /api/**, by: ip, rate: 1000000/s }
  api: { match: /api/**, by: client, rate: plan.api }
  login: { match: POST /login, by: ip, rate: 5/min }
  ceiling: { rate: 1000000/s }
";

fn main() {
    let limiter_of =
        |text: &str| Limiter::new(Memory::new(1_000).unwrap(), policy::read(text, "bench", &()).unwrap()).unwrap();
    let plain = limiter_of(POLICY);
    let counting = limiter_of(&POLICY.replace("rate: plan.api }", "rate: plan.api, count: not status 2xx }"));
    let request = Request::get("/api/orders?page=2")
        .header("host", "api.example.org")
        .header("user-agent", "curl/8.5.0")
        .header("accept", "*/*")
        .header("x-api-key", "secret-of-acme")
        .body(())
        .unwrap();
    let peer = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 7));
    let mut now_us = 1_790_000_000_000_000;

    let judge = |limiter: &Limiter<Memory>, now_us: u64| -> Judgement {
        let policy = limiter.policy();
        let target = target(request.method(), request.uri()).unwrap();
        let path = normalise(target.path, policy.paths).unwrap();
        let headers = request.headers();
        let trusted = client_addr::trusted(peer, &policy.address);
        let host = host(request.uri(), headers).unwrap();
        let facts = Facts {
            method: request.method().as_str(),
            path: &path.matched,
            other_path: path.other.as_deref(),
            host: &host,
            query: target.query,
            headers,
            address: Some(client_addr::client_address(peer, headers, &policy.address)),
            client: policy.identify(headers, target.query, trusted),
            preflight: cors::is_preflight(request.method(), headers),
            body: None,
            cost: None,
        };
        match limiter.judge(policy.clone(), &facts, now_us) {
            Answer::Ready(judgement) => judgement.unwrap(),
            Answer::Pending(_) => unreachable!(),
        }
    };
    assert_eq!(judge(&plain, now_us).rows().len(), 3);
    assert!(judge(&counting, now_us).is_open());
    let upstreams = HeaderMap::new();
    let mut pass = |limiter: &Limiter<Memory>, steps: u64| {
        let mut answer = HeaderMap::with_capacity(16);
        for _ in 0..steps {
            now_us += 2;
            let mut judgement = judge(limiter, now_us);
            limiter.hear(&mut judgement, Reply::Head { status: StatusCode::OK, headers: &upstreams }, now_us);
            answer.clear();
            judgement
                .with_verdict(|verdict| fields::write(&mut answer, &verdict, &judgement.policy().dialects, now_us));
            black_box(&answer);
        }
        steps
    };
    let pass = std::cell::RefCell::new(&mut pass);
    let mut whole = |steps: u64| pass.borrow_mut()(&plain, steps);
    let mut counted = |steps: u64| pass.borrow_mut()(&counting, steps);
    // A microsecond of waiting, for comparison and as the yardstick.
    let mut microsecond = |steps: u64| {
        for _ in 0..steps {
            let start = std::time::Instant::now();
            while start.elapsed().as_nanos() < 1_000 {
                std::hint::spin_loop();
            }
        }
        steps
    };
    let [mut ours, mut counts, mut yardstick] = interleaved(
        std::env::var("ROUNDS").map_or(31, |rounds| rounds.parse().unwrap()),
        20_000,
        [&mut whole, &mut counted, &mut microsecond],
    );
    println!("{:<44} {:>9} {:>9} {:>8}", "nanoseconds a request", "tope", "1 us", "ratio");
    line("facts, three limits, judgement, header text", ours.median(), yardstick.median(), 1.0);
    println!(
        "{:<44} {:>9.1} {:>19}",
        "  a unit held and given back adds",
        counts.median() - ours.median(),
        "at most 150"
    );
}
