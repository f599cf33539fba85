//! Which answers count: `count`.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt as _, Full};
use tope::facts::{Client, Facts, Reply};
use tope::store::Answer as Answered;
use tope::store::memory::Memory;
use tope::tower::Unanswered;
use tope::{Limiter, policy};
use tower::{ServiceExt as _, service_fn};

use crate::desk::{Answer, Desk, Frames, done, layer, poll, status};

const LOGIN: &str = "limits: { login: { match: POST /login, by: ip, rate: 5/d, count: 'status 401, 403' } }";

#[test]
fn of_twenty_wrong_ones_at_once_five_reach_the_service() {
    let (layer, desk) = (layer(LOGIN), Desk::default());
    let mut all: Vec<_> = (0..20).map(|_| desk.ask(&layer)).collect();
    assert!(done(&mut all).is_empty());
    assert_eq!(desk.reached(), 5);
    for left in (1..=5).rev() {
        assert_eq!(all.len(), if left == 5 { 20 } else { 15 + left });
        desk.answer(Ok(status(401)));
        let statuses = done(&mut all);
        assert_eq!(statuses[0], 401);
        // When the last is decided nothing is left to wait for.
        assert_eq!(statuses[1..], *if left == 1 { vec![429; 15] } else { vec![] });
    }
    assert_eq!(desk.reached(), 5);
}

#[test]
fn thirty_right_ones_at_once_pass_and_use_nothing() {
    let (layer, desk) = (layer(LOGIN), Desk::default());
    let mut all: Vec<_> = (0..30).map(|_| desk.ask(&layer)).collect();
    for answered in 0..30 {
        let _ = done(&mut all);
        assert_eq!(desk.reached(), (answered + 5).min(30));
        desk.answer(Ok(status(200)));
    }
    assert_eq!(done(&mut all).len(), 1);
    let mut last = desk.ask(&layer);
    assert!(poll(&mut last).is_pending());
    desk.answer(Ok(status(200)));
    let Poll::Ready(Ok(answer)) = poll(&mut last) else { panic!("it was answered") };
    assert_eq!(answer.headers()["ratelimit-remaining"], "5");
}

#[test]
fn first_come_first_served() {
    let (layer, desk) = (layer(&LOGIN.replace("5/d", "1/d")), Desk::default());
    let mut first = desk.ask(&layer);
    assert!(poll(&mut first).is_pending());
    let mut waiting: Vec<_> = (0..4).map(|_| desk.ask(&layer)).collect();
    assert!(waiting.iter_mut().all(|asking| poll(asking).is_pending()));
    // Whoever leaves the queue lets the others move up.
    drop(waiting.remove(1));
    desk.answer(Ok(status(200)));
    assert!(poll(&mut first).is_ready());
    for turn in 0..3 {
        for later in (turn..3).rev() {
            assert!(poll(&mut waiting[later]).is_pending());
        }
        assert_eq!(desk.reached(), turn + 2);
        desk.answer(Ok(status(200)));
        assert!(poll(&mut waiting[turn]).is_ready(), "turn {turn}");
    }
}

#[test]
fn who_is_called_and_leaves_lets_the_next_one_in() {
    let (layer, desk) = (layer(&LOGIN.replace("5/d", "2/d")), Desk::default());
    let mut held: Vec<_> = (0..2).map(|_| desk.ask(&layer)).collect();
    assert!(done(&mut held).is_empty());
    let mut waiting: Vec<_> = (0..2).map(|_| desk.ask(&layer)).collect();
    assert!(done(&mut waiting).is_empty());
    desk.answer(Ok(status(200)));
    assert_eq!(done(&mut held), [200]);
    drop(waiting.remove(0));
    assert!(done(&mut waiting).is_empty());
    assert_eq!(desk.reached(), 3);
}

#[test]
fn what_has_no_answer_does_not_count() {
    let (layer, desk) = (layer(&LOGIN.replace("status 401, 403", "not status 2xx")), Desk::default());
    let no_answers: [fn() -> Result<Answer, ()>; 2] = [
        || Err(()),
        || {
            let mut answer = status(502);
            answer.extensions_mut().insert(Unanswered);
            Ok(answer)
        },
    ];
    for no_answer in no_answers.into_iter().cycle().take(12) {
        let mut asking = desk.ask(&layer);
        assert!(poll(&mut asking).is_pending());
        desk.answer(no_answer());
        let _ = poll(&mut asking);
    }
    for _ in 0..12 {
        let mut left = desk.ask(&layer);
        assert!(poll(&mut left).is_pending());
        drop(left);
        desk.open.lock().unwrap().clear();
    }
    for left in [4, 3, 2, 1, 0] {
        let mut asking = desk.ask(&layer);
        assert!(poll(&mut asking).is_pending());
        desk.answer(Ok(status(500)));
        let Poll::Ready(Ok(answer)) = poll(&mut asking) else { panic!("it was answered") };
        assert_eq!(answer.headers()["ratelimit-remaining"], left.to_string());
    }
    let Poll::Ready(Ok(refused)) = poll(&mut desk.ask(&layer)) else { panic!("nothing is held any more") };
    assert_eq!(refused.status(), 429);
}

/// The units come back between a refusal and the question whether to wait: then the request is judged once more.
#[test]
fn a_refusal_that_has_just_become_wrong_is_judged_again() {
    let policy = policy::read(&LOGIN.replace("5/d", "1/d"), "here", &()).unwrap();
    let limiter = Limiter::new(Memory::new(1_000).unwrap(), policy).unwrap();
    let (policy, headers) = (limiter.policy(), HeaderMap::new());
    let facts = Facts {
        method: "POST",
        path: "/login",
        other_path: None,
        host: "",
        query: None,
        headers: &headers,
        address: Some([203, 0, 113, 7].into()),
        client: Client { name: None, plan: 0 },
        preflight: false,
        body: None,
        cost: None,
    };
    let judge = || match limiter.judge(Arc::clone(&policy), &facts, 1_790_000_000_000_000) {
        Answered::Ready(judgement) => judgement.unwrap(),
        Answered::Pending(_) => unreachable!("memory answers at once"),
    };
    let (mut admitted, refused) = (judge(), judge());
    assert!(admitted.allowed() && !refused.allowed());
    let reply = Reply::Head { status: http::StatusCode::OK, headers: &headers };
    limiter.hear(&mut admitted, reply, 1_790_000_000_000_000);
    let charges = policy.charges(&facts);
    let mut ticket = Box::pin(limiter.queue(&refused, &charges, None).unwrap());
    assert!(poll(&mut ticket).is_ready());
    assert!(limiter.queue(&refused, &charges, Some(&ticket)).is_none(), "once is enough");
    assert!(judge().allowed());
}

/// A limit that does not wait for the answer refuses at once, whoever else holds what.
#[test]
fn another_limit_does_not_wait() {
    let both = LOGIN.replace("{ login", "{ all: { rate: 5/d }, login");
    let (layer, desk) = (layer(&both), Desk::default());
    let mut all: Vec<_> = (0..20).map(|_| desk.ask(&layer)).collect();
    assert_eq!(done(&mut all), [429; 15]);
}

#[tokio::test]
async fn calls_are_counted_at_their_end() {
    let layer = layer("limits: { calls: { by: ip, rate: 2/d, count: not grpc 0 } }");
    let call = async |status: Option<&'static str>| {
        let service = service_fn(move |_: Request<()>| async move {
            let trailers = status.map(|status| {
                HeaderMap::from_iter([(
                    http::HeaderName::from_static("grpc-status"),
                    http::HeaderValue::from_static(status),
                )])
            });
            let frames = [Some(Frame::data(Bytes::from_static(b"x"))), trailers.map(Frame::trailers)];
            let body = Frames(frames.into_iter().flatten().collect());
            Ok::<_, Infallible>(Response::builder().header("content-type", "application/grpc").body(body).unwrap())
        });
        let request = Request::post("/a.B/C").header("content-type", "application/grpc").header("te", "trailers");
        let answer = layer.for_peer([203, 0, 113, 7].into(), service).oneshot(request.body(()).unwrap()).await.unwrap();
        let refused = answer.headers().contains_key("grpc-status");
        let cut = status.is_none();
        if cut {
            // The client leaves in the middle.
            drop(answer);
        } else {
            let _ = answer.into_body().collect().await.unwrap();
        }
        refused
    };
    for _ in 0..4 {
        assert!(!call(Some("0")).await);
        assert!(!call(None).await);
    }
    assert!(!call(Some("16")).await);
    assert!(!call(Some("0")).await);
    assert!(!call(Some("5")).await);
    assert!(call(Some("0")).await);
}

/// The body of an answer that nobody waits for is the inner one's in every way.
#[tokio::test]
async fn bodies_pass_as_they_are() {
    let service =
        service_fn(|_: Request<()>| async { Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("hello"))) });
    let service = layer(LOGIN).for_peer([203, 0, 113, 7].into(), service);
    let answer = service.oneshot(Request::post("/login").body(()).unwrap()).await.unwrap();
    assert_eq!(answer.body().size_hint().exact(), Some(5));
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "hello");
}
