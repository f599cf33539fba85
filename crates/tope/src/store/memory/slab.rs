//! The older admissions of sliding logs: blocks of one cache line, bought at start, shared by all keys.
//!
//! A log's newest admission stands in its place in the table; what is older hangs there as a ring of blocks, oldest
//! first, known by its last block. When no block is left, an admission joins the newest one and counts from now on:
//! the log stays strict and only becomes coarser.

use tope_core::algorithm::sliding_log::Admission;

/// Admissions in a block.
pub(super) const BLOCK: usize = 4;

/// The ring of a log that has no older admissions.
pub(super) const NO_RING: u32 = 0;

/// 64 bytes: four admissions.
#[derive(Clone, Copy, Default)]
struct Block {
    at_us: [u64; BLOCK],
    units: [u32; BLOCK],
    /// The next block of the ring; after the last the first. In a free block, the next free one.
    next: u32,
    /// In the last block of a ring: the sum of all its units.
    sum: u32,
    first: u8,
    end: u8,
}

impl Block {
    /// Nothing is left of its admissions. A block of a ring never is: then it goes back.
    fn is_spent(&self) -> bool {
        self.units[..usize::from(self.end)].iter().all(|units| *units == 0)
    }
}

/// Blocks of one share of the keys.
#[derive(Default)]
pub(super) struct Slab {
    /// Reserved when a policy is adopted, used as keys come.
    blocks: Vec<Block>,
    /// The most blocks.
    most: usize,
    free: u32,
}

impl Slab {
    /// Reserves room for this many blocks, or keeps what it has.
    pub(super) fn hold(&mut self, most: usize) {
        if most > self.most {
            self.most = most;
            self.blocks.reserve_exact(most - self.blocks.len());
        }
    }

    /// The units of a ring.
    pub(super) fn sum(&self, ring: u32) -> u32 {
        if ring == NO_RING { 0 } else { self.at(ring).sum }
    }

    /// The admissions of a ring, oldest first.
    pub(super) fn iter(&self, ring: u32) -> impl Iterator<Item = Admission> {
        let mut block = if ring == NO_RING { NO_RING } else { self.at(ring).next };
        let mut i = if block == NO_RING { 0 } else { usize::from(self.at(block).first) };
        let all = std::iter::from_fn(move || {
            if block == NO_RING {
                return None;
            }
            let here = self.at(block);
            let admission = Admission { at_us: here.at_us[i], units: u64::from(here.units[i]) };
            i += 1;
            if i == usize::from(here.end) {
                block = if block == ring { NO_RING } else { here.next };
                i = if block == NO_RING { 0 } else { usize::from(self.at(block).first) };
            }
            Some(admission)
        });
        // What was corrected to nothing stays in its block until all of that is spent.
        all.filter(|admission| admission.units > 0)
    }

    /// Adds the newest admission of a ring. `None` when there is no block for it.
    pub(super) fn push(&mut self, ring: u32, at_us: u64, units: u32) -> Option<u32> {
        let last = if ring != NO_RING && usize::from(self.at(ring).end) < BLOCK { ring } else { self.append(ring)? };
        let block = self.at_mut(last);
        let end = usize::from(block.end);
        block.at_us[end] = at_us;
        block.units[end] = units;
        block.end += 1;
        block.sum += units;
        Some(last)
    }

    /// Takes units away, oldest first; returns the ring that is left.
    pub(super) fn trim(&mut self, mut ring: u32, units: u32) -> u32 {
        let mut left = units.min(self.sum(ring));
        while left > 0 {
            let first = self.at(ring).next;
            let head = self.at_mut(first);
            let oldest = &mut head.units[usize::from(head.first)];
            let gone = left.min(*oldest);
            *oldest -= gone;
            left -= gone;
            self.at_mut(ring).sum -= gone;
            ring = self.drop_spent(ring);
        }
        ring
    }

    /// Takes the newest admission out of a ring: what it was, and the ring that is left.
    pub(super) fn pop(&mut self, ring: u32) -> Option<(Admission, u32)> {
        if ring == NO_RING {
            return None;
        }
        let last = self.at(ring);
        let i = (0..usize::from(last.end)).rev().find(|i| last.units[*i] > 0)?;
        let newest = Admission { at_us: last.at_us[i], units: u64::from(last.units[i]) };
        let last = self.at_mut(ring);
        last.sum -= last.units[i];
        last.units[i] = 0;
        // What comes next in this block comes after what is left of it.
        last.end = u8::try_from(i).expect("a block has four admissions");
        Some((newest, if last.is_spent() { self.unlink(ring, ring) } else { ring }))
    }

    /// Changes the units of the admission of exactly this moment; returns the ring that is left. Looks at the ring's
    /// blocks in turn and moves none.
    pub(super) fn correct(&mut self, ring: u32, at_us: u64, change: impl FnOnce(u32) -> u32) -> u32 {
        let mut block = if ring == NO_RING { return ring } else { self.at(ring).next };
        loop {
            let here = self.at_mut(block);
            let own = (0..usize::from(here.end)).find(|i| here.at_us[*i] == at_us && here.units[*i] > 0);
            if let Some(i) = own {
                let old = here.units[i];
                let new = change(old);
                here.units[i] = new;
                let spent = here.is_spent();
                let last = self.at_mut(ring);
                last.sum = last.sum - old + new;
                return if spent { self.unlink(ring, block) } else { ring };
            }
            if block == ring {
                return ring;
            }
            block = here.next;
        }
    }

    /// Gives all blocks of a ring back.
    pub(super) fn release(&mut self, ring: u32) {
        if ring != NO_RING {
            let free = self.free;
            self.free = std::mem::replace(&mut self.at_mut(ring).next, free);
        }
    }

    /// Gives the first block of a ring back when its admissions are spent, and skips spent ones.
    fn drop_spent(&mut self, ring: u32) -> u32 {
        let (first, free) = (self.at(ring).next, self.free);
        let head = self.at_mut(first);
        if head.units[usize::from(head.first)] > 0 {
            return ring;
        }
        while head.first < head.end && head.units[usize::from(head.first)] == 0 {
            head.first += 1;
        }
        if head.first < head.end {
            return ring;
        }
        let second = std::mem::replace(&mut head.next, free);
        self.free = first;
        if first == ring {
            return NO_RING;
        }
        self.at_mut(ring).next = second;
        ring
    }

    /// Takes a block that is spent out of a ring and gives it back; returns the ring that is left.
    fn unlink(&mut self, ring: u32, block: u32) -> u32 {
        let mut before = ring;
        while self.at(before).next != block {
            before = self.at(before).next;
        }
        let (sum, free) = (self.at(ring).sum, self.free);
        let next = std::mem::replace(&mut self.at_mut(block).next, free);
        self.free = block;
        if before == block {
            return NO_RING;
        }
        self.at_mut(before).next = next;
        if block != ring {
            return ring;
        }
        self.at_mut(before).sum = sum;
        before
    }

    /// Makes a new last block.
    fn append(&mut self, ring: u32) -> Option<u32> {
        let fresh = if self.free != NO_RING {
            let fresh = self.free;
            self.free = self.at(fresh).next;
            fresh
        } else if self.blocks.len() < self.most {
            self.blocks.push(Block::default());
            u32::try_from(self.blocks.len()).ok()?
        } else {
            return None;
        };
        let (next, sum) = if ring == NO_RING { (fresh, 0) } else { (self.at(ring).next, self.at(ring).sum) };
        *self.at_mut(fresh) = Block { next, sum, ..Block::default() };
        if ring != NO_RING {
            self.at_mut(ring).next = fresh;
        }
        Some(fresh)
    }

    fn at(&self, block: u32) -> &Block {
        &self.blocks[block as usize - 1]
    }

    fn at_mut(&mut self, block: u32) -> &mut Block {
        &mut self.blocks[block as usize - 1]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_block_is_a_cache_line() {
        assert_eq!(size_of::<Block>(), 64);
    }

    #[derive(Clone, Debug)]
    enum Act {
        Push(u32),
        Trim(u32),
        Correct(usize, u32),
        Pop,
        Release,
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![
            6 => (1..9_u32).prop_map(Act::Push),
            3 => (0..20_u32).prop_map(Act::Trim),
            3 => (0..20_usize, 0..3_u32).prop_map(|(which, units)| Act::Correct(which, units)),
            1 => Just(Act::Pop),
            1 => Just(Act::Release),
        ]
    }

    proptest! {
        /// Two rings in one small slab behave as two vectors, and no block is ever lost.
        #[test]
        fn rings_are_queues(acts in prop::collection::vec((0..2_usize, act()), 1..300)) {
            let mut slab = Slab::default();
            slab.hold(8);
            let (mut rings, mut models) = ([NO_RING; 2], [const { Vec::<(u64, u32)>::new() }; 2]);
            for (now, (which, act)) in acts.into_iter().enumerate() {
                let (ring, model) = (&mut rings[which], &mut models[which]);
                match act {
                    Act::Push(units) => if let Some(pushed) = slab.push(*ring, now as u64, units) {
                        *ring = pushed;
                        model.push((now as u64, units));
                    },
                    Act::Trim(mut units) => {
                        *ring = slab.trim(*ring, units);
                        model.retain_mut(|(_, n)| {
                            let gone = units.min(*n);
                            units -= gone;
                            *n -= gone;
                            *n > 0
                        });
                    }
                    Act::Correct(which, units) => {
                        let at = model.get(which).map_or(u64::MAX, |(at, _)| *at);
                        *ring = slab.correct(*ring, at, |_| units);
                        model.iter_mut().filter(|(own, _)| *own == at).for_each(|(_, n)| *n = units);
                        model.retain(|(_, n)| *n > 0);
                    }
                    Act::Pop => {
                        let popped = slab.pop(*ring);
                        prop_assert_eq!(popped.map(|(a, _)| (a.at_us, a.units)), model.pop().map(|(at, n)| (at, u64::from(n))));
                        *ring = popped.map_or(*ring, |(_, ring)| ring);
                    }
                    Act::Release => {
                        slab.release(*ring);
                        *ring = NO_RING;
                        model.clear();
                    }
                }
                let seen: Vec<(u64, u32)> = slab.iter(*ring).map(|a| (a.at_us, u32::try_from(a.units).unwrap())).collect();
                prop_assert_eq!(&seen, &*model);
                prop_assert_eq!(slab.sum(*ring), model.iter().map(|(_, n)| n).sum::<u32>());
            }
            for ring in rings {
                slab.release(ring);
            }
            let mut ring = NO_RING;
            for at in 0..8 * BLOCK as u64 {
                ring = slab.push(ring, at, 1).expect("every block is free again");
            }
            prop_assert_eq!(slab.push(ring, 99, 1), None);
        }
    }
}
