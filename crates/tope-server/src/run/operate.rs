//! Signals, reloads, the state file, the admin listener: all that is not a request, on a thread of its own.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Interval, MissedTickBehavior, interval};
use tope::core::Algorithm;
use tope::{Budget, Policy};

use super::forward::Forward;
use super::{GatewayLimiter, Options, in_force};
use crate::admin::Admin;
use crate::load;
use crate::reload::{self, Watch};
use crate::settings::Settings;
use crate::shutdown::{Phase, Shutdown, Signals};
use crate::state::{self, StateFile};
use crate::talk;
use crate::telemetry::exposition::Metrics;

/// A clock this far from the wall clock is said so, once in a while. Microseconds.
const CLOCK_GAP_US: u64 = 1_000_000;

/// Everything that the operating side needs.
pub(super) struct Operation {
    pub(super) options: Options,
    pub(super) settings: Settings,
    pub(super) limiter: Arc<GatewayLimiter>,
    pub(super) forwards: Vec<Forward>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) state: Option<StateFile>,
    pub(super) shutdown: Shutdown,
}

/// The thread of the operating side.
#[derive(Debug)]
pub(super) struct Operating(JoinHandle<()>);

impl Operating {
    /// Waits for its end, which follows that of the program's.
    pub(super) fn finish(self) {
        // A thread that panicked has said so already.
        let _ = self.0.join();
    }
}

impl Operation {
    /// Starts the thread. Once this has returned, no signal that it follows kills the program.
    pub(super) fn start(self, admin: Admin, watch: Watch) -> io::Result<Operating> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let signals = runtime.block_on(async { io::Result::Ok((signal(SignalKind::hangup())?, Signals::new()?)) })?;
        let run = move || runtime.block_on(self.run(admin, watch, signals));
        std::thread::Builder::new().name("operate".into()).spawn(run).map(Operating)
    }

    async fn run(mut self, admin: Admin, mut watch: Watch, (mut hangup, signals): (Signal, Signals)) {
        let since = self.metrics.clock.now_us() / 1_000_000;
        self.metrics.reloads.since_s.store(since, Relaxed);
        let shutdown = self.shutdown.clone();
        let serving = tokio::spawn(admin.serve(Arc::clone(&self.metrics), shutdown.clone()));
        let following = tokio::spawn({
            let shutdown = shutdown.clone();
            async move { shutdown.follow(signals).await }
        });
        let (mut look, mut save) = (every(reload::EVERY), every(state::EVERY));
        save.reset();
        loop {
            tokio::select! {
                () = shutdown.reached(Phase::Ending) => break,
                _ = look.tick() => {
                    if watch.changed() {
                        watch = self.reload(&watch);
                    }
                }
                Some(()) = hangup.recv() => watch = self.reload(&watch),
                _ = save.tick() => {
                    self.save();
                    self.mind_the_clock();
                }
            }
        }
        self.save();
        following.abort();
        serving.abort();
    }

    /// Reads the policy again and puts it in force whole, or keeps the one in force; returns the files to watch.
    fn reload(&mut self, before: &Watch) -> Watch {
        let file = &self.options.file;
        let reloads = &self.metrics.reloads;
        let (loaded, watch) = Watch::read(before.paths().to_vec(), || {
            let loaded = load::policy(file);
            // Which files a broken policy names can't be known: those of the one in force are watched too.
            let files = loaded.as_ref().map_or_else(|_| self.files_in_force(), |loaded| loaded.files(file));
            (loaded, files)
        });
        let loaded = match loaded {
            Ok(loaded) => loaded,
            Err(error) => {
                reloads.refused.fetch_add(1, Relaxed);
                talk::error(&error);
                talk::say("the policy in force stays\n");
                return watch;
            }
        };
        let settings = loaded.settings.clone();
        let before = self.limiter.policy();
        if let Err(error) = self.limiter.enforce(in_force(loaded, self.options.shadow)) {
            reloads.refused.fetch_add(1, Relaxed);
            talk::error(&error.into());
            talk::say("the policy in force stays\n");
            return watch;
        }
        reloads.done.fetch_add(1, Relaxed);
        reloads.since_s.store(self.metrics.clock.now_us() / 1_000_000, Relaxed);
        talk::say(&format!("{} is in force\n", file.display()));
        for news in fresh_starts(&before, &self.limiter.policy()) {
            talk::say(&format!("note: {news}\n"));
        }
        self.apply(settings);
        watch
    }

    fn files_in_force(&self) -> Vec<PathBuf> {
        load::files(&self.options.file, &self.limiter.policy())
    }

    /// What a running gateway can change about itself, and what it can't.
    fn apply(&mut self, settings: Settings) {
        let before = &self.settings;
        for (field, changed) in [
            ("listen", settings.listen != before.listen && self.options.listen.is_none()),
            ("admin.listen", settings.admin != before.admin),
            ("timeouts.header", settings.header_timeout != before.header_timeout),
            ("timeouts.idle", settings.idle_timeout != before.idle_timeout),
            ("log.access", settings.access_log != before.access_log),
            ("memory.max_keys", settings.max_keys != before.max_keys),
            ("memory.file", settings.memory_file != before.memory_file),
        ] {
            if changed {
                talk::say(&format!("warning: the change of `{field}` waits for a restart\n"));
            }
        }
        let elsewhere = settings.upstreams != before.upstreams || settings.upstream_timeout != before.upstream_timeout;
        if elsewhere && !settings.upstreams.is_empty() {
            self.forwards.iter().for_each(|forward| forward.replace(&settings));
            (self.settings.upstreams, self.settings.upstream_timeout) = (settings.upstreams, settings.upstream_timeout);
        }
    }

    fn save(&self) {
        let Some(state) = &self.state else { return };
        if let Err(error) = state.save(&self.metrics.store, self.metrics.clock.now_us()) {
            talk::error(
                &anyhow::Error::new(error).context("memory.file can't be written; the last one is still there"),
            );
        }
    }

    fn mind_the_clock(&self) {
        let gap = self.metrics.clock.gap_us();
        if gap.unsigned_abs() > CLOCK_GAP_US {
            let seconds = gap / 1_000_000;
            talk::say(&format!("warning: the wall clock is {seconds} s ahead and is followed at 1 ms a second\n"));
        }
    }
}

fn every(period: std::time::Duration) -> Interval {
    let mut interval = interval(period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

/// The store forgets a bucket when it is full again, not when its limit goes: nobody gains by a limit that was taken
/// out for a minute.
const BEFORE: &str = "what was used under this name in this way before still counts";

/// The limits whose buckets can't be carried over: new names, new algorithms, new window lengths.
fn fresh_starts(before: &Policy, now: &Policy) -> Vec<String> {
    let by_name = |policy: &Policy| {
        let mut budgets: BTreeMap<String, Vec<Budget>> = BTreeMap::new();
        for budget in &policy.budgets {
            budgets.entry(budget.name.clone()).or_default().push(budget.clone());
        }
        budgets
    };
    let old = by_name(before);
    let mut news = Vec::new();
    for (name, budgets) in by_name(now) {
        let Some(old) = old.get(&name) else {
            news.push(format!("`{name}` is new and begins with full budgets; {BEFORE}"));
            continue;
        };
        let carried = |budget: &Budget| {
            old.iter().any(|old| {
                let algorithm = budget.quota.algorithm();
                let windows = algorithm != Algorithm::TokenBucket && !algorithm.is_log();
                old.quota.algorithm() == algorithm && !(windows && old.quota.period() != budget.quota.period())
            })
        };
        if !budgets.iter().all(carried) {
            news.push(format!("`{name}` counts in another way and begins with full budgets; {BEFORE}"));
        }
    }
    news
}
