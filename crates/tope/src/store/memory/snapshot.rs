//! What outlives a restart: every live bucket, the quotas it was written under, and the seed that names it.
//!
//! The form is little-endian words after a line of text, and ends with a checksum, so that half a file is no file:
//! ```text
//! tope buckets 1\n
//! seed: 4 words; quotas: count, then (text length, text, edges count, edges) each
//! buckets: count, then (hash, quota, time, units) each; a log's admissions: count, then (time, units) each
//! checksum: 1 word
//! ```

use std::fmt;
use std::hash::Hasher;
use std::io::{self, Write};
use std::sync::Arc;

use siphasher::sip::SipHasher13;
use tope_core::algorithm::sliding_log::{Admission, Log};
use tope_core::{Algorithm, Period, Quota, Rate, State, Window};

use super::hash::Seed;
use super::log::PlaceLog;
use super::table::{LINE, Place};
use super::{Memory, full_at};

const HEAD: &[u8] = b"tope buckets 1\n";

/// Why a snapshot can't be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum SnapshotError {
    /// It was not written by this version of the form.
    Form,
    /// It is cut or damaged.
    Damaged,
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form => f.write_str("this is no file of buckets, or one of another version"),
            Self::Damaged => f.write_str("the file of buckets is cut or damaged"),
        }
    }
}

impl std::error::Error for SnapshotError {}

impl Memory {
    /// Writes what is live at `now_us`. Requests go on meanwhile: one line is locked at a time.
    ///
    /// # Errors
    /// As the writer does.
    pub fn write_snapshot(&self, out: &mut impl Write, now_us: u64) -> io::Result<()> {
        let mut bytes = HEAD.to_vec();
        let quotas: Vec<_> = self.quotas.read().rows().to_vec();
        put(&mut bytes, &self.seed.0);
        put(&mut bytes, &[quotas.len() as u64]);
        for known in &quotas {
            // What is in flight ends with the process: its number is kept, and no bucket has it.
            let kept = if known.quota.algorithm() == Algorithm::Concurrency { Quota::NONE } else { known.quota };
            let text = Rate::Quota(kept).to_string();
            put(&mut bytes, &[text.len() as u64]);
            bytes.extend_from_slice(text.as_bytes());
            // Of a calendar the window of now is enough: what is older is full again.
            let window = matches!(known.quota.period(), Period::Calendar(_))
                .then(|| Window::of(&known.quota, &known.edges, now_us));
            let edges: Vec<u64> = window.into_iter().flat_map(|window| [window.start_us, window.end_us]).collect();
            put(&mut bytes, &[edges.len() as u64]);
            put(&mut bytes, &edges);
        }
        let counted_at = bytes.len();
        put(&mut bytes, &[0]);
        let mut count = 0_u64;
        for line in 0..self.table.len() {
            let held = self.table.lock(line);
            for place in held.all().iter().filter(|place| place.taken()) {
                let Some(known) = quotas.get(usize::from(place.number())) else { continue };
                let state = place.state();
                let in_flight = known.quota.algorithm() == Algorithm::Concurrency;
                if in_flight || full_at(known, state) <= now_us {
                    continue;
                }
                count += 1;
                put(&mut bytes, &[place.hash, u64::from(place.number()), state.time_us, state.units]);
                if known.quota.algorithm().is_log() {
                    let admissions = self.admissions(place.hash, state);
                    put(&mut bytes, &[admissions.len() as u64]);
                    for admission in admissions {
                        put(&mut bytes, &[admission.at_us, admission.units]);
                    }
                }
            }
        }
        bytes[counted_at..counted_at + 8].copy_from_slice(&count.to_le_bytes());
        let sum = checksum(&bytes);
        put(&mut bytes, &[sum]);
        out.write_all(&bytes)
    }

    /// A store with the buckets of a snapshot. What does not fit into `max_keys` goes, nearest to full first.
    ///
    /// # Errors
    /// When the snapshot is not one, or damaged: then nothing of it is used.
    pub fn from_snapshot(bytes: &[u8], max_keys: usize, now_us: u64) -> Result<Self, SnapshotError> {
        let body = bytes.strip_prefix(HEAD).ok_or(SnapshotError::Form)?;
        let end = bytes.len().checked_sub(8).filter(|end| *end >= HEAD.len()).ok_or(SnapshotError::Damaged)?;
        if bytes[end..] != checksum(&bytes[..end]).to_le_bytes() {
            return Err(SnapshotError::Damaged);
        }
        Self::read_body(&mut Words(&body[..body.len() - 8]), max_keys, now_us).ok_or(SnapshotError::Damaged)
    }

    fn read_body(words: &mut Words<'_>, max_keys: usize, now_us: u64) -> Option<Self> {
        let seed = Seed([words.word()?, words.word()?, words.word()?, words.word()?]);
        let quotas = (0..words.count()?).map(|_| words.quota()).collect::<Option<Vec<_>>>()?;
        let logs: Vec<bool> = quotas.iter().map(|(quota, _)| quota.algorithm().is_log()).collect();
        let of_logs = quotas.iter().zip(&logs).filter(|(_, log)| **log);
        let largest_log = of_logs.map(|((quota, _), _)| *quota).max_by_key(Quota::amount);
        let store = Self::with_seed(max_keys, seed, quotas);
        if let Some(quota) = largest_log {
            store.buy_slabs(&quota);
        }
        for _ in 0..words.count()? {
            let (hash, number) = (words.word()?, u16::try_from(words.word()?).ok()?);
            let mut state = State { time_us: words.word()?.min(Quota::MAX_TIME_US), units: words.word()? };
            if *logs.get(usize::from(number))? {
                let admissions =
                    (0..words.count()?).map(|_| Some(Admission { at_us: words.word()?, units: words.word()? }));
                state = store.rebuild_log(hash, admissions.collect::<Option<Vec<_>>>()?);
            }
            store.restore(Place::new(hash, number, state), now_us);
        }
        words.0.is_empty().then_some(store)
    }

    fn rebuild_log(&self, hash: u64, admissions: Vec<Admission>) -> State {
        let mut slab = self.slab(hash);
        let mut log = PlaceLog::new(State::FULL, slab.as_deref_mut());
        for admission in admissions {
            log.push(admission);
        }
        log.state()
    }
}

impl Memory {
    /// Puts one bucket back, as a newcomer that already has its state.
    fn restore(&self, place: Place, now_us: u64) {
        for last in [false, false, true] {
            if self.put_back(place, now_us, last) {
                return;
            }
            self.make_room(place.hash, now_us);
        }
    }

    /// `false` when both lines are full of live buckets; at `last` the one nearest to full goes, which may be this
    /// one. While a snapshot was taken a bucket may have moved and so be in it twice: the later is the one.
    fn put_back(&self, place: Place, now_us: u64, last: bool) -> bool {
        let (home, away) = (self.table.home(place.hash), self.table.away(place.hash));
        let lines = [home, away].map(|line| (line, self.table.lock(line).all()));
        let all = || lines.iter().flat_map(|(line, places)| (0..LINE).map(move |at| (*line, at, places[at])));
        let twin = all().find(|(_, _, other)| other.hash == place.hash);
        let (line, at, other) =
            twin.or_else(|| all().min_by_key(|(_, _, other)| self.free_at(other))).expect("two lines have places");
        let gives_way = match twin {
            Some(_) => other.state().time_us < place.state().time_us,
            None => self.free_at(&other) <= now_us || last && self.free_at(&other) < self.free_at(&place),
        };
        if !gives_way {
            return twin.is_some() || last;
        }
        let held = self.table.lock(line);
        self.forget(&held.get(at), now_us);
        held.put(at, place);
        drop(held);
        if line != home {
            self.table.lock(home).close();
        }
        true
    }
}

fn put(bytes: &mut Vec<u8>, words: &[u64]) {
    for word in words {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
}

/// Against accidents, not against forgery: whoever can write the file can write the seed too.
fn checksum(bytes: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(bytes);
    hasher.finish()
}

/// What is left to read.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*word))
    }

    /// A count of things of at least one word each, so never more than are left.
    fn count(&mut self) -> Option<u64> {
        self.word().filter(|count| *count <= self.0.len() as u64 / 8 + 1)
    }

    fn quota(&mut self) -> Option<(Quota, Arc<[u64]>)> {
        let length = usize::try_from(self.word()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        let Ok(Rate::Quota(quota)) = std::str::from_utf8(text).ok()?.parse() else { return None };
        let edges = (0..self.count()?).map(|_| self.word()).collect::<Option<Vec<_>>>()?;
        Some((quota, edges.into()))
    }
}
