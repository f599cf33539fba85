//! What was written becomes what is meant, once: a file to a [`Policy`], or to everything that is wrong with it.

mod cases;
mod costs;
mod limits;
mod sections;

use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use super::calendar::Edges;
use super::error::{At, Errors, Place};
use super::file::{self, File, Keys, Secret};
use super::findings::Findings;
use super::key::Seed;
use super::plan::Plans;
use super::surroundings::Surroundings;
use super::{Policy, clients, document, exempt, guard, reach, warnings};
use crate::charge::{Budget, MAX_CHARGES};
use crate::http::path::EncodedSlash;

/// Reads a policy file: its `text`, its `name` for messages, and what may be asked of the world around it.
///
/// # Errors
/// Everything that is wrong with the file, each with its place.
pub fn read(text: &str, name: &str, surroundings: &dyn Surroundings) -> Result<Policy, Errors> {
    read_and(text, name, surroundings, |_, _| ())
}

/// As [`read`], for a program that compiles its own part (listeners, upstreams) from the same data: `also` sees the
/// file, and can blame what it finds there.
///
/// # Errors
/// As [`read`], and whatever `also` blames.
pub fn read_and(
    text: &str,
    name: &str,
    surroundings: &dyn Surroundings,
    also: impl FnOnce(&File, &mut Findings),
) -> Result<Policy, Errors> {
    let mut findings = Findings::new(name, text);
    let written =
        document::parse(text, 0, false, &mut findings, surroundings).and_then(|node| file::read(&node, &mut findings));
    let file = findings.or_errors(written)?;
    let keys = key_file(&file, surroundings, &mut findings);
    also(&file, &mut findings);
    let policy = compile(file, keys.as_ref(), &mut findings);
    let mut policy = findings.or_errors(policy)?;
    warnings::find(&policy, &mut findings);
    policy.warnings = findings.take();
    Ok(policy)
}

fn key_file(file: &File, surroundings: &dyn Surroundings, findings: &mut Findings) -> Option<Keys> {
    let named = file.clients.as_ref()?.file.as_ref()?;
    let text = match surroundings.file(named) {
        Ok(text) => text,
        Err(error) => {
            findings
                .blame(named.place, format!("the file of keys can't be read: {error}"))
                .hint("files are named relative to the policy file");
            return None;
        }
    };
    let sheet = findings.open(named, &text);
    let node = document::parse(&text, sheet, true, findings, surroundings)?;
    file::keys(&node, findings)
}

fn compile(mut file: File, keys: Option<&Keys>, findings: &mut Findings) -> Option<Policy> {
    sections::version(&file, findings);
    let address = sections::address(&file, findings);
    let paths = sections::paths(&file);
    let dialects = sections::dialects(&file, findings);
    let cors = sections::cors(&file, findings);
    let docs = sections::docs(&file, findings);
    let seed = seed(file.secret.as_ref(), findings)?;

    let edges = edges(file.timezone.as_ref(), findings);
    let mut plans = Plans::new(file.plans.as_ref(), edges, findings);
    let mut body_fields = Vec::new();
    let limits = limits::compile(&file, paths, &mut plans, &mut body_fields, findings);
    let Plans { names, budgets, used, .. } = plans;
    let known = file.clients.as_ref().map(|written| clients::compile(written, keys, &names, findings));
    let known = known.unwrap_or_default();
    let exempt = file.exempt.as_ref().map(|written| exempt::compile(written, paths, findings)).unwrap_or_default();
    let limits = limits?;

    guard::check(&limits, findings);
    let count = u16::try_from(names.len()).unwrap_or(u16::MAX);
    let reach = reach::explore(&limits, &exempt, count, paths.encoded_slash == EncodedSlash::Both);
    if reach.most > MAX_CHARGES {
        blame_many(&reach, &limits, findings);
    }
    let tests = cases::compile(&file, &limits, &names, &known, findings);
    let files =
        file.clients.iter().filter_map(|clients| clients.file.as_ref()).map(|file| file.value.clone()).collect();
    // The keys are compiled; the file is kept for whoever looks at its other fields.
    if let Some(clients) = &mut file.clients {
        clients.keys = None;
    }
    Some(Policy {
        of_budget: limits::of_budget(&limits, budgets.len()),
        awaits: limits.iter().any(|limit| limit.count.is_some() || limit.pricing.is_some())
            || budgets.iter().any(Budget::in_flight),
        waits: limits.iter().any(|limit| limit.wait_us.is_some()),
        asks_bodies: limits.iter().any(super::Limit::asks_body),
        body_fields,
        hidden: limits::hidden(&limits),
        first: super::first::Index::new(&limits, paths.ignore_case),
        budgets,
        dialects,
        address,
        paths,
        cors,
        docs,
        file,
        limits,
        plans: names,
        known,
        exempt,
        seed,
        tests,
        warnings: Vec::new(),
        files,
        reach,
        used_columns: used,
    })
}

fn blame_many(reach: &reach::Reach, limits: &[super::Limit], findings: &mut Findings) {
    let names: Vec<&str> = reach.limits.iter().map(|limit| limits[*limit].name()).collect();
    let place = reach.limits.last().map_or_else(Place::default, |limit| limits[*limit].place);
    let request = reach.request.as_ref().map(|request| format!(", as in {request}")).unwrap_or_default();
    let message = format!("{} rates can meet in one request{request}, and at most {MAX_CHARGES} may", reach.most);
    findings.blame(place, message).hint(format!("let fewer of these match the same requests: {}", names.join(", ")));
}

fn edges(zone: Option<&At<String>>, findings: &mut Findings) -> Edges {
    let named = zone.and_then(|zone| Edges::new(zone));
    if let (None, Some(zone)) = (&named, zone) {
        let near = Edges::nearest(zone);
        let finding = findings.blame(zone.place, "there is no such time zone");
        match near {
            Some(near) => finding.hint(format!("did you mean `{near}`?")),
            None => finding.hint("zones are named as in Europe/Madrid"),
        };
    }
    named.unwrap_or_else(Edges::utc)
}

/// The key of the hash of long key parts: the secret's, or this process's own.
fn seed(secret: Option<&At<Secret>>, findings: &mut Findings) -> Option<Seed> {
    static OWN: OnceLock<[u8; 16]> = OnceLock::new();
    if let Some(secret) = secret {
        let digest: [u8; 32] =
            Sha256::new().chain_update(b"tope: parts of keys\0").chain_update(secret.reveal()).finalize().into();
        let mut half = [0; 16];
        half.copy_from_slice(&digest[..16]);
        return Some(Seed(half));
    }
    let mut fresh = [0; 16];
    if OWN.get().is_none() && getrandom::fill(&mut fresh).is_err() {
        let top = Place { sheet: 0, line: 1, column: 1 };
        findings.blame(top, "the system gives no random numbers").hint("write a `secret`");
        return None;
    }
    Some(Seed(*OWN.get_or_init(|| fresh)))
}
