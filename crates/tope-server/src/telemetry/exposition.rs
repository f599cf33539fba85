//! What `/metrics` says: the counters of all workers, added up, in the text form of OpenMetrics.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::Registry;
use tope::clock::Clock;
use tope::store::memory::Memory;

use super::metrics::{DURATIONS_NS, Decided, Reloads, Worker};

/// Everything that is counted.
#[derive(Debug)]
pub struct Metrics {
    /// The workers' own counters.
    pub workers: Vec<Arc<Worker>>,
    /// What happened to the policy.
    pub reloads: Arc<Reloads>,
    /// Lines of the access log that nobody could be given.
    pub lost_lines: Option<Arc<AtomicU64>>,
    /// The store behind them.
    pub store: Arc<Memory>,
    /// The clock that they are judged by.
    pub clock: Arc<Clock>,
}

/// What was counted for one limit.
#[derive(Debug, Default)]
struct Sums {
    decided: [u64; 4],
    priced: bool,
    unpriced: [u64; 2],
}

impl Metrics {
    /// The text of a scrape.
    pub fn text(self: &Arc<Self>) -> String {
        let mut registry = Registry::with_prefix("tope");
        registry.register_collector(Box::new(Arc::clone(self)));
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &registry);
        text
    }

    fn sum(&self, of: impl Fn(&Worker) -> &AtomicU64) -> u64 {
        self.workers.iter().map(|worker| of(worker).load(Relaxed)).sum()
    }

    fn decisions(&self) -> BTreeMap<String, Sums> {
        let mut limits: BTreeMap<String, Sums> = BTreeMap::new();
        for (name, decisions) in self.workers.iter().flat_map(|worker| worker.decisions()) {
            let sums = limits.entry(name).or_default();
            for (sum, counter) in sums.decided.iter_mut().zip(&decisions.decided) {
                *sum += counter.load(Relaxed);
            }
            for (sum, counter) in sums.unpriced.iter_mut().zip(&decisions.unpriced) {
                *sum += counter.load(Relaxed);
            }
            sums.priced |= decisions.priced.load(Relaxed);
        }
        limits
    }

    fn unpriced(limits: &BTreeMap<String, Sums>, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        if !limits.values().any(|sums| sums.priced) {
            return Ok(());
        }
        let help = "Answers that did not say the price that a limit charges: what was held is charged";
        let mut metric = encoder.encode_descriptor("unpriced_answers", help, None, MetricType::Counter)?;
        for (limit, sums) in limits.iter().filter(|(_, sums)| sums.priced) {
            for (reason, count) in ["absent", "unreadable"].into_iter().zip(sums.unpriced) {
                let labels = [("limit", limit.as_str()), ("reason", reason)];
                ConstCounter::new(count).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn durations(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Seconds from reading a request to its judgement";
        let mut metric = encoder.encode_descriptor("decision_duration_seconds", help, None, MetricType::Histogram)?;
        let counts: Vec<u64> = (0..=DURATIONS_NS.len()).map(|at| self.sum(|worker| &worker.durations[at])).collect();
        let bounds = DURATIONS_NS.iter().map(|ns| seconds(*ns)).chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = bounds.zip(counts.iter().copied()).collect();
        let sum = seconds(self.sum(|worker| &worker.duration_sum_ns));
        metric.encode_histogram::<NoLabelSet>(sum, counts.iter().sum(), &buckets, None)
    }
}

/// For people and graphs; nothing is decided with it.
#[expect(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "Prometheus speaks of seconds as floats")]
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut decisions = encoder.encode_descriptor(
            "decisions",
            "Decisions of each limit; the rates of one limit are added up",
            None,
            MetricType::Counter,
        )?;
        let limits = self.decisions();
        for (limit, sums) in &limits {
            for result in Decided::ALL {
                let labels = [("limit", limit.as_str()), ("result", result.word())];
                let family = decisions.encode_family(&labels)?;
                ConstCounter::new(sums.decided[result as usize]).encode(family)?;
            }
        }
        Self::unpriced(&limits, &mut encoder)?;
        let requests = |at: usize| self.sum(|worker| &worker.requests[at]);
        let became = [("passed", requests(0)), ("refused", requests(1)), ("invalid", requests(2))];
        family(&mut encoder, "requests", "Requests, by what became of them", "result", &became)?;
        let help = "Answers to requests that passed, by the class of their status";
        let classes = ["other", "1xx", "2xx", "3xx", "4xx", "5xx"].into_iter().enumerate();
        let answers: Vec<_> = classes.map(|(at, code)| (code, self.sum(|worker| &worker.answers[at]))).collect();
        family(&mut encoder, "upstream_answers", help, "code", &answers)?;
        self.durations(&mut encoder)?;

        let counts = self.store.counts();
        let live = self.store.live(self.clock.now_us());
        gauge(&mut encoder, "keys", "Buckets that are not full again", whole(live as u64))?;
        gauge(
            &mut encoder,
            "keys_max",
            "Buckets that memory is made for; a quarter more fit",
            whole(self.store.max_keys() as u64),
        )?;
        counter(&mut encoder, "evictions", "Live buckets that had to go for others", counts.evicted)?;
        counter(&mut encoder, "forgiven_units", "Units that evicted buckets had used", counts.forgiven)?;
        counter(
            &mut encoder,
            "overflowed",
            "Charges of newcomers that were judged by a shared bucket",
            counts.overflowed,
        )?;
        counter(
            &mut encoder,
            "coarsened",
            "Admissions of sliding logs that joined the one before, for want of memory",
            counts.coarsened,
        )?;

        let reloads = &self.reloads;
        let read = [("done", reloads.done.load(Relaxed)), ("refused", reloads.refused.load(Relaxed))];
        family(&mut encoder, "policy_reloads", "Policies read after the first", "result", &read)?;
        let since = whole(reloads.since_s.load(Relaxed));
        gauge(&mut encoder, "policy_since_timestamp_seconds", "When the policy in force came", since)?;
        if let Some(lost) = &self.lost_lines {
            counter(&mut encoder, "access_log_lost_lines", "Lines that could not be written", lost.load(Relaxed))?;
        }
        gauge(
            &mut encoder,
            "clock_gap_microseconds",
            "How far the wall clock is ahead of the limiter's",
            self.clock.gap_us(),
        )?;
        let mut build = encoder.encode_descriptor("build", "The version that runs", None, MetricType::Info)?;
        build.encode_info(&[("version", env!("CARGO_PKG_VERSION"))])
    }
}

fn whole(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn gauge(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: i64) -> fmt::Result {
    ConstGauge::new(value).encode(encoder.encode_descriptor(name, help, None, ConstGauge::<i64>::TYPE)?)
}

fn counter(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    ConstCounter::new(value).encode(encoder.encode_descriptor(name, help, None, ConstCounter::<u64>::TYPE)?)
}

/// Counters of one name that differ in one label.
fn family(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    label: &str,
    values: &[(&str, u64)],
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (value, count) in values {
        let labels = [(label, *value)];
        ConstCounter::new(*count).encode(metric.encode_family(&labels)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bucket_of_a_histogram_is_named_as_readers_expect() {
        let metrics = Arc::new(Metrics {
            workers: vec![Arc::default()],
            reloads: Arc::default(),
            lost_lines: None,
            store: Arc::new(Memory::new(10).expect("a store")),
            clock: Arc::default(),
        });
        let text = metrics.text();
        assert!(text.contains("tope_decision_duration_seconds_bucket{le=\"+Inf\"} 0\n"), "{text}");
    }
}
