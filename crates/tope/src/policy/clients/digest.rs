//! What is kept of an API key.

use std::fmt;

use sha2::{Digest, Sha256};

/// The SHA-256 of an API key. The key itself is kept nowhere.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyDigest(pub [u8; 32]);

impl KeyDigest {
    /// The digest of a key.
    pub fn of(key: &[u8]) -> Self {
        Self(Sha256::digest(key).into())
    }

    /// The digest that `sha256:HEX` writes.
    pub(in crate::policy) fn from_hex(hex: &str) -> Option<Self> {
        let digits: Vec<u8> =
            hex.chars().map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok())).collect::<Option<_>>()?;
        let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
        (digits.len() == 64).then(|| bytes.try_into().ok().map(Self)).flatten()
    }

    /// The first half in hexadecimal digits: the name of a client that has none.
    pub(in crate::policy) fn short(&self) -> String {
        self.0[..16].iter().fold("key-".to_owned(), |mut text, byte| {
            let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
            text.extend([digit(byte >> 4), digit(byte & 15)]);
            text
        })
    }
}

impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyDigest(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_64_hexadecimal_digits() {
        let hex = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
        assert_eq!(KeyDigest::from_hex(hex), Some(KeyDigest::of(b"hello")));
        assert_eq!(KeyDigest::of(b"hello").short(), format!("key-{}", &hex[..32]));
        for broken in ["", "2cf2", &hex[1..], &format!("{hex}0"), &hex.replace('a', "g"), &hex.replace('a', "ä")] {
            assert_eq!(KeyDigest::from_hex(broken), None, "{broken}");
        }
        assert_eq!(format!("{:?}", KeyDigest::of(b"hello")), "KeyDigest(***)");
    }
}
