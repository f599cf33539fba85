//! How long a request has its place: `N at once`.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use tope::tower::{InFlight, Unanswered};
use tower::{ServiceExt as _, service_fn};

use crate::desk::{Asking, Desk, done, layer, poll, status};

const UPLOADS: &str = "limits: { uploads: { match: POST /login, by: ip, rate: 2 at once } }";

#[test]
fn a_place_is_kept_to_the_end_of_the_body() {
    let (layer, desk) = (layer(UPLOADS), Desk::default());
    let mut all: Vec<_> = (0..5).map(|_| desk.ask(&layer)).collect();
    assert_eq!(done(&mut all), [429; 3]);
    desk.answer(Ok(status(200).map(|_: Full<Bytes>| Full::from("the body"))));
    let mut bodies: Vec<_> = all
        .iter_mut()
        .filter_map(|asking| match poll(asking) {
            Poll::Ready(answer) => Some(answer.unwrap()),
            Poll::Pending => None,
        })
        .collect();
    assert_eq!((bodies.len(), bodies[0].headers()["ratelimit-remaining"].to_str().unwrap()), (1, "1"));
    let refused = |asking: &mut Asking<()>| matches!(poll(asking), Poll::Ready(Ok(answer)) if answer.status() == 429);
    assert!(refused(&mut desk.ask(&layer)), "its body is not sent yet");
    drop(bodies.pop());
    let mut next = desk.ask(&layer);
    assert!(poll(&mut next).is_pending());
    assert!(refused(&mut desk.ask(&layer)));
}

#[test]
fn a_place_comes_back_however_a_request_ends() {
    let (layer, desk) = (layer(UPLOADS), Desk::default());
    let ends: [fn(&Desk, Asking<()>); 4] = [
        |desk, mut asking| {
            desk.answer(Err(()));
            assert!(poll(&mut asking).is_ready());
        },
        |desk, mut asking| {
            let mut answer = status(502);
            answer.extensions_mut().insert(Unanswered);
            desk.answer(Ok(answer));
            assert!(poll(&mut asking).is_ready());
        },
        |desk, asking| {
            drop(asking);
            desk.open.lock().unwrap().clear();
        },
        |desk, mut asking| {
            desk.answer(Ok(status(200)));
            let Poll::Ready(Ok(answer)) = poll(&mut asking) else { panic!("it was answered") };
            let body = poll(&mut Box::pin(answer.into_body().collect()));
            assert!(body.is_ready());
        },
    ];
    for end in ends.into_iter().cycle().take(20) {
        let mut first = desk.ask(&layer);
        assert!(poll(&mut first).is_pending());
        end(&desk, first);
    }
    assert_eq!(desk.reached(), 20);
}

/// A switched connection has no body, and is in flight as long as somebody keeps what it was given.
#[tokio::test]
async fn a_place_is_kept_while_a_switched_connection_is_in_use() {
    let layer = layer(&UPLOADS.replace("2 at once", "1 at once"));
    let kept = Arc::<Mutex<Option<InFlight>>>::default();
    let ask = async || {
        let kept = Arc::clone(&kept);
        let service = service_fn(move |request: Request<()>| {
            *kept.lock().unwrap() = request.extensions().get::<InFlight>().cloned();
            async { Ok::<_, Infallible>(status(101)) }
        });
        let request = Request::post("/login").header("upgrade", "websocket").body(()).unwrap();
        let answer = layer.for_peer([203, 0, 113, 7].into(), service).oneshot(request).await.unwrap();
        answer.status().as_u16()
    };
    assert_eq!((ask().await, ask().await), (101, 429));
    *kept.lock().unwrap() = None;
    assert_eq!((ask().await, ask().await), (101, 429));
}
