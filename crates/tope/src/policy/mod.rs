//! All limits of one file, compiled: what was written becomes what is meant, once. Names no store.
//!
//! ```text
//! text -> document (a tree with places) -> file (every field as plain data) -> compile -> Policy
//! ```
//!
//! | room | what is in it |
//! |---|---|
//! | [`mod@file`] | what was written: every field, each value with its place; the JSON Schema |
//! | [`error`] | places, problems, and how they are told |
//! | `document`, `variables`, `traps` | YAML to a tree; `${NAME}`; where YAML surprises |
//! | `findings` | problems as they are found, and what is never shown |
//! | `compile` | a file to a policy, section by section |
//! | `matching`, `exempt`, `first` | when a limit applies |
//! | `key`, `clients` | to whom: the bytes that name a bucket; who is calling |
//! | `plan`, `cost`, `calendar`, `limit` | how much |
//! | `guard`, `reach`, `warnings` | what a file as a whole may not say, or seldom means |
//! | `charges` | what one request must pay |
//! | `after` | what the answer must be to count |
//! | `absence` | why a limit asks nothing of it |
//!
//! Policies are made of files, so without the feature `yaml` there is one policy, [`Policy::permissive`].
#![cfg_attr(
    not(feature = "yaml"),
    allow(dead_code, reason = "who compiles a file fills the rooms that are always there")
)]

mod absence;
mod after;
#[cfg(feature = "yaml")]
mod calendar;
mod cases;
mod charges;
mod clients;
#[cfg(feature = "yaml")]
mod compile;
mod cost;
#[cfg(feature = "yaml")]
mod document;
pub mod error;
mod exempt;
#[cfg(feature = "yaml")]
pub mod file;
#[cfg(feature = "yaml")]
mod findings;
mod first;
#[cfg(feature = "yaml")]
mod guard;
mod key;
mod limit;
mod matching;
#[cfg(feature = "yaml")]
mod plan;
mod price;
#[cfg(feature = "yaml")]
mod reach;
#[cfg(feature = "yaml")]
mod surroundings;
#[cfg(feature = "yaml")]
mod traps;
#[cfg(feature = "yaml")]
mod variables;
#[cfg(feature = "yaml")]
mod warnings;

#[cfg(feature = "yaml")]
use std::collections::HashSet;

pub use absence::Absence;
pub use cases::Test;
pub use charges::Charges;
pub use clients::KeyDigest;
#[cfg(feature = "yaml")]
pub use compile::{read, read_and};
pub use error::{At, Errors, Place, Problem, Warning};
#[cfg(feature = "yaml")]
pub use file::{File, schema};
#[cfg(feature = "yaml")]
pub use findings::{Finding, Findings};
pub use limit::{Limit, Mode};
#[cfg(feature = "yaml")]
pub use surroundings::Surroundings;

use self::after::Count;
use self::clients::Known;
use self::exempt::Exemption;
use self::first::Index;
use self::key::Seed;
#[cfg(feature = "yaml")]
use self::reach::Reach;
use crate::charge::Budget;
use crate::facts::{Client, Facts, Price, Reply};
use crate::http::body::Field;
use crate::http::{client_addr, cors, fields, path};

/// What becomes of the units that a budget holds for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// They come back.
    Nothing,
    /// They stay as they are.
    Held,
    /// So many are due, fewer or more.
    Units(u32),
    /// They stay, because the answer did not say what is due, or not in a number.
    Unpriced(Price),
}

/// All limits of one file, compiled.
#[derive(Debug)]
#[non_exhaustive]
pub struct Policy {
    /// Every rate of every limit on every plan; a charge names one of them.
    pub budgets: Vec<Budget>,
    /// Which header fields say it.
    pub dialects: Vec<fields::Dialect>,
    /// How the caller's address is found.
    pub address: client_addr::Rules,
    /// How paths are read.
    pub paths: path::Rules,
    /// Which pages may read a refusal; `None`: CORS is not ours.
    pub cors: Option<cors::Rules>,
    /// A page that a refusal points to.
    pub docs: Option<String>,
    #[cfg(feature = "yaml")]
    /// What was written, for the sections that a program compiles by itself. API keys are not kept.
    pub file: File,
    limits: Vec<Limit>,
    /// Some limit waits for the answer.
    awaits: bool,
    /// Some limit lets requests wait.
    waits: bool,
    /// Some limit holds what the body of a request says.
    asks_bodies: bool,
    /// Where the bodies of answers say prices.
    body_fields: Vec<Field>,
    /// Fields of answers that clients don't see.
    hidden: Vec<::http::HeaderName>,
    /// For each budget, the place of its limit.
    of_budget: Vec<u16>,
    first: Index,
    plans: Vec<String>,
    known: Known,
    exempt: Vec<Exemption>,
    seed: Seed,
    tests: Vec<Test>,
    warnings: Vec<Warning>,
    files: Vec<String>,
    #[cfg(feature = "yaml")]
    reach: Reach,
    #[cfg(feature = "yaml")]
    used_columns: HashSet<String>,
}

impl Policy {
    /// A policy without limits: everything passes.
    pub fn permissive() -> Self {
        Self {
            budgets: Vec::new(),
            dialects: vec![fields::Dialect::Triple, fields::Dialect::Draft],
            address: client_addr::Rules { trust: Vec::new(), ipv6_prefix: 64, field: client_addr::Field::Either },
            paths: path::Rules::default(),
            cors: None,
            docs: None,
            #[cfg(feature = "yaml")]
            file: File::default(),
            limits: Vec::new(),
            awaits: false,
            waits: false,
            asks_bodies: false,
            body_fields: Vec::new(),
            hidden: Vec::new(),
            of_budget: Vec::new(),
            first: Index::default(),
            plans: Vec::new(),
            known: Known::default(),
            exempt: Vec::new(),
            seed: Seed([0; 16]),
            tests: Vec::new(),
            warnings: Vec::new(),
            files: Vec::new(),
            #[cfg(feature = "yaml")]
            reach: Reach::default(),
            #[cfg(feature = "yaml")]
            used_columns: HashSet::new(),
        }
    }

    /// What this request must pay: one charge for each rate of each limit that applies, in the order of the file.
    pub fn charges(&self, facts: &Facts<'_>) -> Charges {
        Charges::new(self, facts)
    }

    /// Who is calling, by what the policy's `clients` says: a key in a header, bearer token, cookie or query, or a
    /// header whose word counts when it comes from a trusted peer.
    pub fn identify<'a>(
        &'a self,
        headers: &'a ::http::HeaderMap,
        query: Option<&str>,
        trusted_peer: bool,
    ) -> Client<'a> {
        self.known.identify(headers, query, trusted_peer)
    }

    /// The header fields that only a trusted peer may send: they name the client, and from anybody else they are not
    /// believed. Who forwards requests takes them off what comes from other peers, so that no upstream believes them
    /// either.
    pub fn stripped(&self) -> &[::http::HeaderName] {
        self.known.stripped()
    }

    /// The caller that an access log names: `name` as it was logged, `plan` by its name. A plan that is no longer
    /// there is the client's present one, or that of a caller without a key.
    pub fn client_named<'a>(&self, name: Option<&'a str>, plan: Option<&str>) -> Client<'a> {
        let logged = plan.and_then(|plan| self.plan_named(plan));
        let present = || name.map_or(self.known.otherwise(), |name| self.known.plan_of(name));
        Client { name, plan: logged.unwrap_or_else(present) }
    }

    /// The place of a plan, by its name.
    pub fn plan_named(&self, name: &str) -> Option<u16> {
        self.plans.iter().position(|plan| plan == name).and_then(|at| u16::try_from(at).ok())
    }

    /// The status of a refusal by this budget's limit, where the policy says another than 429.
    pub fn reject_status(&self, budget: u16) -> Option<u16> {
        self.limit_of(budget).reject_status()
    }

    /// Whether some limit waits for the answer before it knows what a request costs.
    pub(crate) fn awaits_answers(&self) -> bool {
        self.awaits
    }

    /// What is due of a budget that waits for the answer, as far as that is known; `None`: not known yet. `counts` is
    /// whether the answer is known to count.
    pub(crate) fn due(&self, budget: u16, counts: &mut bool, reply: Reply<'_>) -> Option<Due> {
        if self.budgets[usize::from(budget)].in_flight() {
            let ended = matches!(reply, Reply::End { .. } | Reply::Nothing | Reply::Left);
            return ended.then_some(Due::Nothing);
        }
        let limit = self.limit_of(budget);
        if let (Some(count), false) = (&limit.count, *counts) {
            *counts = count.counts(reply)?;
            if !*counts {
                return Some(Due::Nothing);
            }
        }
        let Some(pricing) = &limit.pricing else { return Some(Due::Held) };
        Some(match pricing.price(&limit.name, reply)? {
            Price::Units(units) => Due::Units(units),
            // What nobody waited for could not say it.
            Price::Unsaid if matches!(reply, Reply::Left | Reply::Logged { .. }) => Due::Held,
            unsaid => Due::Unpriced(unsaid),
        })
    }

    /// Whether a budget waits for the answer.
    pub(crate) fn awaits(&self, budget: u16) -> bool {
        let limit = self.limit_of(budget);
        limit.count.is_some() || limit.pricing.is_some() || self.budgets[usize::from(budget)].in_flight()
    }

    /// Whether the head of an answer tells a budget's limit whether units come back: then other requests can wait for
    /// them too.
    pub(crate) fn answers_soon(&self, budget: u16) -> bool {
        let limit = self.limit_of(budget);
        limit.pricing.is_none() && limit.count.as_ref().is_some_and(Count::is_in_the_head)
    }

    /// Whether some limit lets requests wait in line.
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// How long a request may wait for this budget's limit, in microseconds.
    pub(crate) fn wait_us(&self, budget: u16) -> Option<u64> {
        self.limit_of(budget).wait_us
    }

    /// Whether the answer says what a budget's limit charges.
    pub(crate) fn is_priced(&self, budget: u16) -> bool {
        self.limit_of(budget).pricing.is_some()
    }

    /// Where the bodies of answers say what limits charge; whoever passes a body on reads these in it.
    pub fn body_fields(&self) -> &[Field] {
        &self.body_fields
    }

    /// The place of the field of an answer's body that a budget's limit charges, if it does.
    pub fn body_field(&self, budget: u16) -> Option<u16> {
        self.limit_of(budget).pricing.as_ref()?.body_field()
    }

    /// The header fields of answers that say prices to us alone, and are taken off before a client sees them.
    pub fn hidden(&self) -> &[::http::HeaderName] {
        &self.hidden
    }

    /// Whether some limit holds what the body of a request says.
    pub fn asks_bodies(&self) -> bool {
        self.asks_bodies
    }

    /// Whether some limit that applies to this request holds what its body says.
    pub fn asks_body(&self, facts: &Facts<'_>) -> bool {
        self.limits.iter().any(|limit| limit.asks_body() && limit.matching.meet(facts).is_some())
    }

    /// The limits, in the order of the file.
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// The limit that a budget belongs to. The budgets of one limit are added up under its name.
    pub fn limit_of(&self, budget: u16) -> &Limit {
        &self.limits[usize::from(self.of_budget[usize::from(budget)])]
    }

    /// The names of the plans, in the order of the file; a plan's place is its number.
    pub fn plans(&self) -> &[String] {
        &self.plans
    }

    /// What the file says should come of some requests.
    pub fn tests(&self) -> &[Test] {
        &self.tests
    }

    /// What is allowed and seldom meant.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The names of the files that were read besides the policy itself, relative to it.
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// The same policy, counted and enforced on nobody.
    #[must_use]
    pub fn shadow(mut self) -> Self {
        self.budgets.iter_mut().for_each(|budget| budget.shadow = true);
        for limit in &mut self.limits {
            if limit.mode == Mode::Enforce {
                limit.mode = Mode::Shadow;
            }
        }
        self
    }
}
