//! Parts of a key that the caller chooses divide a budget and don't make one: who sends a new word with each request
//! has a new bucket with each request. Such a limit needs another beside it that the caller can't step around. That
//! `client` stands in the key too changes nothing: whoever has no key is nobody's client, and has an address alone.

use tope_core::Rate;

use super::findings::Findings;
use super::key::Part;
use super::limit::{Limit, Mode};
use super::matching::{Matching, Pattern};

/// Blames every limit whose key the caller chooses and that no other limit holds.
pub(super) fn check(limits: &[Limit], findings: &mut Findings) {
    for limit in limits.iter().filter(|limit| limit.mode != Mode::Disabled && !limit.caller_chosen) {
        let chosen = limit.key.parts.iter().any(Part::is_chosen);
        if !chosen || limits.iter().any(|other| holds(other, limit)) {
            continue;
        }
        findings
            .blame(
                limit.by_place,
                format!("the key of `{}` is what its caller chooses: a new value is a new budget", limit.name),
            )
            .hint("add a limit by ip, client or all that matches at least as much, or write `caller_chosen: true`");
    }
}

/// Whether `guard` holds whoever steps around `limit`.
fn holds(guard: &Limit, limit: &Limit) -> bool {
    let fixed = !guard.key.parts.iter().any(Part::is_chosen);
    let mode = guard.mode == Mode::Enforce || guard.mode == limit.mode;
    let limited = |rate: &(u16, Rate)| rate.1 != Rate::Unlimited;
    let sized = guard.sizes.iter().all(|size| size.rates.iter().any(limited));
    fixed && mode && sized && covers(&guard.matching, &limit.matching)
}

/// Whether every request that `inner` applies to, `outer` applies to. May say no where a closer look would say yes.
pub(super) fn covers(outer: &Matching, inner: &Matching) -> bool {
    let hosts = outer.hosts.is_empty()
        || (!inner.hosts.is_empty() && inner.hosts.iter().all(|host| outer.hosts.iter().any(|own| own.covers(host))));
    let when = outer.when.iter().all(|when| inner.when.contains(when));
    hosts && when && patterns(outer, inner) && outer.except.iter().all(|hole| harmless(hole, inner))
}

fn patterns(outer: &Matching, inner: &Matching) -> bool {
    let covered = |pattern: &Pattern| {
        // GET and POST of one path may be held by two patterns.
        let one = |pattern: &Pattern| outer.patterns.iter().any(|own| own.covers(pattern));
        one(pattern) || (!pattern.methods.is_empty() && by_method(pattern).iter().all(one))
    };
    let all = |pattern: &Pattern| pattern.tail && pattern.segments.is_empty() && pattern.methods.is_empty();
    outer.patterns.is_empty()
        || outer.patterns.iter().any(all)
        || (!inner.patterns.is_empty() && inner.patterns.iter().all(covered))
}

fn by_method(pattern: &Pattern) -> Vec<Pattern> {
    pattern.methods.iter().map(|method| pattern.only(method)).collect()
}

/// Whether what `hole` takes out of the outer limit the inner one does not apply to either.
fn harmless(hole: &Pattern, inner: &Matching) -> bool {
    let untouched = !inner.patterns.is_empty() && inner.patterns.iter().all(|pattern| !pattern.meets(hole));
    untouched || inner.except.iter().any(|own| own.covers(hole))
}
