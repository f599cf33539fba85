//! `tope explain`: one request under a policy. Which limits apply, which buckets pay, what would be said.

use std::borrow::Cow;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use http::HeaderMap;
use tope::clock::Clock;
use tope::core::Decision;
use tope::http::{fields, problem};
use tope::policy::Absence;
use tope::store::Answer;
use tope::store::memory::Memory;
use tope::{Judgement, Limiter, Policy};

use super::out::Out;
use super::request::{self, Request};
use super::view::{Limit, View};
use crate::load;
use crate::pass::Line;
use crate::pass::Reading;
use crate::text::table::Table;

/// Say what a policy makes of one request
///
/// Nothing is sent and nothing is counted: the request is judged on an empty store. Exit code 0 whether it passes or
/// not, 2 for bad input. API keys are never printed.
#[derive(Debug, clap::Args)]
pub struct Explain {
    /// The policy file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The request: 'POST /login?x=1'
    #[arg(value_name = "REQUEST")]
    request: String,
    /// A header field of the request: 'X-Api-Key: k'
    #[arg(short = 'H', long = "header", value_name = "FIELD")]
    headers: Vec<String>,
    /// The address of the peer that sends it
    #[arg(long, value_name = "ADDR", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    from: IpAddr,
}

/// Explains the request.
///
/// # Errors
/// When the policy or the request can't be read.
pub fn run(args: &Explain) -> anyhow::Result<ExitCode> {
    let request = Request::parse(&args.request)?;
    let headers = request::headers(&args.headers)?;
    let loaded = load::policy(&args.file)?;
    let (store, view) = (load::store(&loaded)?, View::of(&loaded.policy));
    let limiter = Limiter::new(store, loaded.policy)?;
    let line = Line {
        address: Some(args.from),
        method: Cow::Borrowed(&request.method),
        target: Some(Cow::Borrowed(&request.target)),
        ..Line::default()
    };
    let mut out = Out::new();
    writeln!(out, "{} {}", request.method, request.target)?;
    let policy = limiter.policy();
    let uri = line.uri();
    match uri.as_ref().and_then(|uri| Reading::of(&policy, &line, uri, &headers)) {
        Some(reading) => {
            Explained { view: &view, limiter: &limiter, reading: &reading, line: &line, headers: &headers }
                .write(&mut out)?;
        }
        None => {
            writeln!(out, "\nthe path may not pass: 400 before any limit, because servers could read it in two ways")?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

struct Explained<'a> {
    view: &'a View,
    limiter: &'a Limiter<Memory>,
    reading: &'a Reading<'a, 'a>,
    line: &'a Line<'a>,
    headers: &'a HeaderMap,
}

impl Explained<'_> {
    fn write(&self, out: &mut impl Write) -> anyhow::Result<()> {
        let now_us = Clock::new().now_us();
        let first = self.judge(self.reading, now_us)?;
        self.write_caller(out)?;
        self.write_limits(out, &first)?;
        writeln!(out)?;
        if first.allowed() {
            writeln!(out, "a first request is answered by the upstream, and its answer has")?;
            write_fields(out, &answer_fields(&first))?;
            let Some(refused) = self.drained(&first, now_us)? else { return Ok(()) };
            writeln!(out, "\nwhen the budget is used up it is")?;
            return Ok(write_refusal(out, &refused)?);
        }
        writeln!(out, "a first request already is")?;
        Ok(write_refusal(out, &first)?)
    }

    fn judge(&self, reading: &Reading<'_, '_>, now_us: u64) -> anyhow::Result<Judgement> {
        match self.limiter.judge(self.limiter.policy(), &reading.facts(), now_us) {
            Answer::Ready(judgement) => judgement.context("the store failed"),
            Answer::Pending(_) => anyhow::bail!("the memory store did not answer at once"),
        }
    }

    /// The same request when all that its tightest limit had left is taken.
    fn drained(&self, first: &Judgement, now_us: u64) -> anyhow::Result<Option<Judgement>> {
        let left = first.with_verdict(|verdict| verdict.enforced().map(|entry| entry.decision.remaining).min());
        let Some(mut left) = left else { return Ok(None) };
        let policy = self.limiter.policy();
        while left > 0 {
            let cost = u32::try_from(left).unwrap_or(u32::MAX);
            let line = Line { cost: Some(cost), ..self.line.clone() };
            let uri = line.uri();
            let reading = uri.as_ref().and_then(|uri| Reading::of(&policy, &line, uri, self.headers));
            let Some(reading) = reading else { return Ok(None) };
            self.judge(&reading, now_us)?;
            left -= u64::from(cost);
        }
        Ok(Some(self.judge(self.reading, now_us)?).filter(|judgement| !judgement.allowed()))
    }

    fn write_caller(&self, out: &mut impl Write) -> io::Result<()> {
        let Reading { path, address, client, .. } = self.reading;
        let mut table = Table::new("  ll");
        let mut row = |word: &str, said: String| table.row([word.to_owned(), said]);
        let forwarded =
            if path.forward == path.matched { String::new() } else { format!(", forwarded as {}", path.forward) };
        row("path", format!("{}{forwarded}", path.matched));
        if let Some(other) = &path.other {
            row("", format!("{other}, where an encoded slash is one"));
        }
        row("address", address.map_or("unknown".to_owned(), |address| address.to_string()));
        let because = match (&self.view.source, client.name) {
            (None, _) => "the policy knows no clients".to_owned(),
            (Some(source), Some(_)) => format!("known by {source}"),
            (Some(source), None) => format!("{source} names nobody that we know, so the address counts"),
        };
        row("client", format!("{} ({because})", client.name.unwrap_or("nobody")));
        if let Some(plan) = self.view.plans.get(usize::from(client.plan)) {
            row("plan", plan.clone());
        }
        table.write(out)
    }

    fn write_limits(&self, out: &mut impl Write, first: &Judgement) -> io::Result<()> {
        writeln!(out)?;
        let mut table = Table::new("  lllrll");
        table.row(["limit", "applies", "bucket", "cost", "budget", "because"].map(str::to_owned));
        for limit in &self.view.limits {
            let mut rows = self.rows(limit, first);
            if rows.is_empty() {
                let none = || "-".to_owned();
                rows.push([
                    limit.name.clone(),
                    "no".to_owned(),
                    none(),
                    none(),
                    none(),
                    self.why_not(limit, first.policy()),
                ]);
            }
            for row in rows {
                table.row(row);
            }
        }
        table.write(out)?;
        if self.view.exempt.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n  no limit applies to {}", self.view.exempt.join(", "))
    }

    /// A row for each rate of this limit that applied.
    fn rows(&self, limit: &Limit, first: &Judgement) -> Vec<[String; 6]> {
        let policy = first.policy();
        let charges = policy.charges(&self.reading.facts());
        let costs: Vec<u32> = charges.resolve(policy).iter().map(|charge| charge.cost).collect();
        let rows = first.rows().iter().zip(costs);
        let own = rows.filter(|((budget, _), _)| policy.limit_of(*budget).name() == limit.name);
        let row = |((budget, _), cost): (&(u16, Decision), u32)| {
            let budget = &policy.budgets[usize::from(*budget)];
            let word = if budget.shadow { "shadow" } else { "yes" };
            let because = if limit.on.is_empty() { "every request" } else { &limit.on };
            let quota = budget.quota.to_string();
            [budget.name.clone(), word.to_owned(), self.bucket(limit), cost.to_string(), quota, because.to_owned()]
        };
        own.map(row).collect()
    }

    /// The facts that name the bucket, without values that may be keys.
    fn bucket(&self, limit: &Limit) -> String {
        let Reading { address, client, .. } = self.reading;
        let ip = || address.map_or("no address".to_owned(), |address| format!("ip {address}"));
        let part = |part: &String| match part.as_str() {
            "all" => "everybody's".to_owned(),
            "ip" => ip(),
            "client" => client.name.map_or_else(ip, |name| format!("client {name}")),
            "plan" => {
                self.view.plans.get(usize::from(client.plan)).map_or("plan".to_owned(), |plan| format!("plan {plan}"))
            }
            other => format!("its {other}"),
        };
        let parts: Vec<String> = limit.by.iter().map(part).collect();
        if parts.is_empty() { "everybody's".to_owned() } else { parts.join(", ") }
    }

    fn why_not(&self, limit: &Limit, policy: &Policy) -> String {
        let compiled = policy.limits().iter().find(|compiled| compiled.name() == limit.name);
        let why = compiled.and_then(|compiled| policy.absence(compiled, &self.reading.facts()));
        let on = if limit.on.is_empty() { "every request" } else { &limit.on };
        match why {
            Some(Absence::Disabled) => "it is disabled".to_owned(),
            Some(Absence::Exempt) => "the request is exempt".to_owned(),
            Some(Absence::Unlimited) => "it has no ceiling on this plan".to_owned(),
            Some(Absence::Preflight) => "it counts no preflights".to_owned(),
            Some(Absence::Excepted) => format!("it is on {on} except {}", limit.except),
            Some(Absence::PartMissing) => "a part of its key is missing".to_owned(),
            _ => format!("it is on {on}"),
        }
    }
}

fn write_refusal(out: &mut impl Write, judgement: &Judgement) -> io::Result<()> {
    let policy = judgement.policy();
    let status = judgement.refused_by().and_then(|budget| policy.reject_status(budget));
    let docs = policy.docs.as_deref();
    let refusal = judgement
        .with_verdict(|verdict| problem::refusal(&verdict, &policy.dialects, docs, status, judgement.now_us()));
    let status = refusal.status();
    writeln!(out, "  {} {}", status.as_u16(), status.canonical_reason().unwrap_or_default())?;
    write_fields(out, refusal.headers())?;
    if !refusal.body().is_empty() {
        writeln!(out, "\n  {}", String::from_utf8_lossy(refusal.body()).trim_end().replace('\n', "\n  "))?;
    }
    Ok(())
}

fn answer_fields(judgement: &Judgement) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let (dialects, now_us) = (&judgement.policy().dialects, judgement.now_us());
    judgement.with_verdict(|verdict| fields::write(&mut headers, &verdict, dialects, now_us));
    headers
}

fn write_fields(out: &mut impl Write, fields: &HeaderMap) -> io::Result<()> {
    if fields.is_empty() {
        return writeln!(out, "  no fields of ours");
    }
    fields.iter().try_for_each(|(name, value)| writeln!(out, "  {name}: {}", String::from_utf8_lossy(value.as_bytes())))
}
