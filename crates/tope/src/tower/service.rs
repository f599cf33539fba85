//! One request: read it once, judge it, answer it or pass it on.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, UPGRADE};
use http::{HeaderValue, Request, Response};

use super::after::After;
use super::answer;
use super::body::{Body, InFlight};
use super::future::Answering;
use super::layer::{Peer, Shared};
use super::pending::{Pending, Turn, turn};
use super::read_ahead::BodyHead;
use crate::facts::{Client, Facts};
use crate::http::body::is_json_body;
use crate::http::path::{BadPath, Path, host, normalise, target};
use crate::http::{client_addr, cors};
use crate::limiter::{Judgement, Judging, Place};
use crate::observe::{Details, Observe};
use crate::policy::{Charges, Policy};
use crate::store::{Answer, Store, StoreError};

/// A service behind a limiter.
#[derive(Debug)]
pub struct Limited<T, S, O = ()> {
    inner: T,
    shared: Arc<Shared<S, O>>,
    /// Known for all requests of one connection, and then its text is made once.
    peer: Option<(IpAddr, HeaderValue)>,
}

/// Who is calling, for the inner service's ears: what the limiter found out, as one request extension.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The client's name in the key file; `None`: nobody that we know.
    pub client: Option<HeaderValue>,
    /// The name of the plan, where the policy has plans.
    pub plan: Option<HeaderValue>,
    /// The address of the connection's other end, as text: [`Caller::peer_text`].
    pub peer: HeaderValue,
    /// Whether the peer's own `X-Forwarded-*` are believed.
    pub trusted_peer: bool,
    /// The path that was judged, when it is spelled otherwise than the request's: what was matched is what should be
    /// forwarded. The query is not part of it.
    pub forward_path: Option<Box<str>>,
}

impl Caller {
    /// An address as it is written in `X-Forwarded-For`; IPv4-mapped IPv6 is IPv4.
    pub fn peer_text(address: IpAddr) -> HeaderValue {
        HeaderValue::try_from(address.to_canonical().to_string()).unwrap_or(HeaderValue::from_static("unknown"))
    }
}

impl<T, S, O> Limited<T, S, O> {
    pub(super) fn new(inner: T, shared: Arc<Shared<S, O>>, peer: Option<IpAddr>) -> Self {
        Self { inner, shared, peer: peer.map(|peer| (peer, Caller::peer_text(peer))) }
    }
}

impl<T, S: Store, O: Observe> Limited<T, S, O> {
    /// Whether some limit that applies holds what the body of the request says.
    pub(super) fn asks_body<B>(&self, request: &Request<B>) -> bool {
        let policy = self.shared.limiter.policy();
        if !policy.asks_bodies() || !is_json_body(request.headers()) {
            return false;
        }
        let peer = peer_of(request, self.peer.as_ref());
        Read::of(request, &policy, peer).is_ok_and(|read| policy.asks_body(&read.facts(request)))
    }
}

impl<T: Clone, S, O> Clone for Limited<T, S, O> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), shared: Arc::clone(&self.shared), peer: self.peer.clone() }
    }
}

impl<T, S, O, B, C> tower_service::Service<Request<B>> for Limited<T, S, O>
where
    T: tower_service::Service<Request<B>, Response = Response<C>> + Clone,
    S: Store,
    O: Observe,
    C: http_body::Body<Data = Bytes>,
{
    type Response = Response<Body<C>>;
    type Error = T::Error;
    type Future = Answering<T, S, O, B>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), T::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let shared = Arc::clone(&self.shared);
        let moment = shared.clock.moment();
        let policy = shared.limiter.policy();
        let (peer, peer_text) = self.peer.clone().unwrap_or_else(|| {
            let peer = peer_of(&request, None);
            (peer, Caller::peer_text(peer))
        });

        let read = match Read::of(&request, &policy, peer) {
            Ok(read) => read,
            Err(why) => {
                let answer = answer::bad_request(why, &policy, request.method(), request.headers());
                let after = After::new(shared, moment, None, None);
                return Answering::refused(answer, after);
            }
        };
        let facts = read.facts(&request);
        let details = shared.observer.wants_details().then(|| Box::new(read.details(&request)));
        let (turn, charges, place) = match shared.arrive(&policy, &facts, moment.unix_us) {
            Arrival::Judged(Answer::Ready(Ok(judgement))) if judgement.allowed() => {
                let caller = read.caller(&policy, peer_text);
                let in_flight = pass_on(&mut request, caller, &policy);
                be_readable(&mut request, &policy, judgement.rows().iter().map(|(budget, _)| *budget));
                // The judgement's time ends here: the inner service's own is not counted into it.
                let after = After::new(shared, moment, Some(judgement), details).until(in_flight);
                return Answering::passed(self.inner.call(request), after);
            }
            Arrival::Judged(Answer::Ready(Ok(judgement))) => {
                let waits = judgement.awaits_others() || judgement.patience(moment.unix_us, moment.unix_us).is_some();
                if !waits {
                    let answer = answer::refusal(&judgement, request.method(), request.headers());
                    return Answering::refused(answer, After::new(shared, moment, Some(judgement), details));
                }
                let charges = Some(Box::new(policy.charges(&facts)));
                (Turn::Judged(Some(Box::new(Ok(judgement)))), charges, None)
            }
            Arrival::Judged(Answer::Ready(Err(_))) => {
                let answer = answer::store_down(&policy, request.method(), request.headers());
                return Answering::refused(answer, After::new(shared, moment, None, details));
            }
            Arrival::Judged(Answer::Pending(judging)) => {
                let waits = policy.awaits_answers() || policy.waits();
                let charges = waits.then(|| Box::new(policy.charges(&facts)));
                (Turn::Judging(judging), charges, None)
            }
            Arrival::InLine { charges, place, turn } => (turn, charges, place),
        };
        let caller = read.caller(&policy, peer_text);
        let in_flight = pass_on(&mut request, caller, &policy);
        be_readable(&mut request, &policy, charges.iter().flat_map(|charges| charges.budgets()));
        let after = After::new(shared, moment, None, details).until(in_flight);
        // The inner service that was found ready is the one to call; its clone waits in its place.
        let clone = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, clone);
        Answering::pending(Pending::new(turn, charges, place, request, inner, policy), after)
    }
}

/// What becomes of a request that has just arrived.
#[expect(clippy::large_enum_variant, reason = "the large one is the usual one, and is taken apart at once")]
enum Arrival<S: Store> {
    Judged(Answer<Result<Judgement, StoreError>, Judging<S::Charging>>),
    /// Others came before, and it has a place behind them, or none.
    InLine {
        charges: Option<Box<Charges>>,
        place: Option<Place>,
        turn: Turn<S>,
    },
}

impl<S: Store, O> Shared<S, O> {
    /// Judges a request, unless others wait for the same.
    fn arrive(&self, policy: &Arc<Policy>, facts: &Facts<'_>, now_us: u64) -> Arrival<S> {
        let Some(timer) = self.timer.as_ref().filter(|_| policy.waits()) else {
            return Arrival::Judged(self.limiter.judge(Arc::clone(policy), facts, now_us));
        };
        let charges = policy.charges(facts);
        let Some((row, wait_us)) = self.limiter.busy(policy, &charges) else {
            return Arrival::Judged(self.limiter.judge_charges(Arc::clone(policy), &charges, now_us));
        };
        let until_us = now_us.saturating_add(wait_us);
        match self.limiter.join(policy, &charges, (row, 0), now_us, until_us) {
            Ok(place) => {
                let turn = Turn::InLine { sleep: timer.sleep_us(wait_us), until_us };
                Arrival::InLine { charges: Some(Box::new(charges)), place: Some(place), turn }
            }
            Err(wait_us) => {
                let turn = turn(self.limiter.defer(Arc::clone(policy), &charges, (row, wait_us), now_us));
                Arrival::InLine { charges: None, place: None, turn }
            }
        }
    }
}

/// The other end of the connection.
fn peer_of<B>(request: &Request<B>, known: Option<&(IpAddr, HeaderValue)>) -> IpAddr {
    let said = || request.extensions().get::<Peer>().map_or(Ipv4Addr::UNSPECIFIED.into(), |peer| peer.0.to_canonical());
    known.map_or_else(said, |(peer, _)| *peer)
}

/// Tells the inner service who is calling, and takes off what only a trusted peer may say of that. Gives it, and us, what
/// to keep while a connection that it switches is in use, where some limit wants to know.
fn pass_on<B>(request: &mut Request<B>, caller: Caller, policy: &Policy) -> Option<InFlight> {
    if !caller.trusted_peer {
        for name in policy.stripped() {
            request.headers_mut().remove(name);
        }
    }
    request.extensions_mut().insert(caller);
    let in_flight = (policy.awaits_answers() && request.headers().contains_key(UPGRADE)).then(InFlight::default);
    if let Some(in_flight) = &in_flight {
        request.extensions_mut().insert(in_flight.clone());
    }
    in_flight
}

/// Asks for an answer that is not compressed, where a limit reads it.
fn be_readable<B>(request: &mut Request<B>, policy: &Policy, mut budgets: impl Iterator<Item = u16>) {
    if !policy.body_fields().is_empty() && budgets.any(|budget| policy.body_field(budget).is_some()) {
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
}

/// A request, read once.
struct Read<'a> {
    path: Path<'a>,
    query: Option<&'a str>,
    host: std::borrow::Cow<'a, str>,
    address: IpAddr,
    trusted_peer: bool,
    client: Client<'a>,
    preflight: bool,
    same_path: bool,
    /// The beginning of its body, where a limit may want it.
    body: Option<&'a [u8]>,
}

impl<'a> Read<'a> {
    fn of<B>(request: &'a Request<B>, policy: &'a Policy, peer: IpAddr) -> Result<Self, BadPath> {
        let headers = request.headers();
        let target = target(request.method(), request.uri())?;
        let path = normalise(target.path, policy.paths)?;
        let trusted_peer = client_addr::trusted(peer, &policy.address);
        let body = if policy.asks_bodies() { request.extensions().get::<BodyHead>() } else { None };
        Ok(Self {
            same_path: path.forward == target.path,
            path,
            query: target.query,
            host: host(request.uri(), headers)?,
            address: client_addr::client_address(peer, headers, &policy.address),
            trusted_peer,
            client: policy.identify(headers, target.query, trusted_peer),
            preflight: cors::is_preflight(request.method(), headers),
            body: body.map(|head| &head.0[..]),
        })
    }

    fn facts<'b, B>(&'b self, request: &'b Request<B>) -> Facts<'b> {
        Facts {
            method: request.method().as_str(),
            path: &self.path.matched,
            other_path: self.path.other.as_deref(),
            host: &self.host,
            query: self.query,
            headers: request.headers(),
            address: Some(self.address),
            client: self.client,
            preflight: self.preflight,
            body: self.body,
            cost: None,
        }
    }

    fn details<B>(&self, request: &Request<B>) -> Details {
        Details {
            method: request.method().clone(),
            path: self.path.forward.as_ref().into(),
            host: self.host.as_ref().into(),
            address: self.address,
            client: self.client.name.map(Into::into),
            plan: self.client.plan,
            preflight: self.preflight,
        }
    }

    fn caller(&self, policy: &Policy, peer: HeaderValue) -> Caller {
        let text = |text: &str| HeaderValue::from_str(text).ok();
        Caller {
            client: self.client.name.and_then(text),
            plan: policy.plans().get(usize::from(self.client.plan)).and_then(|plan| text(plan)),
            peer,
            trusted_peer: self.trusted_peer,
            forward_path: (!self.same_path).then(|| self.path.forward.as_ref().into()),
        }
    }
}
