//! A limit, compiled.

use tope_core::Rate;

use super::after::Count;
use super::cost::Costs;
use super::error::Place;
use super::key::{KeyForm, Missing};
use super::matching::Matching;
use super::price::Pricing;

/// Whether a limit is enforced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// It refuses.
    #[default]
    Enforce,
    /// It counts and reports, and never refuses.
    Shadow,
    /// It does nothing.
    Disabled,
}

impl Mode {
    /// The word in a policy.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Shadow => "shadow",
            Self::Disabled => "disabled",
        }
    }
}

/// A named quota: when it applies, to whom, and how much.
#[derive(Debug)]
pub struct Limit {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) matching: Matching,
    pub(super) key: KeyForm,
    /// Where its key stands.
    pub(super) by_place: Place,
    /// Whether `by` was written.
    pub(super) keyed: bool,
    pub(super) costs: Costs,
    /// Which answers count; `None`: a request counts whatever its answer is.
    pub(super) count: Option<Count>,
    /// Where the answer says what is charged; `None`: what was taken at first is.
    pub(super) pricing: Option<Pricing>,
    /// How long a request may wait before it is refused.
    pub(super) wait_us: Option<u64>,
    pub(super) mode: Mode,
    pub(super) reject: Option<u16>,
    pub(super) caller_chosen: bool,
    /// For each plan, or once for all of them.
    pub(super) sizes: Vec<Size>,
    /// The budget that refuses whoever lacks a part of the key.
    pub(super) deny: Option<u16>,
    pub(super) text: Text,
}

/// How it was written.
#[derive(Debug, Default)]
pub(super) struct Text {
    pub(super) matches: String,
    pub(super) by: String,
    pub(super) count: String,
    pub(super) charge: String,
    pub(super) reserve: String,
}

/// The budgets of one plan.
#[derive(Debug, Default)]
pub(super) struct Size {
    /// The rates and their numbers, `unlimited` among them.
    pub(super) rates: Vec<(u16, Rate)>,
    /// The places of their budgets in the policy.
    pub(super) budgets: Vec<u16>,
}

impl Limit {
    /// The name that clients and metrics see.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it stands in the file.
    pub const fn place(&self) -> Place {
        self.place
    }

    /// What it applies to, in the words of the file.
    pub fn match_text(&self) -> &str {
        &self.text.matches
    }

    /// What names a bucket, in the words of the file.
    pub fn by_text(&self) -> &str {
        &self.text.by
    }

    /// Which answers count, in the words of the file; empty when all do.
    pub fn count_text(&self) -> &str {
        &self.text.count
    }

    /// Where the answer says what is charged, in the words of the file; empty when no answer is asked.
    pub fn charge_text(&self) -> &str {
        &self.text.charge
    }

    /// What is held until the answer says it, in the words of the file; empty when nothing is said of it.
    pub fn reserve_text(&self) -> &str {
        &self.text.reserve
    }

    /// How long a request may wait in line before it is refused, in microseconds.
    pub const fn wait_us(&self) -> Option<u64> {
        self.wait_us
    }

    /// Whether it is enforced.
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// The status of a refusal, where it is not 429.
    pub const fn reject_status(&self) -> Option<u16> {
        self.reject
    }

    /// Whether its rates are not the same on every plan.
    pub fn depends_on_plan(&self) -> bool {
        self.sizes.len() > 1
    }

    /// Whether each plan has buckets of its own although `by` does not say it: rates that are the plan's, and a key that
    /// does not name the client.
    pub const fn divides_by_plan(&self) -> bool {
        self.key.by_plan
    }

    /// Whether it holds what the body of a request says.
    pub(super) fn asks_body(&self) -> bool {
        self.mode != Mode::Disabled && self.costs.is_in_the_body()
    }

    /// The rates on a plan, each with the name that answers and decisions give it.
    pub fn rates(&self, plan: u16) -> impl Iterator<Item = (String, Rate)> {
        self.size(plan).rates.iter().map(|(slot, rate)| (budget_name(&self.name, *slot), *rate))
    }

    /// The places in [`Policy::budgets`](super::Policy::budgets) of the budgets on a plan.
    pub fn budgets(&self, plan: u16) -> &[u16] {
        &self.size(plan).budgets
    }

    pub(super) fn size(&self, plan: u16) -> &Size {
        self.sizes.get(usize::from(plan)).unwrap_or(&self.sizes[0])
    }

    /// The most charges that one request on this plan makes here.
    pub(super) fn most(&self, plan: u16) -> usize {
        if self.mode == Mode::Disabled {
            return 0;
        }
        let denies = usize::from(self.key.missing == Missing::Deny && self.deny.is_some());
        self.size(plan).budgets.len().max(denies)
    }
}

/// `login`, and `login.2` for the second rate of a list.
pub(super) fn budget_name(limit: &str, slot: u16) -> String {
    if slot == 0 { limit.to_owned() } else { format!("{limit}.{}", slot + 1) }
}
