//! One record per judgement: what metrics, the access log and a dashboard are made from. It is made after the answer,
//! never before it.

use std::net::IpAddr;
use std::sync::Arc;

use crate::facts::Price;
use crate::limiter::Judgement;
use crate::policy::Policy;

/// The status of a record whose client left before the answer: it was judged and charged, so it is told. nginx writes
/// the same into its logs.
pub const CLIENT_LEFT: u16 = 499;

/// What happened to one request.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Record<'a> {
    /// The judgement; `None` when the request was no request that could be judged.
    pub judgement: Option<&'a Judgement>,
    /// The status of the answer.
    pub status: u16,
    /// Nanoseconds from reading the request to its judgement.
    pub judged_ns: u64,
    /// Nanoseconds from reading the request to the head of the answer.
    pub answered_ns: u64,
    /// When the request was read, in Unix microseconds.
    pub now_us: u64,
    /// Who asked for what, where [`Observe::wants_details`] asks for it.
    pub details: Option<&'a Details>,
}

impl<'a> Record<'a> {
    /// What happened to one request.
    pub const fn new(now_us: u64, status: u16, judgement: Option<&'a Judgement>) -> Self {
        Self { judgement, status, judged_ns: 0, answered_ns: 0, now_us, details: None }
    }
}

/// Who asked for what. Holds no header field and no query, so no key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Details {
    /// The method.
    pub method: http::Method,
    /// The path as it is forwarded.
    pub path: Box<str>,
    /// The host.
    pub host: Box<str>,
    /// The caller's address.
    pub address: IpAddr,
    /// The client's name in the key file.
    pub client: Option<Box<str>>,
    /// The plan, by its place in the policy.
    pub plan: u16,
    /// A CORS preflight.
    pub preflight: bool,
}

/// Whoever wants to know.
pub trait Observe: Send + Sync + 'static {
    /// Takes note of one request. It runs between two requests, so it must be quick and must not wait.
    fn observe(&self, record: &Record<'_>);

    /// Takes note that an answer did not say the price that this budget's limit charges, or not in a number: what was held
    /// is charged.
    fn unpriced(&self, _policy: &Arc<Policy>, _budget: u16, _price: Price) {}

    /// Whether records come with [`Details`], which cost an allocation or two a request.
    fn wants_details(&self) -> bool {
        false
    }
}

/// Nobody wants to know.
impl Observe for () {
    fn observe(&self, _record: &Record<'_>) {}
}

impl<T: Observe> Observe for Arc<T> {
    fn observe(&self, record: &Record<'_>) {
        (**self).observe(record);
    }

    fn unpriced(&self, policy: &Arc<Policy>, budget: u16, price: Price) {
        (**self).unpriced(policy, budget, price);
    }

    fn wants_details(&self) -> bool {
        (**self).wants_details()
    }
}
