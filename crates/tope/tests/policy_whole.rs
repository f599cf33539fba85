//! What a file as a whole may not say, or seldom means.

#![allow(clippy::unwrap_used, reason = "a test that unwraps nothing fails")]

use tope::policy::{Errors, Policy, read};

fn policy(text: &str) -> Policy {
    read(text, "policy.yaml", &()).unwrap_or_else(|errors| panic!("{errors}"))
}

fn refused(text: &str) -> Errors {
    read(text, "policy.yaml", &()).expect_err("it is no policy")
}

#[test]
fn a_key_that_the_caller_chooses_needs_a_guard_that_holds() {
    let chosen = "  c: { match: GET /api/x, by: [plan, header User-Agent], rate: 5/min }\n";
    let with = |guard: &str| format!("limits:\n{chosen}  g: {{ {guard} }}\n");
    for holes in [
        "match: /api/y, by: ip, rate: 1/s",
        "match: POST /api/x, by: ip, rate: 1/s",
        "match: /api/**, except: GET /api/*, by: ip, rate: 1/s",
        "match: /api/**, host: a.org, by: ip, rate: 1/s",
        "match: /api/**, when: header A = b, by: ip, rate: 1/s",
        "match: /api/**, by: ip, rate: unlimited",
        "match: /api/**, by: ip, rate: 1/s, mode: shadow",
        "match: /api/**, by: ip, rate: 1/s, mode: disabled",
        "match: /api/**, by: [ip, cookie x], rate: 1/s, caller_chosen: true",
    ] {
        assert!(refused(&with(holes)).problems()[0].message().contains("is what its caller chooses"), "{holes}");
    }
    for holds in [
        "rate: 5000/s",
        "match: /api/**, by: ip, rate: 1/s",
        "match: [/z, GET /api/x], by: client, rate: 1/s",
        "match: '/api/:id', by: ip, rate: 1/s, except: POST /api/x",
    ] {
        policy(&with(holds));
    }
}

#[test]
fn doubtful_policies_are_warned_of() {
    let said =
        |text: &str| policy(text).warnings().iter().map(|warning| warning.message().to_owned()).collect::<Vec<_>>();
    for (text, expected) in [
        ("limits: { a: { match: [/x, /y], except: /y, by: ip, rate: 1/s } }", "no request reaches `/y` of limit `a`"),
        (
            "exempt: [path /x/**]\nlimits: { a: { match: GET /x/y, by: ip, rate: 1/s } }",
            "no request reaches `GET /x/y`",
        ),
        ("limits: { a: { match: /x, rate: 5/min } }", "every caller shares the budget of `a`"),
        (
            "plans: { p: { x: 1/s } }\nlimits: { a: { match: POST /x, by: plan, rate: plan.x } }",
            "every caller shares the budget of `a`",
        ),
        ("limits: { a: { match: /x, by: ip, rate: 20/s }, ceiling: { rate: 10/s } }", "`a` is above `ceiling`"),
        (
            "limits: { a: { by: ip, rate: 100/s burst 10 } }",
            "a burst of 10 in `a` is below what it allows in one second",
        ),
        ("limits: { a: { by: ip, rate: 1/day } }", "`a` counts for a day or longer"),
        ("limits: { a: { by: ip, rate: 30/30d } }", "`a` counts for a day or longer"),
        ("limits: { a: { by: ip, rate: 5/min, cost: 6 } }", "a request of cost 6 never passes `a`"),
        ("limits: { a: { by: ip, rate: 50k/h sliding-log } }", "a sliding log remembers each request"),
        ("plans: { p: { x: 1/s } }", "no limit uses column `x`"),
        ("clients: { trusted_header: X-User }", "nobody is trusted to send this header"),
    ] {
        let said = said(text);
        assert!(said.len() == 1 && said[0].starts_with(expected), "{text}: {said:?}");
    }
    for quiet in [
        "limits: { a: { match: /x, by: all, rate: 5/min } }",
        "limits: { a: { by: ip, rate: [5/min, 30/h] }, ceiling: { rate: 10/s } }",
        "memory: { file: s }\nlimits: { a: { by: ip, rate: 1/month } }",
        "limits: { a: { match: /x, by: ip, rate: none } }",
        "limits: { a: { match: [/x, /x], by: ip, rate: 1/s, mode: disabled } }",
    ] {
        assert!(said(quiet).is_empty(), "{quiet}: {:?}", said(quiet));
    }
}

#[test]
fn a_program_can_blame_its_own_part() {
    let errors = tope::policy::read_and(
        "listen: nowhere\nlimits: { a: { rate: 5/min, by: ipp } }\n",
        "p.yaml",
        &(),
        |file, findings| {
            if let Some(listen) = &file.listen {
                findings.blame(listen.place, "this is no address to listen at").hint("as in 127.0.0.1:8080");
            }
        },
    );
    let errors = errors.unwrap_err();
    assert_eq!(errors.problems().len(), 2);
    let told = errors.problems()[0].to_string();
    assert_eq!(
        told,
        "p.yaml:1:9: this is no address to listen at\n1 | listen: nowhere\n  |         ^\nhint: as in 127.0.0.1:8080"
    );
}
