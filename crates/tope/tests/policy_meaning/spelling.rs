//! A pattern matches its own path, however either is spelt.

use proptest::prelude::*;
use tope::http::path::{EncodedSlash, Rules, normalise};

use super::{policy, request};

/// Segments as somebody may write them, and as somebody may ask for them.
fn segment() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-zA-Z0-9._~-]{1,2}",
        "[!$&'()+,=@]",
        "%[46][0-9a-fA-F]",
        "%[2357][0-9a-fA-F]",
        "%[c-fC-F][0-9a-fA-F]"
    ];
    proptest::collection::vec(piece, 1..4).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn a_pattern_matches_its_own_path_however_it_is_spelt(
        segments in proptest::collection::vec(segment(), 1..4),
        ignore_case: bool,
        slash: bool,
    ) {
        let rules = Rules { ignore_case, encoded_slash: EncodedSlash::Reject };
        let path = format!("/{}{}", segments.join("/"), if slash { "/" } else { "" });
        let Ok(normal) = normalise(&path, rules) else { return Ok(()) };
        // Dot segments change how many there are; a pattern has none.
        prop_assume!(!segments.iter().any(|segment| normalise(&format!("/{segment}"), rules).is_ok_and(|one| one.matched == "/")));
        let case = if ignore_case { "ignore" } else { "sensitive" };
        let text = path.replace('\'', "''").replace('$', "$$");
        let policy = policy(&format!("paths: {{ case: {case} }}\nlimits: {{ a: {{ match: '{text}', by: ip, rate: 1/s }} }}"));
        let mut request = request("GET /");
        request.path = normal.matched.into_owned();
        prop_assert_eq!(request.meets(&policy), ["a"], "{} is {}", path, request.path);
    }
}
