//! Requests whose answers have not ended yet, in the log's time: the next line is judged when those that ended before it
//! have given their places back.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use tope::Judgement;

/// What requests under way hold, the first to end on top.
#[derive(Debug, Default)]
pub(super) struct Flight(BinaryHeap<UnderWay>);

#[derive(Debug)]
struct UnderWay {
    ends_us: u64,
    judgement: Judgement,
}

impl Flight {
    /// A request is under way until `ends_us`.
    pub(super) fn add(&mut self, ends_us: u64, judgement: Judgement) {
        self.0.push(UnderWay { ends_us, judgement });
    }

    /// Takes out one that has ended at `now_us` or before, and says when.
    pub(super) fn ended(&mut self, now_us: u64) -> Option<(u64, Judgement)> {
        let first = self.0.peek().filter(|first| first.ends_us <= now_us)?.ends_us;
        self.0.pop().map(|under_way| (first, under_way.judgement))
    }
}

impl Ord for UnderWay {
    fn cmp(&self, other: &Self) -> Ordering {
        other.ends_us.cmp(&self.ends_us)
    }
}

impl PartialOrd for UnderWay {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for UnderWay {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for UnderWay {}
