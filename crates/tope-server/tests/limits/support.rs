//! The built program on free ports with a policy of its own, ended with its test.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::client::{Answer, Ask, Caller, get};

/// No wait in a test is longer.
pub(crate) const LONG: Duration = Duration::from_mins(1);

/// What every policy here begins with: free ports.
const PORTS: &str = "listen: 127.0.0.1:0\nadmin: { listen: 127.0.0.1:0 }\n";

/// A running `tope gateway`.
pub(crate) struct Gateway {
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
    /// Where its policy and its access log are.
    pub(crate) folder: PathBuf,
    child: Child,
    talk: Talk,
    own: Option<TempDir>,
}

impl Gateway {
    /// A policy in a folder of its own; `upstream: demo` unless it says otherwise.
    pub(crate) fn start(policy: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut gateway = Self::start_in(folder.path(), policy, &[]);
        gateway.own = Some(folder);
        gateway
    }

    /// Also with other arguments, and a folder that outlives it.
    pub(crate) fn start_in(folder: &Path, policy: &str, arguments: &[&str]) -> Self {
        write_policy(folder, policy);
        Self::start_file(&folder.join("policy.yaml"), arguments)
    }

    /// A policy file that is there.
    pub(crate) fn start_file(file: &Path, arguments: &[&str]) -> Self {
        let folder = file.parent().unwrap().to_owned();
        let log = File::options().create(true).append(true).open(folder.join("access.log")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tope"));
        command.arg("gateway").arg(file).args(["--workers", "2"]).args(arguments);
        let mut child = command.stdin(Stdio::null()).stdout(log).stderr(Stdio::piped()).spawn().unwrap();
        let talk = Talk::listen(BufReader::new(child.stderr.take().unwrap()));
        let line = talk.wait_for("tope listens on http://", 0);
        let (_, rest) = line.split_once("http://").unwrap();
        let (address, rest) = rest.split_once(", metrics on http://").unwrap();
        let (admin, _) = rest.split_once("/metrics").unwrap();
        let (address, admin) = (address.parse().unwrap(), admin.parse().unwrap());
        Self { address, admin, folder, child, talk, own: None }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A connection from 127.0.0.1.
    pub(crate) fn caller(&self) -> Caller {
        Caller::connect(self.address)
    }

    /// A connection from another address of this machine, such as 127.0.0.7.
    pub(crate) fn caller_from(&self, address: &str) -> Caller {
        Caller::connect_from(address, self.address)
    }

    /// One request on a connection of its own.
    pub(crate) fn ask(&self, ask: &Ask) -> Answer {
        self.caller().ask(ask)
    }

    /// How much has been said so far: where to look for what comes.
    pub(crate) fn said(&self) -> usize {
        self.talk.lines.0.lock().unwrap().0.len()
    }

    /// Waits for a line on standard error, after the first `from` lines.
    pub(crate) fn wait_for(&self, text: &str, from: usize) -> String {
        self.talk.wait_for(text, from)
    }

    /// Everything said after the first `from` lines.
    pub(crate) fn talk(&self, from: usize) -> String {
        self.talk.lines.0.lock().unwrap().0[from..].join("\n")
    }

    pub(crate) fn signal(&self, signal: &str) {
        let kill = format!("kill -{signal} {}", self.pid());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// Writes another policy and has it read by SIGHUP; what was said until it was in force, or until it was not.
    pub(crate) fn reload(&self, policy: &str) -> String {
        let from = self.said();
        write_policy(&self.folder, policy);
        self.signal("HUP");
        self.wait_for("in force", from);
        self.talk(from)
    }

    /// SIGTERM, and the end.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        self.signal("TERM");
        self.end()
    }

    /// Waits for the end.
    pub(crate) fn end(&mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begun.elapsed() < LONG, "it does not end:\n{}", self.talk(0));
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Bytes of memory that it occupies.
    pub(crate) fn rss(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    /// The samples of `/metrics`, by name and labels.
    pub(crate) fn metrics(&self) -> BTreeMap<String, String> {
        let answer = Caller::connect(self.admin).ask(&get("/metrics"));
        assert_eq!(answer.status, 200);
        let samples = answer.text().lines().filter(|line| !line.starts_with('#'));
        samples.map(|line| line.rsplit_once(' ').unwrap()).map(|(name, value)| (name.into(), value.into())).collect()
    }

    /// One counter; zero when it is not there.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        self.metrics().get(name).map_or(0, |value| value.parse().unwrap())
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let _ = writeln!(std::io::stderr(), "the gateway said:\n{}", self.talk(0));
        }
    }
}

/// The text of a policy file with free ports.
pub(crate) fn policy_text(policy: &str) -> String {
    let demo = if policy.contains("upstream:") { "" } else { "upstream: demo\n" };
    format!("{PORTS}{demo}{policy}")
}

pub(crate) fn write_policy(folder: &Path, policy: &str) {
    std::fs::write(folder.join("policy.yaml"), policy_text(policy)).unwrap();
}

/// How many of so many equal requests are answered with 200; all others must be refused with 429.
pub(crate) fn passed(caller: &mut Caller, ask: &Ask, times: usize) -> usize {
    let answers = (0..times).map(|_| caller.ask(ask).status);
    answers.inspect(|status| assert!(matches!(status, 200 | 429), "{status}")).filter(|status| *status == 200).count()
}

/// Standard error, line by line.
struct Talk {
    lines: Arc<Lines>,
}

/// What was said, whether that is all, and who waits for more.
type Lines = (Mutex<(Vec<String>, bool)>, Condvar);

impl Talk {
    fn listen(reader: impl BufRead + Send + 'static) -> Self {
        let lines = Arc::<Lines>::default();
        let shared = Arc::clone(&lines);
        std::thread::spawn(move || {
            for line in reader.lines().map_while(Result::ok) {
                shared.0.lock().unwrap().0.push(line);
                shared.1.notify_all();
            }
            shared.0.lock().unwrap().1 = true;
            shared.1.notify_all();
        });
        Self { lines }
    }

    fn wait_for(&self, text: &str, from: usize) -> String {
        let begun = Instant::now();
        let mut lines = self.lines.0.lock().unwrap();
        loop {
            if let Some(line) = lines.0[from..].iter().find(|line| line.contains(text)) {
                return line.clone();
            }
            let said = lines.0.join("\n");
            let left = LONG.checked_sub(begun.elapsed());
            let (false, Some(left)) = (lines.1, left) else {
                drop(lines);
                panic!("`{text}` was not said:\n{said}");
            };
            lines = self.lines.1.wait_timeout(lines, left).unwrap().0;
        }
    }
}
