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
        std::iter::from_fn(move || {
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
        })
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
        let newest = self.iter(ring).last()?;
        let units = u32::try_from(newest.units).expect("units of a block have 32 bits");
        let ring = self.rebuild(ring, |at, n| if at == newest.at_us { n - units } else { n });
        Some((newest, ring))
    }

    /// Rewrites the units of every admission and drops those of none; returns the ring that is left. `change` must not
    /// make more admissions than there were.
    pub(super) fn rebuild(&mut self, ring: u32, change: impl Fn(u64, u32) -> u32) -> u32 {
        let kept: Vec<(u64, u32)> = self
            .iter(ring)
            .map(|old| (old.at_us, change(old.at_us, u32::try_from(old.units).expect("units of a block have 32 bits"))))
            .filter(|(_, units)| *units > 0)
            .collect();
        self.release(ring);
        kept.into_iter()
            .fold(NO_RING, |ring, (at, units)| self.push(ring, at, units).expect("no more than were released"))
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
        head.first += 1;
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
        Pop,
        Release,
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![
            6 => (1..9_u32).prop_map(Act::Push),
            3 => (0..20_u32).prop_map(Act::Trim),
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
