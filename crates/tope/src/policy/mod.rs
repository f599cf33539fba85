//! All limits of one file, compiled: what was written becomes what is meant, once. Names no store.

mod charges;

pub use charges::Charges;

use crate::charge::Budget;
use crate::facts::{Client, Facts};
use crate::http::{client_addr, cors, fields, path};

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
}

impl Policy {
    /// What this request must pay: one charge for each rate of each limit that applies, in the order of the file.
    pub fn charges(&self, facts: &Facts<'_>) -> Charges {
        let _ = facts;
        Charges::default()
    }

    /// Who is calling, by what the policy's `clients` says: a key in a header, bearer token, cookie or query, or a
    /// header whose word counts when it comes from a trusted peer.
    pub fn identify<'a>(&'a self, headers: &'a ::http::HeaderMap, query: Option<&str>, trusted_peer: bool) -> Client<'a> {
        let _ = (headers, query, trusted_peer);
        Client { name: None, plan: 0 }
    }

    /// The status of a refusal by this budget's limit, where the policy says another than 429.
    pub fn reject_status(&self, budget: u16) -> Option<u16> {
        let _ = budget;
        None
    }
}
