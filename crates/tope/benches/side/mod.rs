//! Side by side in one run: contenders take turns, round after round, and what is compared is their medians.

use std::hint::black_box;
use std::time::Instant;

/// Nanoseconds a step of one contender, over all rounds.
pub(crate) struct Times(Vec<f64>);

impl Times {
    pub(crate) fn median(&mut self) -> f64 {
        self.0.sort_by(f64::total_cmp);
        self.0[self.0.len() / 2]
    }
}

/// Runs `rounds` rounds in which each contender makes `steps` steps, in turn; returns the times in their order.
pub(crate) fn interleaved<const N: usize>(
    rounds: usize,
    steps: u64,
    mut contenders: [&mut dyn FnMut(u64) -> u64; N],
) -> [Times; N] {
    let mut times = [const { Times(Vec::new()) }; N];
    for round in 0..=rounds {
        for (contender, times) in contenders.iter_mut().zip(&mut times) {
            let start = Instant::now();
            black_box(contender(steps));
            let ns = start.elapsed().as_nanos() as f64 / steps as f64;
            // The first round warms up.
            if round > 0 {
                times.0.push(ns);
            }
        }
    }
    times
}

/// One line of a table: what, ours, theirs, how many times faster, the least that is asked for.
pub(crate) fn line(what: &str, ours: f64, theirs: f64, least: f64) {
    let ratio = theirs / ours;
    let said = if ratio >= least { "" } else { "   BELOW" };
    println!("{what:<44} {ours:>9.1} {theirs:>9.1} {ratio:>7.2}x   at least {least:.1}x{said}");
}
