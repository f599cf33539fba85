//! The answer to a request, made of the decisions of all limits that applied.

use crate::{Decision, Outcome, Quota};

/// One limit that applied: its name, its quota, its decision.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The name that the client sees.
    pub name: &'a str,
    /// The quota that decided.
    pub quota: &'a Quota,
    /// What it decided. In a refused request: its own answer with nothing taken.
    pub decision: Decision,
    /// Whether the limit is enforced; a shadow limit is counted and never told to the client.
    pub enforced: bool,
    /// Its item of `RateLimit-Policy`, where somebody has prepared it with
    /// [`write_policy_item`](crate::wire::draft::write_policy_item); else empty, and made when it is needed.
    pub policy_item: &'a str,
}

/// The answer to one request. Copies freely: it borrows its entries.
#[derive(Clone, Copy, Debug)]
pub struct Verdict<'a> {
    entries: &'a [Entry<'a>],
}

impl<'a> Verdict<'a> {
    /// A verdict over all limits that applied, in the order of the policy.
    pub const fn new(entries: &'a [Entry<'a>]) -> Self {
        Self { entries }
    }

    /// Every limit that applied, in the order of the policy, shadow ones too.
    pub const fn entries(&self) -> &'a [Entry<'a>] {
        self.entries
    }

    /// The enforced limits, which are those a client may hear of.
    pub fn enforced(&self) -> impl Iterator<Item = &'a Entry<'a>> + Clone + use<'a> {
        self.entries.iter().filter(|entry| entry.enforced)
    }

    /// Whether the request passes: no enforced limit refuses.
    pub fn allowed(&self) -> bool {
        self.enforced().all(|entry| entry.decision.allowed())
    }

    /// The enforced limit that refuses with the longest wait, a never before all; `None` when the request passes.
    /// Of two equal waits the earlier in the policy.
    pub fn refused_by(&self) -> Option<&'a Entry<'a>> {
        let wait = |entry: &Entry<'_>| entry.decision.retry_us().unwrap_or(u64::MAX);
        first_max(self.enforced().filter(|entry| !entry.decision.allowed()), |a, b| wait(a) > wait(b))
    }

    /// The enforced limit with the least left in proportion to its capacity (of equals the one with the longer
    /// period): the one a client should look at while it is admitted.
    pub fn tightest(&self) -> Option<&'a Entry<'a>> {
        let tighter = |a: &Entry<'_>, b: &Entry<'_>| {
            let left = |entry: &Entry<'_>, other: &Entry<'_>| {
                u128::from(entry.decision.remaining) * u128::from(other.quota.capacity())
            };
            let (a_left, b_left) = (left(a, b), left(b, a));
            a_left < b_left || a_left == b_left && a.quota.period_us() > b.quota.period_us()
        };
        first_max(self.enforced(), tighter)
    }

    /// The limit that single-valued fields speak of: the refusing one, else the tightest.
    pub fn leading(&self) -> Option<&'a Entry<'a>> {
        self.refused_by().or_else(|| self.tightest())
    }

    /// Whole seconds to wait, rounded up, at least 1; `None` when the request passes or never can.
    pub fn retry_after_s(&self) -> Option<u64> {
        match self.refused_by()?.decision.outcome() {
            Outcome::Deny { retry_us } => Some(crate::wire::seconds(retry_us)),
            Outcome::Allow | Outcome::Never => None,
        }
    }

    /// Whether the request can never pass, however long the client waits.
    pub fn never(&self) -> bool {
        self.refused_by().is_some_and(|entry| entry.decision.outcome() == Outcome::Never)
    }
}

/// The first of the items that no other beats.
fn first_max<T: Copy>(items: impl Iterator<Item = T>, beats: impl Fn(T, T) -> bool) -> Option<T> {
    items.reduce(|best, item| if beats(item, best) { item } else { best })
}
