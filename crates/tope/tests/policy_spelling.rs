//! A pattern and a request are brought to one form.

use proptest::prelude::*;
use tope::http::path::{EncodedSlash, Rules, normalise};

use tope::Facts;
use tope::facts::Client;
use tope::policy::read;

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
        let text = &format!("paths: {{ case: {case} }}\nlimits: {{ a: {{ match: '{text}', by: ip, rate: 1/s }} }}");
        let policy = read(text, "policy.yaml", &()).unwrap_or_else(|errors| panic!("{errors}"));
        let headers = http::HeaderMap::new();
        let facts = Facts {
            method: "GET",
            path: &normal.matched,
            other_path: None,
            host: "",
            query: None,
            headers: &headers,
            address: None,
            client: Client { name: None, plan: 0 },
            preflight: false,
            body: None,
            cost: None,
        };
        prop_assert_eq!(policy.charges(&facts).budgets().len(), 1, "{} is {}", path, facts.path);
    }
}
