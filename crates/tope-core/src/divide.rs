//! Division by a number that is known long before: two multiplications instead of a division.

/// A divisor with what speeds division by it up. The round-up method of Granlund and Montgomery, "Division by
/// Invariant Integers using Multiplication" (PLDI 1994), figure 4.1: exact for every dividend of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Divisor {
    value: u64,
    magic: u64,
    shift: u32,
}

impl Divisor {
    /// A divisor; 0 divides everything to 0, which is what a rate of nothing needs.
    #[expect(clippy::cast_possible_truncation, reason = "the magic number is below 2^64: figure 4.1")]
    pub(crate) const fn new(value: u64) -> Self {
        if value <= 1 {
            return Self { value, magic: 0, shift: 0 };
        }
        let bits = u64::BITS - (value - 1).leading_zeros();
        let power = 1_u128 << bits;
        let magic = ((power - value as u128) << 64) / value as u128 + 1;
        Self { value, magic: magic as u64, shift: bits - 1 }
    }

    #[inline]
    pub(crate) const fn value(self) -> u64 {
        self.value
    }

    #[inline]
    pub(crate) const fn floor(self, dividend: u64) -> u64 {
        if self.value <= 1 {
            return dividend * self.value;
        }
        let high = ((self.magic as u128 * dividend as u128) >> 64) as u64;
        (((dividend - high) >> 1) + high) >> self.shift
    }

    #[inline]
    pub(crate) const fn ceil(self, dividend: u64) -> u64 {
        match dividend.checked_sub(1) {
            Some(less) if self.value > 0 => self.floor(less) + 1,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn divides_as_division_does(dividend in any::<u64>(), value in 1..u64::MAX, small in 0..64_u32, near in 0..64_u32) {
            let value = (value >> small).max(1);
            let divisor = Divisor::new(value);
            let multiple = (dividend / value * value).saturating_sub(1);
            for dividend in [dividend, dividend >> near, value, value - 1, multiple, multiple.saturating_add(1), 0, u64::MAX] {
                prop_assert_eq!(divisor.floor(dividend), dividend / value);
                prop_assert_eq!(divisor.ceil(dividend), dividend.div_ceil(value));
            }
        }
    }
}
