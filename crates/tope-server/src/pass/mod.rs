//! A request that was written down, through the one pass as a door would take it: who called, which path, judged at the
//! line's time. Replays, trials and explanations share it.
//!
//! | room | what is in it |
//! |---|---|
//! | `mod` | whoever judges, and a line as it is read |
//! | `line` | a request as it is written down |
//! | `flight` | requests whose answers have not ended yet, in the log's time |
//! | `target` | its path, query and host |

mod flight;
mod line;
mod target;

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderMap, Method, StatusCode, Uri};
use tope::core::Decision;
use tope::facts::{Client, Facts, Reply};
use tope::http::path::{Path, normalise};
use tope::http::{client_addr, cors};
use tope::observe::CLIENT_LEFT;
use tope::store::{Answer, Store, StoreError};
use tope::{Budget, Judgement, Limiter, Policy};

use self::flight::Flight;
pub use self::line::{Line, Ours};

/// What a replay asks of whoever judges.
pub trait Pass {
    /// Every rate of the policy; rows name them by their places.
    fn budgets(&self) -> &[Budget];

    /// Judges one line at `now_us`. What each rate that applied decided is left in `rows`, in the order of the file.
    ///
    /// # Errors
    /// When the store fails.
    fn judge<'a>(
        &'a mut self,
        line: &'a Line<'a>,
        headers: &'a HeaderMap,
        now_us: u64,
        rows: &mut Vec<(u16, Decision)>,
    ) -> Result<Outcome<'a>, StoreError>;
}

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// It was judged.
    Judged {
        /// Whether it passes.
        allowed: bool,
        /// The enforced rate that refused with the longest wait.
        refused_by: Option<u16>,
        /// Who called.
        caller: Caller<'a>,
    },
    /// Its path is none that may pass: 400, before any limit.
    BadPath,
}

/// Who called, in words that may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller<'a> {
    /// A client, by its name in the key file.
    Client(&'a str),
    /// Nobody that we know, by address.
    Address(IpAddr),
    /// The log does not say.
    Unknown,
}

/// The limiter, over a store that answers at once.
#[derive(Debug)]
pub struct Limited<S> {
    limiter: Limiter<S>,
    policy: Arc<Policy>,
    flight: Flight,
}

impl<S: Store> Limited<S> {
    /// Judges with `limiter`, always under the policy that is in force now.
    pub fn new(limiter: Limiter<S>) -> Self {
        let policy = limiter.policy();
        Self { limiter, policy, flight: Flight::default() }
    }
}

impl<S: Store> Pass for Limited<S> {
    fn budgets(&self) -> &[Budget] {
        &self.policy.budgets
    }

    fn judge<'a>(
        &'a mut self,
        line: &'a Line<'a>,
        headers: &'a HeaderMap,
        now_us: u64,
        rows: &mut Vec<(u16, Decision)>,
    ) -> Result<Outcome<'a>, StoreError> {
        let uri = line.uri();
        let reading = uri.as_ref().and_then(|uri| Reading::of(&self.policy, line, uri, headers));
        let Some(reading) = reading else { return Ok(Outcome::BadPath) };
        while let Some((ended_us, mut judgement)) = self.flight.ended(now_us) {
            self.limiter.hear(&mut judgement, Reply::End { trailers: None, prices: &[] }, ended_us);
        }
        let judgement = match self.limiter.judge(Arc::clone(&self.policy), &reading.facts(), now_us) {
            Answer::Ready(judgement) => judgement?,
            Answer::Pending(_) => unreachable!("a replay is given a store that answers at once"),
        };
        rows.clear();
        rows.extend_from_slice(judgement.rows());
        let caller = match (reading.client.name, reading.address) {
            (Some(name), _) => Caller::Client(name),
            (None, Some(address)) => Caller::Address(address),
            (None, None) => Caller::Unknown,
        };
        let (allowed, refused_by) = (judgement.allowed(), judgement.refused_by());
        if judgement.is_open() {
            hear(&self.limiter, &mut self.flight, judgement, line, now_us);
        }
        Ok(Outcome::Judged { allowed, refused_by, caller })
    }
}

/// The log knows the answer, so what limits hold until they know it is settled at once; where it has none, everything
/// counts, and the price is what was held. A place in flight is kept until the answer is there, as long as the log says,
/// and not at all where it doesn't.
fn hear<S: Store>(limiter: &Limiter<S>, flight: &mut Flight, mut judgement: Judgement, line: &Line<'_>, now_us: u64) {
    let reply = match line.status.map(StatusCode::from_u16) {
        None => Reply::Logged { status: None, charged: &line.charged },
        Some(Ok(status)) if status.as_u16() != CLIENT_LEFT => {
            Reply::Logged { status: Some(status), charged: &line.charged }
        }
        Some(_) => Reply::Left,
    };
    limiter.hear(&mut judgement, reply, now_us);
    if judgement.is_open() {
        flight.add(now_us.saturating_add(line.took_us.unwrap_or(0)), judgement);
    }
}

/// A line, read as a door reads a request: once.
#[derive(Debug)]
pub(crate) struct Reading<'a, 'u> {
    line: &'a Line<'a>,
    headers: &'a HeaderMap,
    query: Option<&'u str>,
    host: Cow<'u, str>,
    /// The path in its one form.
    pub(crate) path: Path<'u>,
    /// The caller's address.
    pub(crate) address: Option<IpAddr>,
    /// Who is calling.
    pub(crate) client: Client<'a>,
    preflight: bool,
}

impl<'a: 'u, 'u> Reading<'a, 'u> {
    /// Reads a line with its [`uri`](Line::uri); `None` when its path may not pass.
    pub(crate) fn of(policy: &'a Policy, line: &'a Line<'a>, uri: &'u Uri, headers: &'a HeaderMap) -> Option<Self> {
        let (target, host) = target::read(line, uri, headers).ok()?;
        let path = normalise(target.path, policy.paths).ok()?;
        // Our own log has the caller already; others have the peer.
        let (address, client, preflight) = if let Some(ours) = &line.ours {
            (line.address, policy.client_named(ours.client.as_deref(), ours.plan.as_deref()), ours.preflight)
        } else {
            let address = line.address.map(|peer| client_addr::client_address(peer, headers, &policy.address));
            let trusted = line.address.is_some_and(|peer| client_addr::trusted(peer, &policy.address));
            let client = policy.identify(headers, target.query, trusted);
            (address, client, is_preflight(&line.method, headers))
        };
        Some(Self { line, headers, query: target.query, host, path, address, client, preflight })
    }

    /// What limits may ask of it.
    pub(crate) fn facts(&self) -> Facts<'_> {
        Facts {
            method: &self.line.method,
            path: &self.path.matched,
            other_path: self.path.other.as_deref(),
            host: &self.host,
            query: self.query,
            headers: self.headers,
            address: self.address,
            client: self.client,
            preflight: self.preflight,
            body: None,
            cost: self.line.cost,
        }
    }
}

fn is_preflight(method: &str, headers: &HeaderMap) -> bool {
    method == "OPTIONS" && cors::is_preflight(&Method::OPTIONS, headers)
}
