//! tope, nginx, curl and h2load: started, asked and ended.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// No wait in a test is longer.
const LONG: Duration = Duration::from_mins(1);

/// A folder that ends with its test.
pub(crate) struct Room(pub(crate) TempDir);

impl Room {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a file");
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a file of text")
    }

    /// A file of bytes that no two parts of are alike, and its checksum.
    pub(crate) fn noise(&self, name: &str, mebibytes: usize) -> String {
        let mut file = File::create(self.path(name)).expect("a file");
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut block = Vec::with_capacity(1 << 20);
        for _ in 0..mebibytes {
            block.clear();
            while block.len() < 1 << 20 {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                block.extend_from_slice(&state.to_le_bytes());
            }
            file.write_all(&block).expect("space in the temporary folder");
        }
        self.sum(name)
    }

    pub(crate) fn sum(&self, name: &str) -> String {
        let out = Command::new("sha256sum").arg(self.path(name)).output().expect("coreutils");
        assert!(out.status.success(), "{name}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).split(' ').next().unwrap_or_default().to_owned()
    }
}

/// A process that ends with its test.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Sends a signal by the process's own number.
    pub(crate) fn signal(&self, name: &str) {
        let done = Command::new("sh").args(["-c", &format!("kill -{name} {}", self.pid())]).status();
        assert!(done.expect("a shell").success(), "the process is still there");
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        let mut ended = None;
        until("the process ends", || {
            ended = self.0.try_wait().expect("a child");
            ended.is_some()
        });
        ended.expect("it has ended")
    }

    pub(crate) fn running(&mut self) -> bool {
        self.0.try_wait().expect("a child").is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `tope gateway`, with what it says.
pub(crate) struct Tope {
    pub(crate) process: Process,
    /// Where it listens.
    pub(crate) address: String,
    /// Where operators ask.
    pub(crate) admin: String,
    said: Arc<Mutex<String>>,
}

impl Tope {
    /// Starts it in `room` with this policy, on free ports; its access log is `access.log` there.
    pub(crate) fn start(room: &Room, policy: &str) -> Self {
        room.write("policy.yaml", Self::policy(policy));
        let log = File::create(room.path("access.log")).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_tope"));
        command.args(["gateway", "policy.yaml"]).current_dir(room.0.path());
        let child = command.stdin(Stdio::null()).stdout(log).stderr(Stdio::piped()).spawn();
        let mut process = Process(child.expect("the program runs"));
        let mut talk = BufReader::new(process.0.stderr.take().expect("stderr is a pipe"));
        let said = Arc::<Mutex<String>>::default();
        let heard = Arc::clone(&said);
        std::thread::spawn(move || {
            let mut line = String::new();
            while matches!(talk.read_line(&mut line), Ok(read) if read > 0) {
                heard.lock().expect("no panic").push_str(&line);
                line.clear();
            }
        });
        let mut tope = Self { process, address: String::new(), admin: String::new(), said };
        tope.hears("tope listens on ");
        let said = tope.said();
        let mut urls = said.split("http://").skip(1).map(|url| url.split(['\n', ',', '/']).next().unwrap_or_default());
        tope.address = format!("http://{}", urls.next().expect("an address"));
        tope.admin = format!("http://{}", urls.next().expect("an address"));
        tope
    }

    /// A policy as `start` writes it.
    pub(crate) fn policy(policy: &str) -> String {
        format!("listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0 }}\nlog: {{ access: json }}\n{policy}")
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }

    pub(crate) fn said(&self) -> String {
        self.said.lock().expect("no panic").clone()
    }

    /// Waits until it has said this.
    pub(crate) fn hears(&mut self, words: &str) {
        until(&format!("tope says `{words}`"), || {
            assert!(self.process.running() || self.said().contains(words), "it ended: {}", self.said());
            self.said().contains(words)
        });
    }

    /// The value of a sample of `/metrics`.
    pub(crate) fn metric(&self, sample: &str) -> u64 {
        let text = curl(&[&format!("{}/metrics", self.admin)]).body;
        let value = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("no {sample} in:\n{text}")).parse().expect("a whole number")
    }

    /// The most memory that it ever had, in MiB.
    pub(crate) fn peak_mib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.pid())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
    }
}

/// Starts nginx with this inside its `server` block, on `port`.
pub(crate) fn nginx(room: &Room, port: u16, server: &str) -> Process {
    let at = room.0.path().display();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary = temporary.map(|kind| format!("{kind}_temp_path {at}/{kind};")).concat();
    let file = room.write(
        &format!("{port}.conf"),
        format!(
            "daemon off; master_process off; pid {at}/{port}.pid; error_log {at}/{port}.error;\n\
             events {{ worker_connections 512; }}\n\
             http {{ access_log {at}/{port}.access; {temporary} client_max_body_size 0; keepalive_requests 1000000;\n\
             server {{ listen 127.0.0.1:{port}; root {at}; {server} }} }}\n"
        ),
    );
    let program = if Path::new("/usr/sbin/nginx").exists() { "/usr/sbin/nginx" } else { "nginx" };
    let child = Command::new(program).arg("-c").arg(&file).stderr(Stdio::null()).spawn();
    let mut process = Process(child.expect("this test needs nginx: apt-get install nginx"));
    until("nginx listens", || {
        assert!(process.running(), "nginx ended: {}", room.read(&format!("{port}.error")));
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    process
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port()
}

/// An answer as curl saw it.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) kind: String,
    pub(crate) body: String,
}

/// Asks with curl; bounded in time. Of several URLs the status is the last one's, and the body has all that came.
pub(crate) fn curl(arguments: &[&str]) -> Answer {
    let mut command = Command::new("curl");
    command.args(["-sS", "--max-time", "120", "-w", "\n%{http_code} %{content_type}\n"]).args(arguments);
    let out = command.output().expect("this test needs curl: apt-get install curl");
    let text = String::from_utf8_lossy(&out.stdout);
    let text = text.trim_end();
    let (body, last) = text.rsplit_once('\n').unwrap_or(("", text));
    let (status, kind) = last.split_once(' ').unwrap_or((last, ""));
    assert!(out.status.success() || status != "000", "{arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    Answer { status: status.parse().expect("a status"), kind: kind.to_owned(), body: body.to_owned() }
}

/// Waits for something that will happen; the test fails when it does not.
pub(crate) fn until(what: &str, mut happened: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !happened() {
        assert!(begun.elapsed() < LONG, "in {LONG:?} it did not happen that {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
