//! Limits that let requests wait in line before they refuse.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::client::{Caller, get, post};
use crate::support::{Gateway, LONG};
use crate::upstream::Upstream;

/// Requests with their times.
type Seen = Arc<Mutex<Vec<(Instant, String)>>>;

/// An API that remembers when it was asked for what.
fn remembering() -> (Upstream, Seen) {
    let seen = Seen::default();
    let shared = Arc::clone(&seen);
    let upstream = Upstream::answering(move |head| {
        let target = head.split(' ').nth(1).unwrap().to_owned();
        shared.lock().unwrap().push((Instant::now(), target));
        (200, String::new())
    });
    (upstream, seen)
}

const SEARCH: &str = "limits: { search: { match: /search/*, by: ip, rate: 10/s, wait: 500ms } }\n";

#[test]
fn twenty_at_once_are_ten_now_and_the_others_spaced() {
    let (upstream, seen) = remembering();
    let gateway = Gateway::start(&format!("{}{SEARCH}", upstream.line()));
    let mut callers: Vec<Caller> = (0..20).map(|_| gateway.caller()).collect();
    let begun = Instant::now();
    for (number, caller) in callers.iter_mut().enumerate() {
        caller.send(&get(&format!("/search/{number}")).bytes());
    }
    let sent = begun.elapsed();
    let answers: Vec<_> = callers.iter_mut().map(|caller| caller.answer(false)).collect();
    let admitted = answers.iter().filter(|answer| answer.status == 200).count();
    // Who has a place by the time that the last was sent: five in the half second, and what came back meanwhile.
    let spare = usize::try_from(sent.as_millis() / 100).unwrap();
    assert!((15..=16 + spare).contains(&admitted), "{admitted} of 20, sent within {sent:?}");
    for answer in &answers {
        match answer.status {
            200 => {}
            429 => assert_eq!(answer.number("Retry-After"), Some(1)),
            other => panic!("{other}"),
        }
    }
    let seen = seen.lock().unwrap().clone();
    // Nobody comes before its time: in no interval are there more than ten and a tenth of a second for each more.
    for (first, (from, _)) in seen.iter().enumerate() {
        for (last, (to, _)) in seen.iter().enumerate().skip(first + 10) {
            let least = Duration::from_millis(100) * u32::try_from(last - first - 9).unwrap();
            // The upstream's own threads may be late for the first of them.
            assert!(*to - *from + Duration::from_millis(40) >= least, "{first} to {last}: {:?}", *to - *from);
        }
    }
}

#[test]
fn a_line_is_served_in_the_order_of_arrival() {
    let (upstream, seen) = remembering();
    let policy = SEARCH.replace("10/s", "20/s burst 1").replace("500ms", "20s");
    let gateway = Gateway::start(&format!("{}{policy}", upstream.line()));
    let mut callers: Vec<Caller> = Vec::new();
    for number in 0..20 {
        let mut caller = gateway.caller();
        caller.send(&get(&format!("/search/{number}")).bytes());
        callers.push(caller);
        std::thread::sleep(Duration::from_millis(5));
    }
    for caller in &mut callers {
        let answer = caller.answer(false);
        // As it was when it was let in.
        assert_eq!((answer.status, answer.number("RateLimit-Remaining")), (200, Some(0)));
    }
    let order: Vec<String> = seen.lock().unwrap().iter().map(|(_, target)| target.clone()).collect();
    assert_eq!(order, (0..20).map(|number| format!("/search/{number}")).collect::<Vec<_>>());
}

#[test]
fn a_client_that_leaves_the_line_frees_its_place() {
    let (upstream, _) = remembering();
    let policy = SEARCH.replace("10/s", "6/min burst 1").replace("500ms", "30s");
    let gateway = Gateway::start(&format!("{}{policy}", upstream.line()));
    assert_eq!(gateway.ask(&get("/search/a")).status, 200);
    // Three wait for ten, twenty and thirty seconds.
    let mut waiting: Vec<Caller> = (0..3).map(|_| gateway.caller()).collect();
    for caller in &mut waiting {
        caller.send(&get("/search/b").bytes());
    }
    let begun = Instant::now();
    let refused = |gateway: &Gateway| {
        let mut caller = gateway.caller();
        caller.send(&get("/search/c").bytes());
        caller.stream().set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        !matches!(caller.stream().peek(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    };
    while !refused(&gateway) {
        assert!(begun.elapsed() < Duration::from_secs(9), "a fourth is refused at once");
    }
    waiting.pop();
    while refused(&gateway) {
        assert!(begun.elapsed() < Duration::from_secs(9), "there is a place again");
    }
}

/// Uploads wait for one to end.
#[test]
fn who_waits_for_a_place_has_it_when_one_is_free() {
    let (inside, most) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    let upstream = Upstream::answering(move |_| {
        seen.fetch_max(inside.fetch_add(1, SeqCst) + 1, SeqCst);
        std::thread::sleep(Duration::from_millis(50));
        inside.fetch_sub(1, SeqCst);
        (200, String::new())
    });
    let policy = "limits: { files: { match: POST /files, by: ip, rate: 2 at once, wait: 20s } }\n";
    let gateway = Gateway::start(&format!("{}{policy}", upstream.line()));
    let mut callers: Vec<Caller> = (0..20).map(|_| gateway.caller()).collect();
    let begun = Instant::now();
    for caller in &mut callers {
        caller.send(&post("/files").bytes());
    }
    assert!(callers.iter_mut().all(|caller| caller.answer(false).status == 200));
    assert_eq!((most.load(SeqCst), upstream.requests()), (2, 20));
    assert!(begun.elapsed() < LONG);
}
