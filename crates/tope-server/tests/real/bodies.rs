//! Bodies larger than any buffer: whole at the other end, and never in tope's memory.

use crate::support::{Room, Tope, curl, free_port, nginx};

const MEBIBYTES: usize = 200;
/// What tope may have in memory at its peak, its table of 10,000 keys included.
const MOST_MIB: u64 = 64;

#[test]
fn two_hundred_mebibytes_pass_both_ways_and_stay_nowhere() {
    let (room, port) = (Room::new(), free_port());
    let sum = room.noise("large", MEBIBYTES);
    let _nginx = nginx(&room, port, "location /in/ { dav_methods PUT; create_full_put_path on; }");
    let tope = Tope::start(
        &room,
        &format!(
            "upstream: http://127.0.0.1:{port}\nmemory: {{ max_keys: 10k }}\nlimits: {{ all: {{ rate: 100/min }} }}\n"
        ),
    );
    let (at, large) = (|name: &str| room.path(name).display().to_string(), room.path("large"));

    let down = curl(&["-o", &at("down"), &tope.url("/large")]);
    assert_eq!((down.status, room.sum("down")), (200, sum.clone()));
    let up = curl(&["-T", &at("large"), &tope.url("/in/known")]);
    assert_eq!((up.status, room.sum("in/known")), (201, sum.clone()), "{}", up.body);
    // From a pipe curl knows no length: chunks over HTTP/1.1, frames over HTTP/2.
    for (version, name) in [("--http1.1", "in/chunks"), ("--http2-prior-knowledge", "in/frames")] {
        let chunks = curl_from(&large, &[version, "-T", "-", &tope.url(&format!("/{name}"))]);
        assert_eq!((chunks, room.sum(name)), (201, sum.clone()), "{version}");
    }
    let peak = tope.peak_mib();
    println!("4 x {MEBIBYTES} MiB passed; tope's peak: {peak} MiB");
    assert!(peak < MOST_MIB, "{peak} MiB at the peak");
}

fn curl_from(file: &std::path::Path, arguments: &[&str]) -> u16 {
    let input = std::fs::File::open(file).expect("a file");
    let mut command = std::process::Command::new("curl");
    command.args(["-sS", "--max-time", "120", "-o", "/dev/null", "-w", "%{http_code}"]).args(arguments);
    let out = command.stdin(input).output().expect("this test needs curl: apt-get install curl");
    String::from_utf8_lossy(&out.stdout).parse().unwrap_or_else(|_| panic!("{out:?}"))
}
