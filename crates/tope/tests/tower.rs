//! The layer around a plain service, also over a store that answers later.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::convert::Infallible;
use std::future::{Ready, pending, ready};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tope::charge::{Budget, Charge};
use tope::clock::Clock;
use tope::core::Decision;
use tope::observe::{Observe, Record};
use tope::store::memory::Memory;
use tope::store::{Answer, Charged, Store, StoreError, Taken};
use tope::tower::{Caller, Layer, Limited, Peer};
use tope::{Limiter, policy};
use tower::{ServiceExt, service_fn};
use tower_layer::Layer as _;

const POLICY: &str = "
clients: { header: X-Key, keys: { k: { name: acme, plan: pro } } }
plans: { free: { api: 2/min }, pro: { api: 3/min } }
limits:
  api: { match: /api/**, by: client, rate: plan.api }
";

/// The memory store, as one that has to be asked over a wire.
struct Later(Memory);

impl Store for Later {
    type Charging = Ready<Result<Charged, StoreError>>;
    type Settling = Ready<Result<Option<Decision>, StoreError>>;

    fn adopt(&self, budgets: &mut [Budget]) -> Result<(), StoreError> {
        self.0.adopt(budgets)
    }

    fn charge(
        &self,
        charges: &[Charge<'_>],
        now_us: u64,
        _: &mut Charged,
    ) -> Answer<Result<(), StoreError>, Self::Charging> {
        let mut charged = Charged::default();
        assert!(matches!(self.0.charge(charges, now_us, &mut charged), Answer::Ready(Ok(()))));
        Answer::Pending(ready(Ok(charged)))
    }

    fn settle(
        &self,
        charge: &Charge<'_>,
        taken: Taken,
        now_us: u64,
        delta: i64,
    ) -> Answer<Result<Option<Decision>, StoreError>, Self::Settling> {
        match self.0.settle(charge, taken, now_us, delta) {
            Answer::Ready(done) => Answer::Pending(ready(done)),
            pending @ Answer::Pending(_) => pending,
        }
    }
}

/// Statuses, as they are recorded.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<u16>>>);

impl Observe for Seen {
    fn observe(&self, record: &Record<'_>) {
        self.0.lock().unwrap().push(record.status);
    }
}

fn layer<S: Store>(store: S) -> (Layer<S, Seen>, Seen) {
    let limiter = Arc::new(Limiter::new(store, policy::read(POLICY, "here", &()).unwrap()).unwrap());
    let seen = Seen::default();
    (Layer::observed(limiter, Arc::new(Clock::new()), seen.clone()), seen)
}

/// Says who the inner service was told is calling.
async fn hello(request: Request<()>) -> Result<Response<Full<Bytes>>, Infallible> {
    let caller = request.extensions().get::<Caller>().unwrap();
    let text =
        |value: &Option<http::HeaderValue>| value.as_ref().map_or("-", |value| value.to_str().unwrap()).to_owned();
    let path = caller.forward_path.as_deref().unwrap_or(request.uri().path()).to_owned();
    let said = format!("{} {} {} {path}", text(&caller.client), text(&caller.plan), caller.peer.to_str().unwrap());
    Ok(Response::new(Full::from(said)))
}

async fn ask<S: Store>(layer: &Layer<S, Seen>, path: &str, key: Option<&str>) -> (u16, String) {
    let service = layer.for_peer([203, 0, 113, 7].into(), service_fn(hello));
    let request = key.into_iter().fold(Request::get(path), |request, key| request.header("x-key", key));
    let answer = service.oneshot(request.body(()).unwrap()).await.unwrap();
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

async fn as_a_layer_should<S: Store>(store: S) {
    let (layer, seen) = layer(store);
    assert_eq!(ask(&layer, "/api/x", Some("k")).await, (200, "acme pro 203.0.113.7 /api/x".to_owned()));
    assert_eq!(ask(&layer, "/api//y/../x", None).await, (200, "- free 203.0.113.7 /api/x".to_owned()));
    assert_eq!(ask(&layer, "/api/x", None).await.0, 200);
    let (status, body) = ask(&layer, "/api/x", None).await;
    assert!(status == 429 && body.contains("quota-exceeded"), "{body}");
    assert_eq!(ask(&layer, "/api%2Fx", None).await.0, 400);
    assert_eq!(ask(&layer, "/elsewhere", None).await.0, 200);
    assert_eq!(*seen.0.lock().unwrap(), [200, 200, 200, 429, 400, 200]);
}

#[tokio::test]
async fn over_a_store_that_answers_at_once() {
    as_a_layer_should(Memory::new(1_000).unwrap()).await;
}

#[tokio::test]
async fn over_a_store_that_answers_later() {
    as_a_layer_should(Later(Memory::new(1_000).unwrap())).await;
}

/// Who leaves before the answer was charged, and is told of as 499.
#[tokio::test]
async fn a_client_that_leaves_is_recorded() {
    let (layer, seen) = layer(Memory::new(1_000).unwrap());
    let never = service_fn(|_: Request<()>| pending::<Result<Response<Full<Bytes>>, Infallible>>());
    let service: Limited<_, _, _> = layer.for_peer([203, 0, 113, 7].into(), never);
    let mut asking = Box::pin(service.oneshot(Request::get("/api/x").body(()).unwrap()));
    assert!(std::future::poll_fn(|cx| std::task::Poll::Ready(asking.as_mut().poll(cx))).await.is_pending());
    drop(asking);
    assert_eq!(*seen.0.lock().unwrap(), [499]);
    assert_eq!(ask(&layer, "/api/x", None).await.0, 200);
    assert_eq!(ask(&layer, "/api/x", None).await.0, 429);
}

/// A header that names the client for a trusted proxy is not passed on from anybody else, who would be believed there.
#[tokio::test]
async fn a_trusted_header_is_taken_off_others() {
    let text =
        "address: { trust: [192.0.2.0/24] }\nclients: { trusted_header: X-User }\nlimits: { api: { rate: 9/min } }";
    let limiter = Arc::new(Limiter::new(Memory::new(10).unwrap(), policy::read(text, "here", &()).unwrap()).unwrap());
    let layer = Layer::observed(limiter, Arc::new(Clock::new()), ());
    let inner = service_fn(async |request: Request<()>| {
        let user = request.headers().get("x-user").cloned();
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(format!("{user:?}"))))
    });
    for (peer, seen) in [([192, 0, 2, 1], "Some(\"admin\")"), ([203, 0, 113, 7], "None")] {
        let request = Request::get("/").header("x-user", "admin").body(()).unwrap();
        let answer = layer.for_peer(peer.into(), inner).oneshot(request).await.unwrap();
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), seen);
    }
}

/// Where services are not made for one peer, each request says whose it is; those that don't share one budget.
#[tokio::test]
async fn peers_of_requests() {
    let (layer, _) = layer(Memory::new(1_000).unwrap());
    let service = layer.layer(service_fn(hello));
    let ask = async |peer: Option<Peer>| {
        let mut request = Request::get("/api/x").body(()).unwrap();
        if let Some(peer) = peer {
            request.extensions_mut().insert(peer);
        }
        service.clone().oneshot(request).await.unwrap().status().as_u16()
    };
    let peers = [None, Some(Peer([192, 0, 2, 1].into())), Some(Peer([192, 0, 2, 2].into()))];
    for peer in peers {
        assert_eq!([ask(peer).await, ask(peer).await, ask(peer).await], [200, 200, 429]);
    }
}
