//! A policy as `check` and `explain` look at it: plain data, in the words of the file.

use tope::Policy;
use tope::core::Rate;
use tope::policy::Mode;
use tope::policy::file::{Clients, Cost, Exempt, LimitEntry, Many};

/// All that is said about a policy beside its tests.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    /// The limits, in the order of the file.
    pub(crate) limits: Vec<Limit>,
    /// The plans' names, in the order of the file.
    pub(crate) plans: Vec<String>,
    /// The plan of a call without a known key.
    pub(crate) otherwise: Option<String>,
    /// Where a request says who is calling, in plain words.
    pub(crate) source: Option<String>,
    /// What no limit applies to.
    pub(crate) exempt: Vec<String>,
    /// What is allowed and seldom meant, each with its place.
    pub(crate) warnings: Vec<String>,
}

/// One limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limit {
    pub(crate) name: String,
    /// `POST /login`; empty: every request.
    pub(crate) on: String,
    /// `/api/search`; empty: nothing.
    pub(crate) except: String,
    /// `ip`, `client`, `header X`, …
    pub(crate) by: Vec<String>,
    pub(crate) shadow: bool,
    pub(crate) disabled: bool,
    /// The status of a refusal, where it is not 429.
    pub(crate) status: Option<u16>,
    /// Which answers count, in the words of the file; empty when all do.
    pub(crate) count: String,
    /// Where the answer says what is charged, and what is held until then, in the words of the file; empty where nothing is.
    pub(crate) charge: String,
    pub(crate) reserve: String,
    /// How long a request may wait before it is refused, in microseconds.
    pub(crate) wait_us: Option<u64>,
    /// How long a lost place is kept, in microseconds, where the file says it.
    pub(crate) hold_us: Option<u64>,
    /// What a request costs, in plain words, where it is not 1.
    pub(crate) cost: Option<String>,
    /// For each plan, or once for all of them: the rates, each with the name that answers give it.
    pub(crate) rates: Vec<Vec<(String, Rate)>>,
}

impl View {
    /// Looks at a policy.
    pub(crate) fn of(policy: &Policy) -> Self {
        let file = &policy.file;
        let plans = policy.plans().to_vec();
        let clients = file.clients.as_ref();
        let otherwise = policy.client_named(None, None).plan;
        let exempt = file.exempt.iter().flat_map(|exempt| &exempt.0).map(|exempt| exempt_words(&exempt.value));
        Self {
            limits: policy.limits().iter().map(|limit| Limit::of(policy, limit)).collect(),
            otherwise: plans.get(usize::from(otherwise)).cloned(),
            plans,
            source: clients.and_then(source),
            exempt: exempt.collect(),
            warnings: policy.warnings().iter().map(ToString::to_string).collect(),
        }
    }
}

impl Limit {
    fn of(policy: &Policy, limit: &tope::policy::Limit) -> Self {
        let written = policy.file.limits.as_ref().and_then(|limits| limits.named(limit.name()));
        let plans = if limit.depends_on_plan() { policy.plans().len() } else { 1 };
        let plans = u16::try_from(plans).unwrap_or(u16::MAX);
        Self {
            name: limit.name().to_owned(),
            on: written.map_or(String::new(), on),
            except: written.map_or(String::new(), |written| listed(written.except.as_ref())),
            by: by(written, limit),
            shadow: limit.mode() == Mode::Shadow,
            disabled: limit.mode() == Mode::Disabled,
            status: limit.reject_status(),
            count: limit.count_text().to_owned(),
            wait_us: limit.wait_us(),
            charge: limit.charge_text().to_owned(),
            reserve: limit.reserve_text().to_owned(),
            hold_us: written.and_then(|written| Some(written.hold.as_ref()?.value.0)),
            cost: written.and_then(|written| cost(&written.cost.as_ref()?.value)),
            rates: (0..plans).map(|plan| limit.rates(plan).collect()).collect(),
        }
    }

    /// Whether its rates are not the same on every plan.
    pub(crate) fn depends_on_plan(&self) -> bool {
        self.rates.len() > 1
    }

    /// The rates on a plan.
    pub(crate) fn on_plan(&self, plan: usize) -> &[(String, Rate)] {
        self.rates.get(plan).or(self.rates.first()).map_or(&[], Vec::as_slice)
    }
}

/// What names a bucket: what was written, and the plan where each has buckets of its own.
fn by(written: Option<&LimitEntry>, limit: &tope::policy::Limit) -> Vec<String> {
    let mut by = written.and_then(|written| written.by.as_ref()).map_or(Vec::new(), texts);
    if limit.divides_by_plan() {
        by.push("plan".to_owned());
    }
    by
}

fn texts(many: &Many<String>) -> Vec<String> {
    many.0.iter().map(|at| at.value.clone()).collect()
}

fn listed(many: Option<&Many<String>>) -> String {
    many.map_or(String::new(), |many| texts(many).join(", "))
}

/// `POST /login of host h, when header X = V`
fn on(written: &LimitEntry) -> String {
    let (matches, host, when) =
        (listed(written.matches.as_ref()), listed(written.host.as_ref()), listed(written.when.as_ref()));
    let mut text = matches;
    for (word, part) in [("of host", host), ("when", when)] {
        if part.is_empty() {
            continue;
        }
        if text.is_empty() {
            text.push_str("every request");
        }
        text.extend([" ", word, " ", &part]);
    }
    text
}

fn cost(cost: &Cost) -> Option<String> {
    match cost {
        Cost::Same(amount) if amount.0 == 1 => None,
        Cost::Same(amount) => Some(format!("a request costs {}", amount.0)),
        Cost::Matching(costs) => {
            let costs = costs.0.iter().map(|(on, amount)| format!("{} on {}", amount.value.0, on.value));
            Some(format!("a request costs {}, others 1", costs.collect::<Vec<_>>().join(", ")))
        }
        _ => Some("what a request costs is written in a way that this page does not know".to_owned()),
    }
}

/// `the key in header X-Api-Key`
fn source(clients: &Clients) -> Option<String> {
    let named = |what: &str, name: &Option<tope::policy::At<String>>| {
        name.as_ref().map(|name| format!("{what} {}", name.value))
    };
    let bearer = clients.bearer.as_ref().filter(|bearer| bearer.value).map(|_| "the bearer token".to_owned());
    named("the key in header", &clients.header)
        .or(bearer)
        .or_else(|| named("the key in cookie", &clients.cookie))
        .or_else(|| named("the key in query parameter", &clients.query))
        .or_else(|| named("a trusted proxy's header", &clients.trusted_header))
}

fn exempt_words(exempt: &Exempt) -> String {
    match exempt {
        Exempt::Text(text) => text.clone(),
        Exempt::Object(object) => {
            let part = |word: &str, many: &Option<Many<String>>| {
                many.as_ref().map(|many| format!("{word} {}", texts(many).join(", ")))
            };
            let parts = [part("path", &object.path), part("ip", &object.ip)];
            parts.into_iter().flatten().collect::<Vec<_>>().join(" from ")
        }
        _ => "something else".to_owned(),
    }
}
