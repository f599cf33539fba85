//! A policy as `check` and `explain` look at it: plain data, in the words of the file.

use std::net::IpAddr;

use tope::core::Rate;

/// All that is said about a policy.
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
    /// What `check` tries.
    pub(crate) tests: Vec<Test>,
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
    /// What a request costs, in plain words, where it is not 1.
    pub(crate) cost: Option<String>,
    /// For each plan, or once for all of them: the rates, each with the name that answers give it.
    pub(crate) rates: Vec<Vec<(String, Rate)>>,
}

impl Limit {
    /// Whether its rates are not the same on every plan.
    pub(crate) fn depends_on_plan(&self) -> bool {
        self.rates.len() > 1
    }

    /// The rates on a plan.
    pub(crate) fn on_plan(&self, plan: usize) -> &[(String, Rate)] {
        self.rates.get(plan).or(self.rates.first()).map_or(&[], Vec::as_slice)
    }
}

/// A request to try, and what should come of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Test {
    /// `policy.yaml:31`
    pub(crate) place: String,
    /// `POST /login`
    pub(crate) request: String,
    pub(crate) from: Option<IpAddr>,
    pub(crate) host: String,
    pub(crate) headers: Vec<(String, String)>,
    /// The caller by name, in place of a key.
    pub(crate) client: Option<String>,
    pub(crate) plan: Option<String>,
    /// Time that passes before it.
    pub(crate) after_us: u64,
    pub(crate) times: u64,
    /// How many pass; `None`: all, unless `refused_by` is said.
    pub(crate) allowed: Option<u64>,
    /// The limit that refuses the last one.
    pub(crate) refused_by: Option<String>,
}
