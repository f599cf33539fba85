//! The order of our own access log. Its lines are written when answers end; they are judged in the order in which the
//! store judged them, which `seq` counts without gaps from 1.

use std::collections::{BTreeMap, VecDeque};

/// So many lines are held back at most for one that is yet to come.
pub const MOST: usize = 1_000_000;

/// And so many of their bytes.
const MOST_BYTES: usize = 64 << 20;

/// No two lines of one run of the server are this far out of order in both their number and their time.
const APART_US: u64 = 1_000_000;

/// A line that waits for its turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Which file.
    pub file: usize,
    /// Its number there.
    pub line: u64,
    /// When it arrived.
    pub time_us: u64,
    /// Its bytes.
    pub bytes: Box<[u8]>,
}

/// Puts lines in order.
#[derive(Debug)]
pub struct Order {
    next: u64,
    passed_us: u64,
    held: BTreeMap<u64, Held>,
    ready: VecDeque<Held>,
    most: usize,
    bytes: usize,
    most_bytes: usize,
    restarts: u64,
}

/// What becomes of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It is its turn.
    Now,
    /// It waits: hand it to [`Order::hold`].
    Later,
}

impl Order {
    /// Holds back at most so many lines, and 64 MiB of them.
    pub fn new(most: usize) -> Self {
        Self {
            next: 1,
            passed_us: 0,
            held: BTreeMap::new(),
            ready: VecDeque::new(),
            most,
            bytes: 0,
            most_bytes: MOST_BYTES,
            restarts: 0,
        }
    }

    /// How often the numbers began anew: another run of the server.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Asks for the turn of a line. All that is [`ready`](Self::ready) comes before it.
    pub fn turn(&mut self, seq: u64, time_us: u64) -> Turn {
        if seq == 0 {
            return Turn::Now; // no limit applied to it: its place changes nothing
        }
        if self.begins_anew(seq, time_us) {
            self.finish();
            self.restarts += 1;
            (self.next, self.passed_us) = (1, 0);
        }
        if seq < self.next {
            return Turn::Now; // others went before it because too many waited
        }
        if seq == self.next && self.held.is_empty() && self.ready.is_empty() {
            self.next = self.next.saturating_add(1);
            self.passed_us = self.passed_us.max(time_us);
            return Turn::Now;
        }
        Turn::Later
    }

    /// Keeps a line until it is its turn.
    pub fn hold(&mut self, seq: u64, held: Held) {
        self.bytes += held.bytes.len();
        if let Some(twin) = self.held.insert(seq, held) {
            self.bytes -= twin.bytes.len();
            self.ready.push_back(twin);
        }
        while self.held.first_key_value().is_some_and(|(first, _)| *first == self.next || self.too_much()) {
            self.pass_first();
        }
    }

    /// The next line whose turn it is among those that waited.
    pub fn ready(&mut self) -> Option<Held> {
        self.ready.pop_front()
    }

    /// No line is yet to come: all that wait are ready.
    pub fn finish(&mut self) {
        while !self.held.is_empty() {
            self.pass_first();
        }
    }

    fn too_much(&self) -> bool {
        self.held.len() > self.most || self.bytes > self.most_bytes
    }

    fn pass_first(&mut self) {
        if let Some((seq, held)) = self.held.pop_first() {
            self.next = seq.saturating_add(1);
            self.bytes -= held.bytes.len();
            self.passed_us = self.passed_us.max(held.time_us);
            self.ready.push_back(held);
        }
    }

    /// A line with a lower number and a later time than others is of another run.
    fn begins_anew(&self, seq: u64, time_us: u64) -> bool {
        let later = |than_us: u64| time_us > than_us.saturating_add(APART_US);
        if let Some((first, held)) = self.held.first_key_value() {
            return seq <= *first && later(held.time_us);
        }
        seq < self.next && later(self.passed_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order in which lines `(seq, time in seconds)` are judged, by their numbers in the log.
    fn judged(most: usize, log: &[(u64, u64)]) -> (Vec<u64>, u64) {
        let mut order = Order::new(most);
        let mut out = Vec::new();
        for (line, (seq, time_s)) in (1..).zip(log) {
            let time_us = time_s * 1_000_000;
            let turn = order.turn(*seq, time_us);
            while let Some(held) = order.ready() {
                out.push(held.line);
            }
            match turn {
                Turn::Now => out.push(line),
                Turn::Later => order.hold(*seq, Held { file: 0, line, time_us, bytes: Box::default() }),
            }
            while let Some(held) = order.ready() {
                out.push(held.line);
            }
        }
        order.finish();
        while let Some(held) = order.ready() {
            out.push(held.line);
        }
        (out, order.restarts())
    }

    #[test]
    fn lines_are_judged_by_seq() {
        assert_eq!(judged(10, &[(1, 1), (2, 1), (3, 1)]), (vec![1, 2, 3], 0));
        assert_eq!(judged(10, &[(3, 1), (1, 1), (2, 1)]), (vec![2, 3, 1], 0));
        assert_eq!(judged(10, &[(2, 9), (1, 1), (4, 9), (3, 9)]), (vec![2, 1, 4, 3], 0));
    }

    #[test]
    fn a_log_that_begins_in_the_middle_or_has_a_gap_is_still_in_order() {
        assert_eq!(judged(10, &[(72, 1), (71, 1), (70, 1), (73, 1)]), (vec![3, 2, 1, 4], 0));
        assert_eq!(judged(10, &[(1, 1), (4, 1), (3, 1), (5, 1)]), (vec![1, 3, 2, 4], 0));
        assert_eq!(judged(2, &[(1, 1), (3, 1), (4, 1), (5, 1), (6, 1)]), (vec![1, 2, 3, 4, 5], 0));
    }

    #[test]
    fn what_no_limit_applied_to_waits_for_nothing() {
        assert_eq!(judged(10, &[(2, 1), (0, 1), (1, 1)]), (vec![2, 3, 1], 0));
    }

    #[test]
    fn a_restart_is_another_run() {
        assert_eq!(judged(10, &[(1, 1), (2, 2), (1, 60), (2, 60)]), (vec![1, 2, 3, 4], 1));
        assert_eq!(judged(10, &[(1, 1), (2, 2), (3, 3), (2, 60), (1, 60)]), (vec![1, 2, 3, 5, 4], 1));
        assert_eq!(judged(10, &[(70, 1), (72, 2), (1, 60), (2, 60)]), (vec![1, 2, 3, 4], 1));
    }

    #[test]
    fn a_line_that_is_too_late_is_no_restart() {
        assert_eq!(judged(1, &[(2, 1), (3, 1), (4, 1), (1, 1), (5, 1)]), (vec![1, 2, 3, 4, 5], 0));
    }

    #[test]
    fn lines_that_wait_are_bounded_by_their_bytes() {
        let mut order = Order { most_bytes: 100, ..Order::new(1_000) };
        for seq in (2..1_000).step_by(2) {
            assert_eq!(order.turn(seq, 1), Turn::Later);
            order.hold(seq, Held { file: 0, line: seq, time_us: 1, bytes: vec![0; 40].into() });
            assert!(order.bytes <= 100 && order.bytes == 40 * order.held.len(), "{order:?}");
            while order.ready().is_some() {}
        }
        order.finish();
        assert_eq!(order.bytes, 0);
    }

    #[test]
    fn the_last_number_of_all_is_a_number() {
        assert_eq!(judged(10, &[(u64::MAX, 1), (1, 1), (u64::MAX, 1)]), (vec![2, 1, 3], 0));
    }
}
