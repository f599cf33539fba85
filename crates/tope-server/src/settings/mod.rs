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

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use upstream::Upstream;

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

/// A value of the policy file, and its line and column there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said<T> {
    /// The value.
    pub value: T,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

/// What was written, as plain data.
#[derive(Clone, Debug, Default)]
pub struct Written<'a> {
    /// `listen`
    pub listen: Option<Said<&'a str>>,
    /// `upstream`, one or a list.
    pub upstream: Vec<Said<&'a str>>,
    /// `timeouts.header` in microseconds.
    pub header_us: Option<Said<u64>>,
    /// `timeouts.idle` in microseconds.
    pub idle_us: Option<Said<u64>>,
    /// `timeouts.upstream` in microseconds.
    pub upstream_us: Option<Said<u64>>,
    /// `admin.listen`
    pub admin: Option<Said<&'a str>>,
    /// `admin.token`: that there is one.
    pub admin_token: Option<Said<()>>,
    /// `log.access`: that it is asked for.
    pub access_log: bool,
    /// `memory.max_keys`
    pub max_keys: Option<Said<u64>>,
    /// `memory.file`
    pub memory_file: Option<&'a str>,
}

/// What is wrong with a setting, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    file: String,
    line: u32,
    column: u32,
    message: String,
    hint: &'static str,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}\nhint: {}", self.file, self.line, self.column, self.message, self.hint)
    }
}

impl std::error::Error for Wrong {}

/// What is wrong, before it is known in which file.
type Fault = (String, &'static str);

/// A bucket is 32 bytes, so this is 128 GiB of them.
const MOST_KEYS: u64 = 1 << 32;
const LONGEST_US: u64 = 24 * 3600 * 1_000_000;

impl Settings {
    /// Makes settings of what was written in `file`. Other files are named relative to its folder.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn new(written: &Written<'_>, file: &Path) -> Result<Self, Wrong> {
        let at = |line, column| {
            move |(message, hint)| Wrong { file: file.display().to_string(), line, column, message, hint }
        };
        let local = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        let listen = match written.listen {
            Some(said) => address(said.value).map_err(at(said.line, said.column))?,
            None => local(8080),
        };
        let admin = match written.admin {
            Some(said) => admin(said.value).map_err(at(said.line, said.column))?,
            None => local(9080),
        };
        if let Some(said) = written.admin_token {
            let fault =
                ("`token` is not in this version".to_owned(), "take it out: the admin listener is loopback only");
            return Err(at(said.line, said.column)(fault));
        }
        let one = |said: &Said<&str>| Upstream::parse(said.value).map_err(at(said.line, said.column));
        let upstreams = written.upstream.iter().map(one).collect::<Result<Vec<_>, _>>()?;
        if let (Some(_), Some(said)) = (upstreams.get(1), written.upstream.iter().find(|said| said.value == "demo")) {
            let fault =
                ("`demo` stands among other upstreams".to_owned(), "write `upstream: demo` alone, or take it out");
            return Err(at(said.line, said.column)(fault));
        }
        let wait = |said: Option<Said<u64>>, unless_s| match said {
            Some(said) => timeout(said.value).map_err(at(said.line, said.column)),
            None => Ok(Duration::from_secs(unless_s)),
        };
        let max_keys = match written.max_keys {
            Some(said) => keys(said.value).map_err(at(said.line, said.column))?,
            None => 1_000_000,
        };
        let folder = file.parent().unwrap_or(Path::new(""));
        Ok(Self {
            listen,
            upstreams,
            header_timeout: wait(written.header_us, 10)?,
            idle_timeout: wait(written.idle_us, 60)?,
            upstream_timeout: wait(written.upstream_us, 30)?,
            admin,
            access_log: written.access_log,
            max_keys,
            memory_file: written.memory_file.map(|name| folder.join(name)),
        })
    }
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

fn keys(amount: u64) -> Result<usize, Fault> {
    let fits = (1..=MOST_KEYS).contains(&amount);
    let keys = usize::try_from(amount).ok().filter(|_| fits);
    keys.ok_or_else(|| {
        ("`max_keys` lies between 1 and 4,294,967,296".to_owned(), "a bucket is 32 bytes; 1M is a good beginning")
    })
}

#[cfg(test)]
mod tests;
