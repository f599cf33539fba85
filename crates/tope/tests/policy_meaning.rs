//! What a policy means: which limits a request meets, whose bucket, how much. Refusals before admissions.

#![allow(clippy::unwrap_used, reason = "a test that unwraps nothing fails")]

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue};
use tope::Facts;
use tope::facts::Client;
use tope::policy::{Errors, Mode, Policy, Surroundings, read};

fn policy(text: &str) -> Policy {
    read(text, "policy.yaml", &()).unwrap_or_else(|errors| panic!("{errors}"))
}

fn refused(text: &str) -> Errors {
    read(text, "policy.yaml", &()).expect_err("it is no policy")
}

/// A request to build facts from.
#[derive(Clone)]
struct Request {
    method: &'static str,
    path: String,
    other_path: Option<&'static str>,
    host: &'static str,
    query: Option<&'static str>,
    headers: HeaderMap,
    address: Option<IpAddr>,
    client: Option<&'static str>,
    plan: u16,
    preflight: bool,
    cost: Option<u32>,
}

fn request(text: &'static str) -> Request {
    let (method, path) = text.split_once(' ').expect("METHOD PATH");
    let address = Some([192, 0, 2, 1].into());
    let path = path.to_owned();
    let (headers, client, plan) = (HeaderMap::new(), None, 0);
    Request {
        method,
        path,
        other_path: None,
        host: "",
        query: None,
        headers,
        address,
        client,
        plan,
        preflight: false,
        cost: None,
    }
}

impl Request {
    fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        self
    }

    fn from(mut self, address: &str) -> Self {
        self.address = Some(address.parse().unwrap());
        self
    }

    fn by(mut self, client: &'static str, plan: u16) -> Self {
        (self.client, self.plan) = (Some(client), plan);
        self
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            method: self.method,
            path: &self.path,
            other_path: self.other_path,
            host: self.host,
            query: self.query,
            headers: &self.headers,
            address: self.address,
            client: Client { name: self.client, plan: self.plan },
            preflight: self.preflight,
            body: None,
            cost: self.cost,
        }
    }

    /// What it pays: name, cost, key.
    fn pays(&self, policy: &Policy) -> Vec<(String, u32, Vec<u8>)> {
        let charges = policy.charges(&self.facts());
        let resolved = charges.resolve(policy);
        resolved.iter().map(|charge| (charge.budget.name.clone(), charge.cost, charge.key.to_vec())).collect()
    }

    fn meets(&self, policy: &Policy) -> Vec<String> {
        self.pays(policy).into_iter().map(|(name, ..)| name).collect()
    }

    fn key(&self, policy: &Policy) -> Vec<u8> {
        self.pays(policy).swap_remove(0).2
    }
}

const SPECIFICATION: &str = "
upstream: http://127.0.0.1:3000
clients: { header: X-Api-Key, keys: { k1: { name: acme, plan: free }, k2: { name: acme2, plan: pro } } }
plans:
  free:       { api: 60/min,             search: 5/min }
  pro:        { api: 600/min burst 100,  search: 60/min }
  enterprise: { api: 6000/min burst 1k,  search: 600/min }
limits:
  login:   { match: POST /login,  by: ip,      rate: 5/min }
  api:     { match: /api/**,      by: client,  rate: plan.api,  except: /api/search }
  search:  { match: /api/search,  by: client,  rate: plan.search }
  ceiling: { rate: 5000/s }
";

#[test]
fn the_policy_of_the_specification() {
    let policy = policy(SPECIFICATION);
    assert_eq!(request("POST /login").meets(&policy), ["login", "ceiling"]);
    assert_eq!(request("GET /login").meets(&policy), ["ceiling"]);
    assert_eq!(request("GET /api").meets(&policy), ["api", "ceiling"]);
    assert_eq!(request("GET /api/a/b").meets(&policy), ["api", "ceiling"]);
    assert_eq!(request("GET /apis").meets(&policy), ["ceiling"]);
    assert_eq!(request("HEAD /api/search").meets(&policy), ["search", "ceiling"]);
    assert_eq!(request("OPTIONS *").meets(&policy), ["ceiling"]);
    let capacity = |plan| policy.budgets[usize::from(policy.limits()[1].budgets(plan)[0])].quota.capacity();
    assert_eq!([capacity(0), capacity(1), capacity(2)], [60, 100, 1000]);
    assert!(policy.warnings().is_empty(), "{:?}", policy.warnings());
}

#[test]
fn a_key_that_is_not_known_is_nobody() {
    let policy = policy(SPECIFICATION);
    let who = |values: &[&'static str]| {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("x-api-key", HeaderValue::from_static(value));
        }
        let client = policy.identify(&headers, None, false);
        (client.name.map(str::to_owned), client.plan)
    };
    assert_eq!(who(&["random"]), (None, 0));
    assert_eq!(who(&[]), (None, 0));
    assert_eq!(who(&[""]), (None, 0));
    assert_eq!(who(&["k1", "k2"]), (None, 0));
    assert_eq!(who(&["k2"]), (Some("acme2".to_owned()), 1));
    // Fresh keys of one address are one bucket.
    let a = request("GET /api/x").header("x-api-key", "random1").pays(&policy);
    let b = request("GET /api/x").header("x-api-key", "random2").pays(&policy);
    assert_eq!(a, b);
}

#[test]
fn every_place_of_a_key_is_read() {
    let with = |source: &str| {
        policy(&format!(
            "clients: {{ {source}, keys: {{ k1: {{ name: acme }} }} }}\naddress: {{ trust: [10.0.0.0/8] }}\n"
        ))
    };
    let name = |policy: &Policy, header: (&'static str, &'static str), query, trusted| {
        let headers = request("GET /").header(header.0, header.1).headers;
        policy.identify(&headers, query, trusted).name.map(str::to_owned)
    };
    let acme = Some("acme".to_owned());
    let bearer = with("bearer: true");
    assert_eq!(name(&bearer, ("authorization", "bearer k1"), None, false), acme);
    assert_eq!(name(&bearer, ("authorization", "Basic k1"), None, false), None);
    assert_eq!(name(&bearer, ("authorization", "Bearer k2"), None, false), None);
    let cookie = with("cookie: sid");
    assert_eq!(name(&cookie, ("cookie", "a=b; sid=k1"), None, false), acme);
    assert_eq!(name(&cookie, ("cookie", "sid=k2"), None, false), None);
    let query = with("query: key");
    assert_eq!(name(&query, ("x", "y"), Some("a=b&k%65y=k1"), false), acme);
    assert_eq!(name(&query, ("x", "y"), Some("key=k2"), false), None);
    let trusted = with("trusted_header: X-User");
    assert_eq!(name(&trusted, ("x-user", "bob"), None, false), None);
    assert_eq!(name(&trusted, ("x-user", "bob"), None, true), Some("bob".to_owned()));
    assert_eq!(name(&trusted, ("x-user", "k1"), None, true), acme);
}

struct Keys;

impl Surroundings for Keys {
    fn variable(&self, name: &str) -> Option<String> {
        (name == "TOKEN").then(|| "very secret token".to_owned())
    }

    fn file(&self, name: &str) -> std::io::Result<String> {
        assert_eq!(name, "keys.yaml");
        let hello = "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
        Ok(format!("{hello}: {{ name: hi, plan: pro }}\nsesame: {{ plan: free }}\n"))
    }
}

#[test]
fn keys_of_a_file_are_known_and_shown_nowhere() {
    let text = "
secret: raw-secret
clients: { header: X-Api-Key, file: keys.yaml, keys: { inline-key: { name: in, plan: free } } }
admin: { listen: 127.0.0.1:9080, token: ${TOKEN} }
plans: { free: { a: 1/s }, pro: { a: 2/s } }
limits: { a: { by: client, rate: plan.a } }
tests: [{ request: GET /, headers: { X-Api-Key: inline-key } }]
";
    let policy = read(text, "policy.yaml", &Keys).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(policy.files(), ["keys.yaml"]);
    let who = |key| {
        let headers = request("GET /").header("x-api-key", key).headers;
        let client = policy.identify(&headers, None, false);
        (client.name.map(str::to_owned), client.plan)
    };
    assert_eq!(who("hello"), (Some("hi".to_owned()), 1));
    let (name, plan) = who("sesame");
    assert!(name.unwrap().starts_with("key-") && plan == 0);
    assert_eq!(who("inline-key"), (Some("in".to_owned()), 0));
    assert_eq!(who("sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"), (None, 0));
    let shown = format!("{policy:?} {policy:#?}");
    for secret in ["sesame", "inline-key", "raw-secret", "very secret token", "2cf24dba"] {
        assert!(!shown.contains(secret), "{secret} is shown");
    }
    let token = policy.file.admin.as_ref().unwrap().token.as_ref().unwrap();
    assert_eq!(token.value.reveal(), "very secret token");
    assert_eq!(policy.client_named(Some("hi"), None).plan, 1);
    assert_eq!(policy.client_named(Some("hi"), Some("free")).plan, 0);
    assert_eq!(policy.client_named(None, Some("gone")), Client { name: None, plan: 0 });
}

#[test]
fn an_upgrade_keeps_the_bucket_and_changes_the_budget() {
    let policy = policy(SPECIFICATION);
    let free = request("GET /api/x").by("acme", 0).pays(&policy);
    let pro = request("GET /api/x").by("acme", 1).pays(&policy);
    assert_eq!(free, pro);
    let budget = |plan| policy.charges(&request("GET /api/x").by("acme", plan).facts()).budgets().next();
    assert_ne!(budget(0), budget(1));
    let limit = policy.limit_of(budget(1).unwrap());
    assert_eq!((limit.name(), limit.mode()), ("api", Mode::Enforce));
}

#[test]
fn unlimited_has_no_budget_and_none_has_one_of_nothing() {
    let policy = policy(
        "plans: { a: { q: unlimited }, b: { q: none }, c: { q: 0/min }, d: { q: [1/s, unlimited, 5/min] }, e: { q: 1/s } }
limits: { q: { by: client, rate: [plan.q, 100/h] } }",
    );
    let on = |plan| request("GET /").by("x", plan).meets(&policy);
    // The rate behind the column keeps its number on every plan.
    assert_eq!(on(0), ["q.4"]);
    assert_eq!(on(1), ["q", "q.4"]);
    assert_eq!(on(3), ["q", "q.3", "q.4"]);
    assert_eq!(on(4), ["q", "q.4"]);
    for plan in [1, 2] {
        let charges = policy.charges(&request("GET /").by("x", plan).facts());
        assert_eq!(charges.resolve(&policy)[0].budget.quota.capacity(), 0);
    }
    // A plan that is not there any more is the first.
    assert_eq!(on(77), ["q.4"]);
}

#[test]
fn what_is_excepted_or_exempt_pays_nothing() {
    let policy = policy(
        "exempt: [path /healthz, ip 198.51.100.0/24, { path: GET /status, ip: 203.0.113.9 }]
limits:
  a: { match: /**, by: ip, except: [POST /hooks/*, /free/**], rate: 5/min }",
    );
    for free in ["GET /healthz", "POST /hooks/x", "GET /free", "GET /free/a/b"] {
        assert!(request(free).meets(&policy).is_empty(), "{free}");
    }
    for paid in ["GET /healthz/x", "GET /hooks/x", "POST /hooks", "POST /hooks/x/y", "GET /freed", "GET /"] {
        assert_eq!(request(paid).meets(&policy), ["a"], "{paid}");
    }
    assert!(request("GET /x").from("198.51.100.7").meets(&policy).is_empty());
    assert!(request("GET /x").from("::ffff:198.51.100.7").meets(&policy).is_empty());
    assert!(request("GET /status").from("203.0.113.9").meets(&policy).is_empty());
    assert_eq!(request("GET /status").meets(&policy), ["a"]);
    assert_eq!(request("GET /x").from("203.0.113.9").meets(&policy), ["a"]);
}

#[test]
fn a_doubtful_path_meets_the_limits_of_both_readings() {
    let policy = policy(
        "paths: { encoded_slash: both }
exempt: [path /static/**]
limits:
  login:  { match: /login/:user, by: ip, rate: 5/min }
  public: { match: '/pub/:x', by: path x, caller_chosen: true, rate: 5/min }",
    );
    let mut doubtful = request("GET /pub/a%2F..%2F..%2Flogin%2Fbob");
    doubtful.other_path = Some("/login/bob");
    assert_eq!(doubtful.meets(&policy), ["login", "public"]);
    // Exempt only when every reading is.
    let mut half = request("GET /static/..%2Flogin%2Fbob");
    half.other_path = Some("/login/bob");
    assert_eq!(half.meets(&policy), ["login"]);
    // An exception of one reading does not help the other.
    let policy =
        self::policy("paths: { encoded_slash: both }\nlimits: { a: { match: /**, except: /x/*, by: ip, rate: 1/s } }");
    let mut excepted = request("GET /x/a%2Fb");
    assert!(excepted.meets(&policy).is_empty());
    excepted.other_path = Some("/x/a/b");
    assert_eq!(excepted.meets(&policy), ["a"]);
}

#[test]
fn a_preflight_is_charged_by_ip_and_all_alone() {
    let policy = policy(
        "limits:
  ip: { by: ip, rate: 5/min }
  client: { by: client, rate: 5/min }
  all: { rate: 5/s }
  tenant: { by: [ip, header X-Tenant], rate: 1/s }
  route: { match: /**, by: [route, ip], rate: 1/s }",
    );
    let mut preflight = request("OPTIONS /x");
    assert_eq!(preflight.meets(&policy).len(), 5);
    preflight.preflight = true;
    assert_eq!(preflight.meets(&policy), ["ip", "all"]);
}

#[test]
fn hosts_and_conditions_narrow_a_limit() {
    let policy = policy(
        "limits:
  host: { host: [api.example.org, '*.test.example.org'], by: ip, rate: 5/min }
  when: { when: [header X-A = 1, header X-B = two words], by: ip, rate: 5/min }",
    );
    let at = |host| {
        let mut request = request("GET /");
        request.host = host;
        request.meets(&policy)
    };
    assert_eq!(at("api.example.org"), ["host"]);
    assert_eq!(at("a.b.test.example.org"), ["host"]);
    for other in ["", "example.org", "test.example.org", "xtest.example.org", "api.example.org.evil"] {
        assert!(at(other).is_empty(), "{other}");
    }
    assert!(request("GET /").header("x-a", "1").meets(&policy).is_empty());
    assert!(request("GET /").header("x-a", "1").header("x-b", "two").meets(&policy).is_empty());
    assert_eq!(
        request("GET /").header("x-a", "2").header("x-a", "1").header("x-b", "two words").meets(&policy),
        ["when"]
    );
}

#[test]
fn methods_are_told_apart_and_head_follows_get() {
    let policy =
        policy("limits: { a: { match: 'GET,POST /a', by: ip, rate: 1/s }, b: { match: HEAD /b, by: ip, rate: 1/s } }");
    for (met, text) in [
        (true, "GET /a"),
        (true, "HEAD /a"),
        (true, "POST /a"),
        (false, "PUT /a"),
        (true, "get /a"),
        (true, "Head /a"),
        (false, "put /a"),
        (true, "HEAD /b"),
        (false, "GET /b"),
    ] {
        assert_eq!(!request(text).meets(&policy).is_empty(), met, "{text}");
    }
}

#[test]
fn patterns_are_matched_in_the_normal_form_of_paths() {
    let policy = policy("limits: { a: { match: ['/%6cogin/', /caf\u{e9}, /a%c3%a9], by: [route, ip], rate: 1/s } }");
    for path in ["/login", "/caf%C3%A9", "/a%C3%A9"] {
        let mut request = request("GET /");
        request.path = path.to_owned();
        assert_eq!(request.meets(&policy), ["a"], "{path}");
    }
    let ignoring = self::policy("paths: { case: ignore }\nlimits: { a: { match: /Login/:Who, by: ip, rate: 1/s } }");
    assert_eq!(request("GET /login/bob").meets(&ignoring), ["a"]);
    assert_eq!(request("GET /LOGIN/bob").meets(&ignoring), ["a"]);
}

#[test]
fn keys_follow_what_by_says() {
    let policy = policy(
        "limits:
  a:
    match: [GET /u/:id, '/v/*/:id']
    by: [route, path id, query q, cookie c, header X-H]
    caller_chosen: true
    rate: 1/s",
    );
    let mut base = request("GET /u/1").header("cookie", "c=1").header("x-h", "1");
    base.query = Some("q=1");
    let key = base.key(&policy);
    let others = [
        Request { path: "/u/2".to_owned(), ..base.clone() },
        Request { path: "/v/u/1".to_owned(), ..base.clone() },
        Request { query: Some("q=2"), ..base.clone() },
        Request { query: None, ..base.clone() },
        base.clone().header("x-h", "2"),
    ];
    for other in &others {
        assert_ne!(other.key(&policy), key);
    }
    // The address does not matter while nothing is missing.
    assert_eq!(base.clone().from("192.0.2.77").key(&policy), key);
    assert_ne!(others[3].clone().from("192.0.2.77").key(&policy), others[3].key(&policy));
}

#[test]
fn a_missing_part_is_denied_or_skipped_as_said() {
    let policy = policy(
        "limits:
  guard: { by: ip, rate: 100/s }
  deny: { by: header X-Tenant, missing: deny, rate: [unlimited, 5/min] }
  skip: { by: header X-Tenant, missing: skip, rate: 5/min, cost: 0 }",
    );
    let without = policy.charges(&request("GET /").facts());
    let rows: Vec<_> = without
        .resolve(&policy)
        .iter()
        .map(|charge| (charge.budget.name.clone(), charge.budget.quota.capacity(), charge.cost))
        .collect();
    assert_eq!(rows, [("guard".to_owned(), 100, 1), ("deny".to_owned(), 0, 1)]);
    assert_eq!(request("GET /").header("x-tenant", "t").meets(&policy), ["guard", "deny.2", "skip"]);
}

#[test]
fn the_largest_cost_that_matches_counts_and_a_log_replaces_it() {
    let policy = policy(
        "limits: { a: { by: ip, rate: 100/min, cost: { POST /api/export: 20, /api/**: 5, /free: 0 } }, b: { by: ip, rate: 100/min, cost: 3 } }",
    );
    let costs = |request: &Request| request.pays(&policy).into_iter().map(|(_, cost, _)| cost).collect::<Vec<_>>();
    assert_eq!(costs(&request("POST /api/export")), [20, 3]);
    assert_eq!(costs(&request("GET /api/export")), [5, 3]);
    assert_eq!(costs(&request("GET /x")), [1, 3]);
    assert_eq!(costs(&request("GET /free")), [0, 3]);
    let logged = Request { cost: Some(7), ..request("POST /api/export") };
    assert_eq!(costs(&logged), [7, 7]);
}

#[test]
fn modes_and_shadow() {
    let text = "limits: { a: { by: ip, rate: 1/s }, b: { by: ip, rate: 1/s, mode: shadow }, c: { by: ip, rate: 1/s, mode: disabled } }";
    let policy = policy(text);
    let shadows = |policy: &Policy| policy.budgets.iter().map(|budget| budget.shadow).collect::<Vec<_>>();
    assert_eq!(request("GET /").meets(&policy), ["a", "b"]);
    assert_eq!(shadows(&policy), [false, true]);
    let policy = policy.shadow();
    assert_eq!(shadows(&policy), [true, true]);
    assert_eq!(policy.limits()[0].mode(), Mode::Shadow);
    assert_eq!(policy.limits()[2].mode(), Mode::Disabled);
}

#[test]
fn refusals_have_the_status_of_their_limit() {
    let policy =
        policy("limits: { a: { by: ip, rate: [1/s, 2/min], reject: { status: 503 } }, b: { by: ip, rate: 1/s } }");
    assert_eq!((0..3).map(|budget| policy.reject_status(budget)).collect::<Vec<_>>(), [Some(503), Some(503), None]);
}

#[test]
fn the_group_is_the_address_block() {
    let policy = policy("limits: { a: { by: client, rate: 1/s } }");
    let group = |request: &Request| policy.charges(&request.facts()).resolve(&policy)[0].group.to_vec();
    let a = request("GET /").by("one", 0).from("2001:db8::1");
    let b = request("GET /").by("two", 0).from("2001:db8::ffff:1");
    assert_eq!(group(&a), group(&b));
    assert_ne!(group(&a), group(&b.clone().from("2001:db8:0:1::1")));
    let nowhere = Request { address: None, ..a };
    assert_eq!(group(&nowhere), nowhere.key(&policy));
}

#[test]
fn a_file_too_large_is_refused() {
    let many = |count: usize| {
        let limits = (0..count).map(|n| format!("  l{n}: {{ match: /p{n}/**, by: ip, rate: 5/min }}\n"));
        format!("limits:\n{}", limits.collect::<Vec<_>>().concat())
    };
    assert!(refused(&many(10_001)).problems()[0].message().contains("more than 10000 limits"));
    let policy = policy(&many(10_000));
    assert_eq!(request("GET /p9999/x").meets(&policy), ["l9999"]);
    let large = format!("# {}\n", "x".repeat(4 << 20));
    assert_eq!(refused(&large).problems()[0].message(), "this file is larger than 4 MiB");
}

#[test]
fn nothing_written_limits_nothing() {
    let policy = Policy::permissive();
    assert!(request("GET /").meets(&policy).is_empty());
    assert!(policy.limits().is_empty() && policy.plans().is_empty() && policy.tests().is_empty());
}
