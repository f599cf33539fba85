//! What an answer charges, and what is held until then: `charge` and `reserve`.

use std::convert::Infallible;
use std::task::Poll;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt as _, Full};
use tope::store::memory::Memory;
use tope::tower::{Layer, Peeked};
use tower::{ServiceExt as _, service_fn};

use crate::desk::{Answer, Desk, Frames, done, layer, poll};

const TOKENS: &str =
    "limits: { tokens: { match: POST /login, by: ip, rate: 100/d, reserve: 58, charge: json usage.total_tokens } }";

fn json(body: impl Into<Bytes>) -> Answer {
    Response::builder().header("content-type", "application/json").body(Full::new(body.into())).unwrap()
}

/// The answer of a request that is asked alone, its body read to the end or dropped before it.
fn alone(layer: &Layer<Memory>, desk: &Desk, answer: Answer, read: bool) -> Response<tope::tower::Body<Full<Bytes>>> {
    let mut asking = desk.ask(layer);
    assert!(poll(&mut asking).is_pending());
    desk.answer(Ok(answer));
    let Poll::Ready(Ok(mut answer)) = poll(&mut asking) else { panic!("it was answered") };
    if read {
        while let Poll::Ready(Some(_)) = poll(&mut Box::pin(answer.body_mut().frame())) {}
    }
    answer
}

/// What is left of a budget, as the next answer tells it: one that is priced at nothing.
fn left(layer: &Layer<Memory>, desk: &Desk) -> String {
    let mut asking = desk.ask(layer);
    let answer = match poll(&mut asking) {
        Poll::Ready(answer) => answer.unwrap(),
        Poll::Pending => {
            desk.answer(Err(()));
            assert!(poll(&mut asking).is_ready());
            return "some".to_owned();
        }
    };
    answer.headers()["ratelimit-remaining"].to_str().unwrap().to_owned()
}

#[test]
fn a_price_is_charged_when_it_is_known() {
    let (layer, desk) = (layer(TOKENS), Desk::default());
    // Of five at once one is admitted: what the others would hold is not there.
    let mut all: Vec<_> = (0..5).map(|_| desk.ask(&layer)).collect();
    assert_eq!(done(&mut all), [429; 4]);
    desk.answer(Ok(json(r#"{"usage":{"total_tokens":175}}"#)));
    let Poll::Ready(Ok(answer)) = poll(&mut all[0]) else { panic!("it was answered") };
    assert_eq!(answer.headers()["ratelimit-remaining"], "42", "the price is not known yet");
    assert!(poll(&mut Box::pin(answer.into_body().collect())).is_ready());
    // It owes 75 now.
    let Poll::Ready(Ok(refused)) = poll(&mut desk.ask(&layer)) else { panic!("nobody waits for a debt") };
    assert_eq!((refused.status().as_u16(), &refused.headers()["ratelimit-remaining"]), (429, &"0".parse().unwrap()));
    // 175 are used, and 42 may be when 58 are to be held: the others leak in 864 s each.
    assert_eq!(refused.headers()["retry-after"], (133 * 864).to_string());
}

#[test]
fn what_is_held_is_charged_to_liars() {
    let layer_of = || layer(&TOKENS.replace("58", "50"));
    let liars = [
        json(r#"{"usage":{"total_tokens":-5}}"#),
        json(r#"{"usage":{"total_tokens":1e99}}"#),
        json(r#"{"usage":{"total_tokens":"1"}}"#),
        json(r#"{"usage":{}}"#),
        json("no json"),
        Response::new(Full::from(r#"{"usage":{"total_tokens":1}}"#)),
        {
            let mut answer = json(r#"{"usage":{"total_tokens":1}}"#);
            answer.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
            answer
        },
    ];
    for liar in liars {
        let (layer, desk, said) = (layer_of(), Desk::default(), format!("{:?}", liar.body()));
        alone(&layer, &desk, liar.clone(), true);
        assert_eq!(left(&layer, &desk), "some", "{said}");
        alone(&layer, &desk, liar, true);
        assert_eq!(left(&layer, &desk), "0", "{said}");
    }
}

#[test]
fn a_price_of_nothing_gives_all_back_and_so_does_no_answer() {
    let (layer, desk) = (layer(&TOKENS.replace("58", "100")), Desk::default());
    for _ in 0..5 {
        alone(&layer, &desk, json(r#"{"usage":{"total_tokens":0}}"#), true);
        let mut failed = desk.ask(&layer);
        assert!(poll(&mut failed).is_pending());
        desk.answer(Err(()));
        assert!(poll(&mut failed).is_ready());
    }
    // Who leaves before the answer may have cost it all.
    let mut left = desk.ask(&layer);
    assert!(poll(&mut left).is_pending());
    drop(left);
    desk.open.lock().unwrap().clear();
    let Poll::Ready(Ok(refused)) = poll(&mut desk.ask(&layer)) else { panic!("all of it is held") };
    assert_eq!(refused.status(), 429);
}

/// Events, cut where you like: what was seen is what is charged.
#[tokio::test]
async fn a_stream_that_is_cut_is_charged_what_was_seen() {
    let policy = TOKENS.replace("100/d", "10k/d").replace("58", "9000");
    for (seen, expected) in [(1, 9000), (2, 20), (6, 20), (7, 55), (8, 55)] {
        let layer = layer(&policy);
        let parts = [
            "data: {\"usage\":null}\n\n",
            "data: {\"usage\":{\"total_tokens\":20}}\r\n\r\n",
            ": a comment\nevent: x\n",
            "da",
            "ta: {\"usage\":{\"total_",
            "tokens\":55",
            "}}\n\n",
            "data: [DONE]\n\n",
        ];
        let service = service_fn(move |_: Request<()>| async move {
            let body = Frames(parts.iter().map(|part| Frame::data(Bytes::from_static(part.as_bytes()))).collect());
            Ok::<_, Infallible>(
                Response::builder().header("content-type", "text/event-stream; charset=utf-8").body(body).unwrap(),
            )
        });
        let service = layer.for_peer([203, 0, 113, 7].into(), service);
        let ask = async || service.clone().oneshot(Request::post("/login").body(()).unwrap()).await.unwrap();
        let mut answer = ask().await;
        for part in &parts[..seen] {
            assert_eq!(answer.body_mut().frame().await.unwrap().unwrap().into_data().unwrap(), part.as_bytes());
        }
        drop(answer);
        let next = ask().await;
        let left: u64 = next.headers()["ratelimit-remaining"].to_str().unwrap().parse().unwrap();
        if expected == 9000 {
            assert_eq!((next.status().as_u16(), left), (429, 1000), "after {seen} parts");
        } else {
            assert_eq!(left, 10_000 - 9000 - expected, "after {seen} parts");
        }
    }
}

#[tokio::test]
async fn a_price_in_the_head_is_ours_alone() {
    let policy = "limits: { api: { match: POST /login, by: ip, rate: 100/d, charge: header X-Cost }, other: { match: POST /login, by: ip, rate: 50/d, charge: 'header X-Other, kept' } }";
    let layer = layer(policy);
    let service = service_fn(|_: Request<()>| async {
        Ok::<_, Infallible>(
            Response::builder().header("x-cost", "7").header("x-other", "5").body(Full::<Bytes>::default()).unwrap(),
        )
    });
    let service = layer.for_peer([203, 0, 113, 7].into(), service);
    let answer = service.oneshot(Request::post("/login").body(()).unwrap()).await.unwrap();
    assert_eq!(answer.headers()["ratelimit"], "\"other\";r=45;t=77760, \"api\";r=93;t=80352");
    assert!(!answer.headers().contains_key("x-cost"));
    assert_eq!(answer.headers()["x-other"], "5");
}

/// What fails costs nothing, what succeeds costs its price.
#[test]
fn only_answers_that_count_have_a_price() {
    let policy = TOKENS.replace("58", "100, count: status 2xx");
    let (layer, desk) = (layer(&policy), Desk::default());
    for _ in 0..3 {
        let mut failed = json(r#"{"usage":{"total_tokens":99}}"#);
        *failed.status_mut() = http::StatusCode::BAD_REQUEST;
        alone(&layer, &desk, failed, true);
    }
    let answer = alone(&layer, &desk, json(r#"{"usage":{"total_tokens":99}}"#), true);
    assert_eq!(answer.headers()["ratelimit-remaining"], "0");
    let Poll::Ready(Ok(refused)) = poll(&mut desk.ask(&layer)) else { panic!("a hundred are not there") };
    assert_eq!((refused.status().as_u16(), &refused.headers()["ratelimit-remaining"]), (429, &"1".parse().unwrap()));
}

/// Nobody waits for a price, also where only some answers have one.
#[test]
fn who_finds_what_others_hold_is_refused_at_once() {
    let policy = TOKENS.replace("58", "58, count: status 2xx");
    let (layer, desk) = (layer(&policy), Desk::default());
    let mut all: Vec<_> = (0..3).map(|_| desk.ask(&layer)).collect();
    assert_eq!(done(&mut all), [429; 2]);
}

/// An answer that is read is asked for uncompressed, any other is not.
#[tokio::test]
async fn what_is_read_is_not_compressed() {
    let layer = layer(TOKENS);
    let ask = async |path: &str| {
        let service = service_fn(|request: Request<()>| async move {
            let asked = request.headers()["accept-encoding"].clone();
            Ok::<_, Infallible>(Response::builder().header("asked", asked).body(Full::<Bytes>::default()).unwrap())
        });
        let request = Request::post(path).header("accept-encoding", "gzip, br").body(()).unwrap();
        layer.for_peer([203, 0, 113, 7].into(), service).oneshot(request).await.unwrap().headers()["asked"].clone()
    };
    assert_eq!((ask("/login").await, ask("/other").await), ("identity".parse().unwrap(), "gzip, br".parse().unwrap()));
}

/// The beginning of the body says what is held; the service gets the body whole, as it came.
#[tokio::test]
async fn what_the_body_asks_for_is_held() {
    let policy = "limits: { tokens: { match: POST /chat, by: ip, rate: 1000/d, reserve: json max_tokens or 10, charge: header X-Cost } }";
    let ask = async |layer: &Layer<Memory>, kind: &str, parts: &[&'static str]| {
        let service = service_fn(|request: Request<Peeked<Frames>>| async move {
            let size = request.body().size_hint().lower();
            let body = request.into_body().collect().await.unwrap().to_bytes();
            Ok::<_, Infallible>(Response::builder().header("size", size).body(Full::new(body)).unwrap())
        });
        let body = Frames(parts.iter().map(|part| Frame::data(Bytes::from_static(part.as_bytes()))).collect());
        let request = Request::post("/chat").header("content-type", kind).body(Peeked::new(body)).unwrap();
        let answer = layer.for_peer_reading([203, 0, 113, 7].into(), service).oneshot(request).await.unwrap();
        let left = answer.headers()["ratelimit-remaining"].to_str().unwrap().to_owned();
        let (status, size) = (answer.status().as_u16(), answer.headers().get("size").cloned());
        if status == 200 {
            assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), parts.concat());
        }
        (status, left, size.map(|size| size.to_str().unwrap().parse::<usize>().unwrap()))
    };
    let cases: [(&str, &[&'static str], u16, &str); 8] = [
        ("application/json", &["{\"max_tok", "ens\":300,\"x\":", "1}"], 200, "700"),
        ("application/json", &["{\"max_tokens\":300,\"max_tokens\":500,\"max_tokens\":1}"], 200, "500"),
        ("application/json", &["{\"max_tokens\":0}"], 200, "999"),
        ("application/json", &["{\"max_tokens\":-5}"], 200, "990"),
        ("application/json", &["{}"], 200, "990"),
        ("application/json", &["{\"max_tokens\":1001}"], 403, "1000"),
        ("text/plain", &["{\"max_tokens\":300}"], 200, "990"),
        ("application/json", &[], 200, "990"),
    ];
    for (kind, parts, status, left) in cases {
        let layer = layer(policy);
        let (said, told, size) = ask(&layer, kind, parts).await;
        assert_eq!((said, told.as_str()), (status, left), "{kind}: {parts:?}");
        let read = kind == "application/json";
        assert_eq!(size, (said == 200).then(|| if read { parts.concat().len() } else { 0 }), "{parts:?}");
    }
    // What stands behind 64 KiB is not looked at.
    let long: &'static str = String::leak(format!("{{\"prompt\":\"{}\",\"max_tokens\":300}}", "x".repeat(70_000)));
    assert_eq!(ask(&layer(policy), "application/json", &[long]).await, (200, "990".to_owned(), Some(long.len())));
}
