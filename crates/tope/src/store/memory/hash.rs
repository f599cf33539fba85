//! Which bucket a key names: SipHash-1-3 with a seed of its own for each store, because callers choose keys.
//!
//! A bucket is known by 64 bits. Two of n live keys share a bucket by accident with probability n^2 / 2^65: 3 in
//! 10^8 at a million keys. Without the seed nobody can make it happen on purpose.

use siphasher::sip::SipHasher13;

/// The secrets of one store.
#[derive(Clone, Copy)]
pub(super) struct Seed(pub(super) [u64; 4]);

impl Seed {
    /// A seed that nobody can guess.
    pub(super) fn random() -> Result<Self, getrandom::Error> {
        let mut words = [0; 4];
        for word in &mut words {
            *word = getrandom::u64()?;
        }
        Ok(Self(words))
    }

    /// The hash of the facts that name a bucket.
    #[inline]
    pub(super) fn key(&self, key: &[u8]) -> u64 {
        SipHasher13::new_with_keys(self.0[0], self.0[1]).hash(key)
    }

    /// The hash of a budget's name.
    pub(super) fn label(&self, name: &str) -> u64 {
        SipHasher13::new_with_keys(self.0[2], self.0[3]).hash(name.as_bytes())
    }
}

/// What a bucket is known by: its key within its budget. Both hashes are uniform, so their sum without carry is too.
/// Never [`NEVER_USED`](super::table::NEVER_USED) or [`VACATED`](super::table::VACATED).
#[inline]
pub(super) fn bucket(key: u64, label: u64) -> u64 {
    let hash = key ^ label;
    if hash < 2 { hash + 2 } else { hash }
}

/// A place among `many` for a hash.
#[inline]
pub(super) fn scale(hash: u64, many: usize) -> usize {
    let product = u128::from(hash) * many as u128;
    usize::try_from(product >> 64).expect("below the number of places")
}
