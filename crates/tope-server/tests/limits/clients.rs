//! Who is calling: keys, plans and names, wherever a request carries them.

use std::process::Command;

use crate::client::{Ask, get};
use crate::support::{Gateway, passed};

const PLANS: &str = "plans: { free: { api: 2/h }, pro: { api: 4/h }, enterprise: { api: 6/h } }\n\
                     limits: { api: { by: client, rate: plan.api } }\n";

/// A request that carries this key.
type Carry<'a> = &'a dyn Fn(&str) -> Ask;

fn keyed(key: &str) -> Ask {
    get("/api").with("X-Api-Key", key)
}

#[test]
fn three_plans_are_three_budgets_and_one_name_is_one() {
    let keys = "keys: { a: { name: ann, plan: free }, b: { name: bob, plan: pro }, c: { name: cy, plan: enterprise }, \
                c2: { name: cy, plan: enterprise } }";
    let gateway = Gateway::start(&format!("clients: {{ header: X-Api-Key, {keys} }}\n{PLANS}"));
    let mut caller = gateway.caller();
    for (key, budget) in [("a", 2), ("b", 4), ("c", 6)] {
        assert_eq!(passed(&mut caller, &keyed(key), budget + 3), budget, "{key}");
    }
    assert_eq!(passed(&mut caller, &keyed("c2"), 2), 0, "two keys of one name share one budget");
    assert_eq!(passed(&mut gateway.caller_from("127.0.0.5"), &keyed("a"), 2), 0, "from wherever it calls");
}

#[test]
fn a_key_that_nobody_knows_is_its_address() {
    let keys = "keys: { good: { name: ann, plan: pro } }";
    let gateway = Gateway::start(&format!("clients: {{ header: X-Api-Key, {keys} }}\n{PLANS}"));
    let mut caller = gateway.caller();
    let random = (0..50).filter(|n| caller.ask(&keyed(&format!("random-{n}"))).status == 200).count();
    assert_eq!(random, 2, "random keys buy nothing beyond the first plan");
    assert_eq!(passed(&mut caller, &get("/api"), 2), 0, "nor is calling without a key another budget");
    assert_eq!(passed(&mut caller, &keyed("good").with("X-Api-Key", "other"), 1), 0, "two keys are none");
    assert_eq!(passed(&mut caller, &keyed(""), 1), 0);
    assert_eq!(passed(&mut caller, &keyed("GOOD"), 1), 0);
    assert_eq!(passed(&mut caller, &keyed("good"), 5), 4, "whom we know is not touched by it");
    assert_eq!(passed(&mut gateway.caller_from("127.0.0.5"), &keyed("random-1"), 3), 2, "another address");
}

#[test]
fn an_exhausted_search_leaves_ping_untouched() {
    let gateway = Gateway::start(
        "limits: { search: { match: /search, by: ip, rate: 2/h }, api: { match: /**, except: /search, by: ip, rate: 3/h } }\n",
    );
    let mut caller = gateway.caller();
    assert_eq!(passed(&mut caller, &get("/search?q=x"), 10), 2);
    assert_eq!(caller.ask(&get("/ping")).number("RateLimit-Remaining"), Some(2));
    assert_eq!(passed(&mut caller, &get("/ping"), 10), 2);
    assert_eq!(passed(&mut caller, &get("/search"), 1), 0);
}

#[test]
fn a_key_is_found_where_the_policy_says() {
    let bearer = |key: &str| get("/api").with("Authorization", &format!("bearer {key}"));
    let cookie = |key: &str| get("/api").with("Cookie", &format!("a=1; sid={key}"));
    let query = |key: &str| get(&format!("/api?x=1&k%65y={key}"));
    let cases: [(&str, Carry<'_>); 3] = [("bearer: true", &bearer), ("cookie: sid", &cookie), ("query: key", &query)];
    for (place, ask) in cases {
        let keys = "keys: { k1: { name: ann, plan: pro }, k2: { name: bob, plan: free } }";
        let gateway = Gateway::start(&format!("clients: {{ {place}, {keys} }}\n{PLANS}"));
        let mut caller = gateway.caller();
        assert_eq!(passed(&mut caller, &ask("other"), 5), 2, "{place}: nobody");
        assert_eq!(passed(&mut caller, &ask("k1"), 5), 4, "{place}");
        assert_eq!(passed(&mut caller, &ask("k2"), 5), 2, "{place}");
    }
}

#[test]
fn a_trusted_header_counts_from_a_trusted_peer_alone() {
    let gateway = Gateway::start(&format!(
        "address: {{ trust: [127.0.0.9] }}\n\
         clients: {{ trusted_header: X-User, keys: {{ k: {{ name: ann, plan: pro }} }} }}\n{PLANS}"
    ));
    let user = |name: &str| get("/api").with("X-User", name);
    let mut stranger = gateway.caller();
    let forged = (0..20).filter(|n| stranger.ask(&user(&format!("user-{n}"))).status == 200).count();
    assert_eq!(forged, 2, "whatever it says, it is one address");
    assert_eq!(passed(&mut stranger, &user("ann"), 1), 0);
    let mut proxy = gateway.caller_from("127.0.0.9");
    assert_eq!(passed(&mut proxy, &user("ann"), 5), 4, "on its plan");
    assert_eq!(passed(&mut proxy, &user("eve"), 5), 2, "on the first plan");
    assert_eq!(passed(&mut proxy, &user("joe"), 5), 2);
}

#[test]
fn keys_in_a_file_are_hashes_made_by_tope_key() {
    let made = Command::new(env!("CARGO_BIN_EXE_tope")).args(["key", "acme", "pro"]).output().unwrap();
    let made = String::from_utf8(made.stdout).unwrap();
    let (key, line) = made.trim_end().split_once('\n').unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("keys.yaml"), format!("{line}\nplain: {{ name: bob, plan: free }}\n")).unwrap();
    let policy = format!("clients: {{ header: X-Api-Key, file: keys.yaml }}\n{PLANS}");
    let gateway = Gateway::start_in(folder.path(), &policy, &[]);
    let mut caller = gateway.caller();
    let hash = line.split_once(": ").unwrap().0;
    assert_eq!(passed(&mut caller, &keyed(hash), 5), 2, "the hash is not the key");
    assert_eq!(passed(&mut caller, &keyed(key), 5), 4);
    assert_eq!(passed(&mut caller, &keyed("plain"), 5), 2);
    let upstream_knows = gateway.ask(&get("/free").with("X-Api-Key", key).with("X-Tope-Client", "forged"));
    assert_eq!(upstream_knows.status, 429);
}

#[test]
fn a_key_is_nowhere_to_be_read() {
    for (place, asks) in [
        ("header: X-Api-Key", [keyed("secret-known"), keyed("secret-unknown")]),
        ("query: key", [get("/api?key=secret-known"), get("/api?key=secret-unknown")]),
    ] {
        let keys = "keys: { secret-known: { plan: free } }";
        let policy = format!("log: {{ access: json }}\nclients: {{ {place}, {keys} }}\n{PLANS}");
        let mut gateway = Gateway::start(&policy);
        let mut caller = gateway.caller();
        for ask in &asks {
            assert_eq!(passed(&mut caller, ask, 3), 2, "{place}");
            let refused = caller.ask(ask);
            let told = format!("{:?} {}", refused.fields, refused.text());
            assert!(!told.contains("secret"), "{told}");
        }
        let metrics = format!("{:?}", gateway.metrics());
        assert!(!metrics.contains("secret"), "{metrics}");
        gateway.reload(&policy.replace("plan: free }", "plan: gold }"));
        assert!(gateway.stop().success());
        let said = gateway.talk(0) + &std::fs::read_to_string(gateway.folder.join("access.log")).unwrap();
        assert!(
            said.contains("there is no plan `gold`") && said.contains("/api") && !said.contains("secret"),
            "{said}"
        );
    }
}
