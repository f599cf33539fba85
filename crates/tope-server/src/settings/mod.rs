//! What a policy file says about the program itself: where to listen, where requests go, how long to wait.
//!
//! | room | what is in it |
//! |---|---|
//! | `mod` | the settings, made of what was written |
//! | [`upstream`] | `http://host:port`, `h2c://host:port`, `demo` |
//!
//! | field | unless said |
//! |---|---|
//! | `listen` | 127.0.0.1:8080: nobody else is let in by accident |
//! | `admin.listen` | 127.0.0.1:9080 |
//! | `timeouts` | header 10 s, idle 60 s, upstream 30 s |
//! | `log.access` | none |
//! | `memory.max_keys` | 1,000,000 buckets |

pub mod upstream;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tope::policy::file::{File, Many};
use tope::policy::{At, Findings, Place};

pub use upstream::Upstream;

use crate::state::StateFile;

/// What the program runs with.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Where the gateway listens.
    pub listen: SocketAddr,
    /// Where requests go, in turn; empty when the policy names no upstream, which only the gateway minds.
    pub upstreams: Vec<Upstream>,
    /// How long the head of a request may take.
    pub header_timeout: Duration,
    /// How long a connection may be idle between requests.
    pub idle_timeout: Duration,
    /// How long the upstream may take to answer.
    pub upstream_timeout: Duration,
    /// Where operators are answered; always a loopback address.
    pub admin: SocketAddr,
    /// Whether an access log is written.
    pub access_log: bool,
    /// Buckets in memory.
    pub max_keys: usize,
    /// Where they outlive a restart.
    pub memory_file: Option<PathBuf>,
}

/// What is wrong, and what to do.
type Fault = (String, &'static str);

/// A bucket is 32 bytes, so this is 128 GiB of them.
const MOST_KEYS: u64 = 1 << 32;
const LONGEST_US: u64 = 24 * 3600 * 1_000_000;

impl Settings {
    /// Makes settings of what was written in the policy at `path`. What is wrong is blamed, and then nothing comes back.
    /// Other files are named relative to it.
    pub fn compile(file: &File, path: &Path, findings: &mut Findings) -> Option<Self> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let keys_file = file.clients.as_ref().and_then(|clients| clients.file.as_ref());
        let read: Vec<PathBuf> =
            keys_file.map(|name| folder.join(&name.value)).into_iter().chain([path.to_owned()]).collect();
        let mut asked = Asked { findings, wrong: false };
        let local = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        let seconds = Duration::from_secs;
        let (admin_part, timeouts, memory) = (file.admin.as_ref(), file.timeouts.as_ref(), file.memory.as_ref());
        let settings = Self {
            listen: asked.of(file.listen.as_ref(), |text| address(text), local(8080)),
            upstreams: asked.upstreams(file.upstream.as_ref()),
            header_timeout: asked.of(
                timeouts.and_then(|waits| waits.header.as_ref()),
                |wait| timeout(wait.0),
                seconds(10),
            ),
            idle_timeout: asked.of(timeouts.and_then(|waits| waits.idle.as_ref()), |wait| timeout(wait.0), seconds(60)),
            upstream_timeout: asked.of(
                timeouts.and_then(|waits| waits.upstream.as_ref()),
                |wait| timeout(wait.0),
                seconds(30),
            ),
            admin: asked.of(admin_part.and_then(|admin| admin.listen.as_ref()), |text| admin(text), local(9080)),
            access_log: file.log.as_ref().is_some_and(|log| log.access.is_some()),
            max_keys: asked.of(memory.and_then(|memory| memory.max_keys.as_ref()), |most| keys(most.0), 1_000_000),
            memory_file: asked.of(
                memory.and_then(|memory| memory.file.as_ref()),
                |name| memory_file(folder.join(name), &read).map(Some),
                None,
            ),
        };
        asked.of(admin_part.and_then(|admin| admin.token.as_ref()), |_| Err(token()), ());
        (!asked.wrong).then_some(settings)
    }
}

/// Whoever reads the file, and whether something was wrong.
struct Asked<'f> {
    findings: &'f mut Findings,
    wrong: bool,
}

impl Asked<'_> {
    /// What was said, read; or what holds when nothing is said.
    fn of<T, U>(&mut self, said: Option<&At<T>>, read: impl FnOnce(&T) -> Result<U, Fault>, unless: U) -> U {
        let Some(said) = said else { return unless };
        read(&said.value).unwrap_or_else(|fault| {
            self.blame(said.place, fault);
            unless
        })
    }

    fn upstreams(&mut self, said: Option<&Many<String>>) -> Vec<Upstream> {
        let said = said.map_or(&[] as &[_], |many| &many.0);
        let mut upstreams = Vec::with_capacity(said.len());
        for one in said {
            match Upstream::parse(&one.value) {
                Ok(Upstream::Demo) if said.len() > 1 => {
                    let hint = "write `upstream: demo` alone, or take it out";
                    self.blame(one.place, ("`demo` stands among other upstreams".to_owned(), hint));
                }
                Ok(upstream) => upstreams.push(upstream),
                Err(fault) => self.blame(one.place, fault),
            }
        }
        upstreams
    }

    fn blame(&mut self, place: Place, (message, hint): Fault) {
        self.wrong = true;
        self.findings.blame(place, message).hint(hint);
    }
}

fn token() -> Fault {
    ("`token` is not in this version".to_owned(), "take it out: the admin listener is loopback only")
}

fn address(text: &str) -> Result<SocketAddr, Fault> {
    const HINT: &str = "write an address and a port, as in 0.0.0.0:8080 or [::]:8080";
    if let Some(port) = text.strip_prefix(':').filter(|port| port.parse::<u16>().is_ok()) {
        return Err((format!("`:{port}` does not say on which address"), HINT));
    }
    // `localhost` may be two addresses, and a name may be another tomorrow.
    text.parse().map_err(|_| (format!("`{text}` is no address to listen on"), HINT))
}

fn admin(text: &str) -> Result<SocketAddr, Fault> {
    let address = address(text)?;
    if address.ip().to_canonical().is_loopback() {
        return Ok(address);
    }
    let message = format!("`{text}` can be reached from elsewhere, and this version can't guard it");
    Err((message, "listen on 127.0.0.1:9080 or [::1]:9080, and reach it through a tunnel or a proxy"))
}

fn timeout(us: u64) -> Result<Duration, Fault> {
    if (1_000..=LONGEST_US).contains(&us) {
        return Ok(Duration::from_micros(us));
    }
    Err(("a time-out lies between 1 ms and 24 hours".to_owned(), "write a length of time, as in 30s"))
}

/// The file is replaced every ten seconds, and so may be none that is read.
fn memory_file(file: PathBuf, read: &[PathBuf]) -> Result<PathBuf, Fault> {
    let places = [file.clone(), StateFile::new(file.clone()).fresh()];
    let same = |a: &Path, b: &Path| {
        a.components().eq(b.components()) || a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b))
    };
    if read.iter().any(|read| places.iter().any(|place| same(place, read))) {
        let message = "the buckets would be written over a file that this policy is read from".to_owned();
        return Err((message, "name a file of its own, as in `memory: { file: state.tope }`"));
    }
    Ok(file)
}

fn keys(amount: u64) -> Result<usize, Fault> {
    let fits = (1..=MOST_KEYS).contains(&amount);
    let keys = usize::try_from(amount).ok().filter(|_| fits);
    keys.ok_or_else(|| {
        ("`max_keys` lies between 1 and 4,294,967,296".to_owned(), "a bucket is 32 bytes; 1M is a good beginning")
    })
}

#[cfg(test)]
mod tests;
