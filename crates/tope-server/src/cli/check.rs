//! `tope check`: what a policy means, in plain words; what in it is seldom meant; whether its tests come out.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;
use tope::Limiter;

use super::out::Out;
use super::trial::Failure;
use super::view::View;
use super::{NO, plain, trial};
use crate::pass::Limited;
use crate::text::table::Table;
use crate::{load, talk};

/// Say in plain words what a policy means, and run its tests
///
/// Exit code 0: it is a policy and its tests come out. 1: a test fails. 2: it is no policy.
#[derive(Debug, clap::Args)]
pub struct Check {
    /// The policy file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print what is found as JSON
    #[arg(long)]
    json: bool,
}

/// Checks the policy.
///
/// # Errors
/// When the file can't be read or is no policy.
pub fn run(args: &Check) -> anyhow::Result<ExitCode> {
    let loaded = load::policy(&args.file)?;
    let store = load::store(&loaded)?;
    let view = View::of(&loaded.policy);
    let limiter = Limiter::new(store, loaded.policy)?;
    let policy = limiter.policy();
    let (tests, name) = (policy.tests(), args.file.display().to_string());
    let failures = trial::run(&mut Limited::new(limiter), tests, &view.plans, &name)?;

    let mut out = Out::new();
    if args.json {
        writeln!(out, "{:#}", as_json(&view, tests.len(), &failures))?;
    } else {
        write(&mut out, &name, &view, tests.len(), &failures)?;
    }
    out.flush()?;
    if failures.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    talk::say(&format!("error: {} of {} tests failed\n", failures.len(), tests.len()));
    Ok(ExitCode::from(NO))
}

fn write(out: &mut impl Write, file: &str, view: &View, tests: usize, failures: &[Failure]) -> io::Result<()> {
    let number = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let (limits, plans) = (number(view.limits.len(), "limit"), number(view.plans.len(), "plan"));
    writeln!(out, "{file}: {limits}, {plans}\n")?;
    let mut table = Table::new("  ll");
    for limit in &view.limits {
        table.row([limit.name.clone(), plain::limit(limit)]);
    }
    table.write(out)?;
    if !view.exempt.is_empty() {
        writeln!(out, "\nno limit applies to {}", view.exempt.join(", "))?;
    }
    write_plans(out, view)?;
    if !view.warnings.is_empty() {
        writeln!(out)?;
    }
    for warning in &view.warnings {
        writeln!(out, "warning: {warning}")?;
    }
    if tests > 0 {
        writeln!(out, "\n{}, {} failed", number(tests, "test"), failures.len())?;
    }
    failures.iter().try_for_each(|Failure { place, what }| writeln!(out, "{place}: {what}"))
}

/// A row a plan, a column a limit that depends on it.
fn write_plans(out: &mut impl Write, view: &View) -> io::Result<()> {
    let limits: Vec<_> = view.limits.iter().filter(|limit| limit.depends_on_plan()).collect();
    if limits.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let mut table = Table::new(&format!("  l{}", "l".repeat(limits.len())));
    let head = std::iter::once("plan".to_owned()).chain(limits.iter().map(|limit| limit.name.clone()));
    table.row(head.collect::<Vec<_>>());
    for (place, plan) in view.plans.iter().enumerate() {
        let rates = |limit: &&super::view::Limit| {
            let rates: Vec<String> = limit.on_plan(place).iter().map(|(_, rate)| rate.to_string()).collect();
            rates.join(", ")
        };
        table.row(std::iter::once(plan.clone()).chain(limits.iter().map(rates)).collect::<Vec<_>>());
    }
    table.write(out)?;
    match &view.otherwise {
        Some(plan) => writeln!(out, "\na call without a known key is on plan {plan}, counted by its address"),
        None => Ok(()),
    }
}

fn as_json(view: &View, tests: usize, failures: &[Failure]) -> serde_json::Value {
    let rates = |rates: &[(String, tope::core::Rate)]| -> Vec<_> {
        rates.iter().map(|(name, rate)| json!({"name": name, "rate": rate.to_string()})).collect()
    };
    let limits = view.limits.iter().map(|limit| {
        let by_plan: serde_json::Map<_, _> = view
            .plans
            .iter()
            .enumerate()
            .filter(|_| limit.depends_on_plan())
            .map(|(place, plan)| (plan.clone(), json!(rates(limit.on_plan(place)))))
            .collect();
        let same = (!limit.depends_on_plan()).then(|| rates(limit.on_plan(0)));
        json!({
            "limit": limit.name,
            "says": plain::limit(limit),
            "match": limit.on,
            "except": limit.except,
            "by": limit.by,
            "shadow": limit.shadow,
            "disabled": limit.disabled,
            "rates": same,
            "plans": by_plan,
        })
    });
    let failed = failures.iter().map(|Failure { place, what }| json!({"at": place, "what": what}));
    json!({
        "limits": limits.collect::<Vec<_>>(),
        "plans": view.plans,
        "otherwise": view.otherwise,
        "exempt": view.exempt,
        "warnings": view.warnings,
        "tests": tests,
        "failed": failed.collect::<Vec<_>>(),
    })
}
