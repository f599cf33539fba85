//! What is allowed and seldom meant.

use tope_core::{Algorithm, Period, Quota, Rate};

use super::Policy;
use super::findings::Findings;
use super::guard::covers;
use super::key::{KeyForm, Part};
use super::limit::{Limit, Mode};

const SECOND_US: u128 = 1_000_000;
const DAY_US: u64 = 86_400_000_000;
const FEW: usize = 500;

/// Finds everything doubtful in a policy.
pub(super) fn find(policy: &Policy, findings: &mut Findings) {
    unreached(policy, findings);
    for limit in policy.limits.iter().filter(|limit| limit.mode != Mode::Disabled) {
        shared(limit, findings);
        sizes(limit, findings);
        above(limit, policy, findings);
    }
    preflights(policy, findings);
    forgetful(policy, findings);
    unused(policy, findings);
    untrusted(policy, findings);
}

fn unreached(policy: &Policy, findings: &mut Findings) {
    let Some(reached) = &policy.reach.reached else { return };
    for (at, limit) in policy.limits.iter().enumerate().filter(|(_, limit)| limit.mode != Mode::Disabled) {
        for (number, pattern) in limit.matching.patterns.iter().enumerate() {
            if !reached.contains(&(at, number)) {
                findings
                    .blame(pattern.place, format!("no request reaches `{}` of limit `{}`", pattern.text, limit.name))
                    .hint("its own `except`, or an exemption, takes all of it");
            }
        }
    }
}

/// One bucket for all callers, where nobody said so.
fn shared(limit: &Limit, findings: &mut Findings) {
    let parts = &limit.key.parts;
    let by_all = parts.contains(&Part::All) && !limit.keyed && !limit.matching.is_everything();
    let by_little = parts.iter().all(|part| matches!(part, Part::Plan | Part::Route));
    if by_all || by_little {
        findings
            .blame(
                limit.place,
                format!("every caller shares the budget of `{}`: one can use it up for all", limit.name),
            )
            .hint("add `by: ip` or `by: client`, or `by: all` if that is meant");
    }
}

fn quotas(limit: &Limit) -> impl Iterator<Item = Quota> {
    let rates = limit.sizes.iter().flat_map(|size| &size.rates);
    let mut quotas: Vec<Quota> =
        rates.filter_map(|(_, rate)| if let Rate::Quota(quota) = rate { Some(*quota) } else { None }).collect();
    quotas.dedup();
    quotas.into_iter()
}

fn sizes(limit: &Limit, findings: &mut Findings) {
    let largest = limit.costs.largest();
    if largest == 0 && quotas(limit).any(|quota| quota.capacity() > 0) {
        findings
            .blame(limit.place, format!("`{}` never refuses: every request costs it 0", limit.name))
            .hint("a cost of 1 or more counts; `mode: disabled` if that is meant");
    }
    let rates = limit.sizes.iter().flat_map(|size| &size.rates);
    let fewest = rates.filter_map(|(_, rate)| if let Rate::AtOnce(places) = rate { Some(*places) } else { None }).min();
    if let Some(places) = fewest.filter(|places| *places < largest) {
        findings
            .blame(
                limit.place,
                format!("a request of cost {largest} never passes `{}`, which has {places}", limit.name),
            )
            .hint("raise the rate, or lower the cost");
    }
    for quota in quotas(limit).filter(|quota| quota.capacity() > 0) {
        let second = u128::from(quota.amount()) * SECOND_US;
        if quota.algorithm() == Algorithm::TokenBucket
            && u128::from(quota.capacity()) * u128::from(quota.period_us()) < second
        {
            findings
                .blame(
                    limit.place,
                    format!(
                        "a burst of {} in `{}` is below what it allows in one second",
                        quota.capacity(),
                        limit.name
                    ),
                )
                .hint("requests that come evenly are refused when two of them come close; raise the burst");
        }
        if quota.capacity() < u64::from(largest) {
            findings
                .blame(
                    limit.place,
                    format!(
                        "a request of cost {largest} never passes `{}`, which holds {}",
                        limit.name,
                        quota.capacity()
                    ),
                )
                .hint("raise the burst, or lower the cost");
        }
        if quota.algorithm() == Algorithm::SlidingLog && quota.capacity() > 1_000 {
            let bytes = quota.capacity().saturating_mul(16);
            findings
                .blame(
                    limit.place,
                    format!("a sliding log remembers each request: about {bytes} bytes a key in `{}`", limit.name),
                )
                .hint("`sliding-window` needs a few bytes a key");
        }
    }
}

/// A limit that another, which contains it, always refuses before.
fn above(limit: &Limit, policy: &Policy, findings: &mut Findings) {
    // Each limit with each other is too much of a large file: there only ceilings of everything are looked at.
    let few = policy.limits.len() <= FEW;
    let contains = |other: &&Limit| {
        if !few && !other.matching.patterns.is_empty() {
            return false;
        }
        // A ceiling that each plan has for itself contains no more than its own plan's.
        let same = other.key.parts == limit.key.parts && other.key.missing == limit.key.missing;
        let keyed = other.key == KeyForm::all() || (same && (!other.key.by_plan || limit.key.by_plan));
        let distinct = !std::ptr::eq(*other, limit) && other.mode == Mode::Enforce;
        distinct && keyed && covers(&other.matching, &limit.matching)
    };
    for ceiling in policy.limits.iter().filter(contains) {
        let plans = u16::try_from(limit.sizes.len().max(ceiling.sizes.len())).unwrap_or(u16::MAX);
        let higher = |plan: u16| {
            let of = |limit: &Limit| -> Vec<Quota> {
                let rates = limit.size(plan).rates.iter();
                rates.filter_map(|(_, rate)| if let Rate::Quota(quota) = rate { Some(*quota) } else { None }).collect()
            };
            of(limit).iter().any(|own| own.capacity() > 0 && of(ceiling).iter().any(|other| is_above(own, other)))
        };
        if (0..plans).any(higher) {
            findings
                .blame(
                    limit.place,
                    format!("`{}` is above `{}`, which contains it and refuses first", limit.name, ceiling.name),
                )
                .hint("lower it, or raise the other");
            return;
        }
    }
}

/// Whether `own` allows more than `other` both at once and in the long run.
fn is_above(own: &Quota, other: &Quota) -> bool {
    let rate = |a: &Quota, b: &Quota| u128::from(a.amount()) * u128::from(b.period_us());
    own.capacity() > other.capacity() && rate(own, other) > rate(other, own)
}

/// Preflights are charged to limits by `ip` and `all` alone, and anybody can send what looks like one.
fn preflights(policy: &Policy, findings: &mut Findings) {
    let takes = |limit: &&Limit| {
        let patterns = &limit.matching.patterns;
        let all = patterns.is_empty() || patterns.iter().any(|pattern| pattern.takes("OPTIONS"));
        limit.mode == Mode::Enforce && all && quotas(limit).next().is_some()
    };
    let (counts, others): (Vec<_>, Vec<_>) =
        policy.limits.iter().filter(takes).partition(|limit| limit.key.counts_preflights());
    if let (true, Some(limit)) = (counts.is_empty(), others.first()) {
        findings
            .blame(limit.place, "preflights (OPTIONS with `Origin`) are counted by no limit")
            .hint("add one by ip or all, as in `preflights: { match: OPTIONS /**, by: ip, rate: 100/s }`");
    }
}

fn forgetful(policy: &Policy, findings: &mut Findings) {
    if policy.file.memory.as_ref().is_some_and(|memory| memory.file.is_some()) {
        return;
    }
    let long = |quota: &Quota| quota.period_us() >= DAY_US || matches!(quota.period(), Period::Calendar(_));
    let limit =
        policy.limits.iter().find(|limit| limit.mode != Mode::Disabled && quotas(limit).any(|quota| long(&quota)));
    if let Some(limit) = limit {
        findings
            .blame(
                limit.place,
                format!("`{}` counts for a day or longer, and a restart forgets what was used", limit.name),
            )
            .hint("add `memory: { file: state.tope }`");
    }
}

fn unused(policy: &Policy, findings: &mut Findings) {
    let mut told: Vec<&str> = Vec::new();
    let plans = policy.file.plans.iter().flat_map(|plans| &plans.0);
    for (column, _) in plans.flat_map(|(_, columns)| &columns.0) {
        if !policy.used_columns.contains(&column.value) && !told.contains(&column.as_str()) {
            told.push(column);
            findings
                .blame(column.place, format!("no limit uses column `{}` of the plans", column.value))
                .hint(format!("add a limit with `rate: plan.{}`, or take the column out", column.value));
        }
    }
}

fn untrusted(policy: &Policy, findings: &mut Findings) {
    let named = policy.file.clients.as_ref().and_then(|clients| clients.trusted_header.as_ref());
    if let Some(named) = named.filter(|_| policy.address.trust.is_empty()) {
        findings
            .blame(named.place, "nobody is trusted to send this header")
            .hint("name your proxies in `address: { trust: [10.0.0.0/8] }`");
    }
}
