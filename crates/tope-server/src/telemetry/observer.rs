//! What a worker does with each record: it counts, and writes a line when there is an access log.

use std::sync::Arc;

use tope::Policy;
use tope::core::{Outcome, Verdict};
use tope::facts::Price;
use tope::observe::{Details, Observe, Record};

use super::access_log::{Line, Said, Writer};
use super::metrics::Worker;

/// The observer of one worker.
#[derive(Debug)]
pub struct Observer {
    counters: Arc<Worker>,
    log: Option<Writer>,
}

impl Observer {
    /// Counts into `counters`, and writes to `log` where there is one.
    pub fn new(counters: Arc<Worker>, log: Option<Writer>) -> Self {
        Self { counters, log }
    }
}

impl Observe for Observer {
    fn observe(&self, record: &Record<'_>) {
        self.counters.observe(record);
        if let (Some(log), Some(details)) = (&self.log, record.details) {
            write(log, record, details);
        }
    }

    fn unpriced(&self, policy: &Arc<Policy>, budget: u16, price: Price) {
        self.counters.unpriced(policy, budget, price);
    }

    fn wants_details(&self) -> bool {
        self.log.is_some()
    }
}

fn write(log: &Writer, record: &Record<'_>, details: &Details) {
    let Some(judgement) = record.judgement else { return };
    let entries = judgement.entries();
    let verdict = Verdict::new(&entries);
    let refused_by = verdict.refused_by();
    let shadows: Vec<&str> =
        entries.iter().filter(|entry| !entry.enforced && !entry.decision.allowed()).map(|entry| entry.name).collect();
    let said = match refused_by.map(|entry| entry.decision.outcome()) {
        _ if entries.is_empty() => Said::None,
        None => Said::Allow,
        Some(Outcome::Never) => Said::Never,
        Some(_) => Said::Deny,
    };
    let mut charged: Vec<(&str, u32)> = Vec::new();
    for (budget, units) in judgement.charged() {
        let name = judgement.policy().limit_of(*budget).name();
        // Two rates of one limit are charged the same.
        if charged.iter().all(|(other, _)| *other != name) {
            charged.push((name, *units));
        }
    }
    log.write(&Line {
        time: record.now_us,
        seq: judgement.order(),
        method: details.method.as_str(),
        path: &details.path,
        host: &details.host,
        status: record.status,
        address: details.address,
        client: details.client.as_deref(),
        plan: judgement.policy().plans().get(usize::from(details.plan)).map(String::as_str),
        preflight: details.preflight,
        verdict: said,
        refused_by: refused_by.map(|entry| entry.name),
        shadow_refused: &shadows,
        charged: &charged,
        took_us: record.answered_ns / 1_000,
    });
}
