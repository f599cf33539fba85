//! Who waits in line until there is room: `wait`.

use std::sync::{Arc, Mutex};
use std::task::Poll;

use tokio::sync::oneshot;
use tope::clock::Clock;
use tope::store::memory::Memory;
use tope::tower::{Layer, Timer};
use tope::{Limiter, policy};

use crate::desk::{Asking, Desk, done, layer, poll, status};

fn with(policy: &str, timer: Timer) -> Layer<Memory> {
    let policy = policy::read(policy, "here", &()).unwrap();
    let limiter = Arc::new(Limiter::new(Memory::new(1_000).unwrap(), policy).unwrap());
    Layer::timed(limiter, Arc::new(Clock::new()), (), timer)
}

/// A timer whose time never passes: whoever waits is called or waits for ever.
fn waiting(policy: &str) -> Layer<Memory> {
    with(policy, Timer::new(|_| Box::pin(std::future::pending())))
}

/// What ends the times that were asked for, in their order.
type Times = Arc<Mutex<Vec<oneshot::Sender<()>>>>;

/// A timer whose times end when the test says so.
fn by_hand() -> (Timer, Times) {
    let times = Times::default();
    let asked = Arc::clone(&times);
    let timer = Timer::new(move |_| {
        let (end, ended) = oneshot::channel();
        asked.lock().unwrap().push(end);
        Box::pin(async {
            let _ = ended.await;
        })
    });
    (timer, times)
}

const IN_LINE: &str = "limits: { files: { match: POST /login, by: ip, rate: 1 at once, wait: 1min } }";

#[test]
fn a_line_moves_up_when_a_place_is_free() {
    let (layer, desk) = (waiting(IN_LINE), Desk::default());
    let mut first = desk.ask(&layer);
    assert!(poll(&mut first).is_pending());
    let mut line: Vec<_> = (0..4).map(|_| desk.ask(&layer)).collect();
    assert!(line.iter_mut().all(|asking| poll(asking).is_pending()));
    // Whoever leaves the line lets the others move up.
    drop(line.remove(1));
    let end = |asking: &mut Asking<()>| {
        desk.answer(Ok(status(200)));
        let Poll::Ready(Ok(answer)) = poll(asking) else { panic!("it was answered") };
        assert_eq!(answer.headers()["ratelimit-remaining"], "0", "as it was when it was let in");
        drop(answer);
    };
    end(&mut first);
    // Who comes now comes behind those who wait, although there is room.
    let mut late = desk.ask(&layer);
    assert!(poll(&mut late).is_pending());
    line.push(late);
    for turn in 0..4 {
        for later in (turn + 1..4).rev() {
            assert!(poll(&mut line[later]).is_pending());
        }
        assert!(poll(&mut line[turn]).is_pending());
        assert_eq!(desk.reached(), turn + 2, "one after the other");
        end(&mut line[turn]);
    }
    assert!(poll(&mut desk.ask(&layer)).is_pending());
    assert_eq!(desk.reached(), 6, "nobody is left in line");
}

/// Who is first and leaves as it is called lets the next one come forward.
#[test]
fn a_place_that_nobody_takes_is_the_next_ones() {
    let (layer, desk) = (waiting(IN_LINE), Desk::default());
    let mut first = desk.ask(&layer);
    assert!(poll(&mut first).is_pending());
    let mut line: Vec<_> = (0..2).map(|_| desk.ask(&layer)).collect();
    assert!(line.iter_mut().all(|asking| poll(asking).is_pending()));
    desk.answer(Ok(status(200)));
    assert!(poll(&mut first).is_ready());
    drop(first);
    drop(line.remove(0));
    assert!(poll(&mut line[0]).is_pending());
    assert_eq!(desk.reached(), 2);
}

#[test]
fn who_could_not_be_served_in_time_is_refused_at_once() {
    // A unit comes every ten seconds, and who waits does so for thirty at most.
    let (layer, desk) = (waiting("limits: { api: { by: ip, rate: 6/min, wait: 30s } }"), Desk::default());
    let mut all: Vec<_> = (0..12).map(|_| desk.ask(&layer)).collect();
    assert_eq!(done(&mut all), [429; 3]);
    assert_eq!((desk.reached(), all.len()), (6, 9));
    let Poll::Ready(Ok(refused)) = poll(&mut desk.ask(&layer)) else { panic!("there are three in line") };
    // Behind those three, ten seconds each.
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (429, &"40".parse().unwrap()));
    assert_eq!(refused.headers()["ratelimit-remaining"], "0");
    // Another caller has a line of its own.
    assert!(poll(&mut { desk.ask_from(&layer, [203, 0, 113, 8]) }).is_pending());
    assert_eq!(desk.reached(), 7);
    // One leaves, and there is room for one.
    drop(all.pop());
    assert!(poll(&mut desk.ask(&layer)).is_pending());
}

/// Whoever is called first is first, also when another's time is over in between.
#[test]
fn who_gives_up_takes_nobodys_turn() {
    let (timer, times) = by_hand();
    let (layer, desk) = (with(IN_LINE, timer), Desk::default());
    let mut first = desk.ask(&layer);
    assert!(poll(&mut first).is_pending());
    let mut line: Vec<_> = (0..2).map(|_| desk.ask(&layer)).collect();
    assert!(line.iter_mut().all(|asking| poll(asking).is_pending()));
    desk.answer(Ok(status(200)));
    assert!(poll(&mut first).is_ready());
    drop(first);
    times.lock().unwrap().pop().unwrap().send(()).unwrap();
    let Poll::Ready(Ok(refused)) = poll(&mut line[1]) else { panic!("its time is over") };
    assert_eq!(refused.status(), 429);
    assert!(poll(&mut line[0]).is_pending());
    assert_eq!(desk.reached(), 2);
}

/// Without a timer nobody waits.
#[test]
fn who_has_no_timer_is_refused_at_once() {
    let (layer, desk) = (layer(IN_LINE), Desk::default());
    let mut all: Vec<_> = (0..3).map(|_| desk.ask(&layer)).collect();
    assert_eq!(done(&mut all), [429; 2]);
}

/// Another limit that lets nobody wait refuses at once.
#[test]
fn who_is_refused_by_another_limit_does_not_wait() {
    let both = IN_LINE.replace("{ files", "{ all: { rate: 2/min }, files");
    let (layer, desk) = (waiting(&both), Desk::default());
    let mut all: Vec<_> = (0..2).map(|_| desk.ask(&layer)).collect();
    assert!(done(&mut all).is_empty());
    desk.answer(Ok(status(200)));
    assert_eq!(done(&mut all), [200]);
    assert_eq!(desk.reached(), 2);
    let mut third = desk.ask(&layer);
    let Poll::Ready(Ok(refused)) = poll(&mut third) else { panic!("the minute's are used up") };
    assert_eq!(refused.status(), 429);
}
