//! Which limits can meet in one request: a walk over all paths that the patterns of a file can tell apart.
//!
//! After as many segments as were walked, a path is told by the set of patterns that still fit it: the construction of
//! subsets, with the literals of those patterns and one other text as its alphabet. Where a path may end, every method
//! and host that the file can tell apart is tried. The work is bounded; beyond the bound the answer is a safe one.

use std::collections::HashSet;

use super::exempt::Exemption;
use super::limit::{Limit, Mode};
use super::matching::{Host, Pattern, Segment};

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Reach {
    /// The most charges of one request on any plan.
    pub(super) most: usize,
    /// The places of the limits that meet there.
    pub(super) limits: Vec<usize>,
    /// A request that they meet in, where one was found.
    pub(super) request: Option<String>,
    /// The patterns of limits that some request meets: places of limit and pattern. `None`: too many to say.
    pub(super) reached: Option<HashSet<(usize, usize)>>,
}

/// Entries looked at before the walk gives up: below a second, and about 50 MB.
const WORK: usize = 4_000_000;

/// Finds out. `both`: a path may have two readings, whose limits all apply.
pub(super) fn explore(limits: &[Limit], exempt: &[Exemption], plans: u16, both: bool) -> Reach {
    let mut walk = Walk::new(limits, exempt, plans, both);
    let all: Vec<usize> = (0..walk.entries.len()).collect();
    let finished = walk.step(0, all, &mut Vec::new()).is_some();
    if !finished {
        let bound = at_most(limits, plans);
        return Reach { most: bound.most * (1 + usize::from(both)), ..bound };
    }
    if both {
        walk.pair();
    }
    Reach { most: walk.most, limits: walk.worst, request: walk.request, reached: Some(walk.reached) }
}

/// A pattern, and what it is for.
struct Entry<'a> {
    pattern: &'a Pattern,
    role: Role,
}

#[derive(Clone, Copy)]
enum Role {
    Match(usize, usize),
    Except(usize),
    Exempt(usize),
}

struct Walk<'a> {
    limits: &'a [Limit],
    entries: Vec<Entry<'a>>,
    /// Limits without patterns: on every path.
    everywhere: Vec<usize>,
    plans: u16,
    work: usize,
    seen: HashSet<(usize, Vec<usize>)>,
    ends: HashSet<Vec<usize>>,
    sets: HashSet<Vec<usize>>,
    /// With two readings: the exemptions that would free a request, and the limits that apply to it all the same when
    /// its other reading is not freed.
    freed: Option<HashSet<(Vec<usize>, Vec<usize>)>>,
    most: usize,
    worst: Vec<usize>,
    request: Option<String>,
    reached: HashSet<(usize, usize)>,
}

impl<'a> Walk<'a> {
    fn new(limits: &'a [Limit], exempt: &'a [Exemption], plans: u16, both: bool) -> Self {
        let mut entries = Vec::new();
        let mut everywhere = Vec::new();
        for (at, limit) in limits.iter().enumerate().filter(|(_, limit)| limit.mode != Mode::Disabled) {
            let patterns = limit.matching.patterns.iter().enumerate();
            entries.extend(patterns.map(|(number, pattern)| Entry { pattern, role: Role::Match(at, number) }));
            let except = limit.matching.except.iter();
            entries.extend(except.map(|pattern| Entry { pattern, role: Role::Except(at) }));
            if limit.matching.patterns.is_empty() {
                everywhere.push(at);
            }
        }
        // Who is exempt by an address may come from another.
        let paths = exempt.iter().enumerate().filter(|(_, exemption)| exemption.networks.is_empty());
        let paths = paths.flat_map(|(at, exemption)| exemption.patterns.iter().map(move |pattern| (at, pattern)));
        entries.extend(paths.map(|(at, pattern)| Entry { pattern, role: Role::Exempt(at) }));
        Self {
            limits,
            entries,
            everywhere,
            plans: plans.max(1),
            work: 0,
            seen: HashSet::new(),
            ends: HashSet::new(),
            sets: HashSet::new(),
            freed: both.then(HashSet::new),
            most: 0,
            worst: Vec::new(),
            request: None,
            reached: HashSet::new(),
        }
    }

    /// Walks on from paths of `depth` segments that `alive` still fits. `None`: too much work.
    fn step(&mut self, depth: usize, alive: Vec<usize>, path: &mut Vec<&'a str>) -> Option<()> {
        self.spend(alive.len() + 1)?;
        let ended = |entry: &Entry<'_>| entry.pattern.segments.len() == depth;
        let done = |entry: &Entry<'_>| entry.pattern.segments.len() <= depth && entry.pattern.tail;
        let entries = &self.entries;
        let matched: Vec<usize> =
            alive.iter().copied().filter(|at| ended(&entries[*at]) || done(&entries[*at])).collect();
        self.end(&matched, path)?;

        let entries = &self.entries;
        let (past, open): (Vec<usize>, Vec<usize>) = alive
            .into_iter()
            .filter(|at| !ended(&entries[*at]) || done(&entries[*at]))
            .partition(|at| done(&entries[*at]));
        let mut literals: Vec<(&'a str, Vec<usize>)> = Vec::new();
        let mut any = Vec::new();
        let mut places = std::collections::HashMap::new();
        for at in open {
            match &entries[at].pattern.segments[depth] {
                Segment::Literal(text) => {
                    let place = *places.entry(&**text).or_insert_with(|| {
                        literals.push((text, Vec::new()));
                        literals.len() - 1
                    });
                    literals[place].1.push(at);
                }
                Segment::Any | Segment::Named(_) => any.push(at),
            }
        }
        let other = ("x", Vec::new());
        for (text, own) in literals.into_iter().chain([other]) {
            let mut next: Vec<usize> = past.iter().chain(&any).copied().chain(own).collect();
            next.sort_unstable();
            let open = next.len() > past.len();
            if !self.seen.insert((depth + 1, next.clone())) {
                continue;
            }
            path.push(text);
            if open {
                self.step(depth + 1, next, path)?;
            } else {
                // Whatever follows, the patterns that match stay the same.
                self.end(&next, path)?;
            }
            path.pop();
        }
        Some(())
    }

    fn spend(&mut self, work: usize) -> Option<()> {
        self.work += work;
        (self.work <= WORK).then_some(())
    }

    /// A path may end here, and matches these.
    fn end(&mut self, matched: &[usize], path: &[&str]) -> Option<()> {
        if self.ends.contains(matched) {
            return Some(());
        }
        self.ends.insert(matched.to_vec());
        for method in self.methods(matched) {
            for host in self.hosts(matched) {
                self.spend(matched.len() + self.everywhere.len() + 1)?;
                self.request(matched, method, &host, path);
            }
        }
        Some(())
    }

    /// The methods that these patterns tell apart, and one that none of them names. HEAD where it is not named meets
    /// what GET meets.
    fn methods(&self, matched: &[usize]) -> Vec<&'a str> {
        let named = matched.iter().flat_map(|at| &self.entries[*at].pattern.methods).map(|method| &**method);
        let mut methods: Vec<&str> = named.chain(["\0"]).collect();
        methods.sort_unstable();
        methods.dedup();
        methods.reverse();
        methods
    }

    /// A host for each way in which these limits tell hosts apart, and one that none of them names.
    fn hosts(&self, matched: &[usize]) -> Vec<String> {
        let limits = matched.iter().filter_map(|at| match self.entries[*at].role {
            Role::Match(limit, _) => Some(limit),
            _ => None,
        });
        let named = limits.chain(self.everywhere.iter().copied()).flat_map(|limit| &self.limits[limit].matching.hosts);
        let mut hosts: Vec<String> = named
            .map(|host| match host {
                Host::Exactly(name) => name.to_string(),
                Host::Below(suffix) => format!("\0{suffix}"),
            })
            .chain([String::new()])
            .collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    }

    /// One kind of request: which limits apply to it.
    fn request(&mut self, matched: &[usize], method: &str, host: &str, path: &[&str]) {
        let taken = matched.iter().map(|at| &self.entries[*at]).filter(|entry| entry.pattern.takes(method));
        let (mut hits, mut excepted, mut exempt) = (Vec::new(), HashSet::new(), Vec::new());
        for entry in taken {
            match entry.role {
                Role::Match(limit, pattern) => hits.push((limit, pattern)),
                Role::Except(limit) => drop(excepted.insert(limit)),
                Role::Exempt(exemption) => exempt.push(exemption),
            }
        }
        if !exempt.is_empty() && self.freed.is_none() {
            return;
        }
        let here = |limit: &usize| {
            let hosts = &self.limits[*limit].matching.hosts;
            !excepted.contains(limit) && (hosts.is_empty() || hosts.iter().any(|own| own.is(host)))
        };
        hits.retain(|(limit, _)| here(limit));
        let mut set: Vec<usize> = hits.iter().map(|(limit, _)| *limit).collect();
        set.extend(self.everywhere.iter().filter(|limit| here(limit)));
        set.sort_unstable();
        set.dedup();
        if let Some(freed) = self.freed.as_mut().filter(|_| !exempt.is_empty()) {
            exempt.sort_unstable();
            exempt.dedup();
            freed.insert((exempt, set));
            return;
        }
        self.reached.extend(hits);
        if !self.sets.contains(&set) {
            let most = most(self.limits, &set, self.plans);
            if most > self.most {
                let method = if method == "\0" { "ANY" } else { method };
                (self.most, self.worst) = (most, set.clone());
                self.request = Some(format!("{method} /{}", path.join("/")));
            }
            self.sets.insert(set);
        }
    }

    /// Two readings of one path may be any two kinds of request.
    fn pair(&mut self) {
        const PAIRS: usize = 1_000;
        // One exemption frees a request when it takes both readings, so two that share one are never charged together.
        let freed: Vec<(Vec<usize>, Vec<usize>)> = self.freed.take().into_iter().flatten().collect();
        let sets = self.sets.iter().map(|set| (Vec::new(), set.clone()));
        let sets: Vec<(Vec<usize>, Vec<usize>)> = sets.chain(freed).collect();
        let mut unions: Vec<Vec<usize>> = Vec::new();
        if sets.len() <= PAIRS {
            let pairs = sets.iter().enumerate().flat_map(|(at, a)| sets[at + 1..].iter().map(move |b| (a, b)));
            let charged = pairs.filter(|((a, _), (b, _))| !a.iter().any(|exemption| b.contains(exemption)));
            unions.extend(charged.map(|((_, a), (_, b))| union(a, b)));
        } else {
            let everything: Vec<usize> = (0..self.limits.len()).collect();
            unions.push(everything);
        }
        for set in unions {
            let most = most(self.limits, &set, self.plans);
            if most > self.most {
                (self.most, self.worst, self.request) = (most, set, None);
            }
        }
    }
}

fn union(a: &[usize], b: &[usize]) -> Vec<usize> {
    let mut both: Vec<usize> = a.iter().chain(b).copied().collect();
    both.sort_unstable();
    both.dedup();
    both
}

/// The most charges of one request that these limits apply to.
fn most(limits: &[Limit], set: &[usize], plans: u16) -> usize {
    let on = |plan: u16| set.iter().map(|limit| limits[*limit].most(plan)).sum();
    (0..plans).map(on).max().unwrap_or(0)
}

/// A bound that is never too small: the limits that meet in a request all meet each of them.
fn at_most(limits: &[Limit], plans: u16) -> Reach {
    let active = |at: &usize| limits[*at].mode != Mode::Disabled;
    let all: Vec<usize> = (0..limits.len()).filter(active).collect();
    let mut worst = Reach::default();
    for one in &all {
        let meets = |other: &&usize| {
            let (a, b) = (&limits[*one].matching.patterns, &limits[**other].matching.patterns);
            a.is_empty() || b.is_empty() || a.iter().any(|a| b.iter().any(|b| a.meets(b)))
        };
        let set: Vec<usize> = all.iter().filter(meets).copied().collect();
        let most = most(limits, &set, plans.max(1));
        if most > worst.most {
            (worst.most, worst.limits) = (most, set);
        }
    }
    worst
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that unwraps nothing fails")]
mod tests;
