//! SIGTERM: what is in flight ends well, nothing new begins, the exit code is 0.

use std::process::{Command, Stdio};

use crate::support::{Room, Tope, curl, free_port, nginx, until};

#[test]
fn sigterm_finishes_what_is_in_flight() {
    let (room, port) = (Room::new(), free_port());
    let sum = room.noise("large", 8);
    let slow = "location /large { limit_rate 3m; } location /in/ { dav_methods PUT; create_full_put_path on; }";
    let _nginx = nginx(&room, port, slow);
    let mut tope =
        Tope::start(&room, &format!("upstream: http://127.0.0.1:{port}\nlimits: {{ all: {{ rate: 100/min }} }}\n"));
    let at = |name: &str| room.path(name).display().to_string();
    let client = |arguments: &[&str]| {
        let mut command = Command::new("curl");
        command.args(["-sS", "--max-time", "60", "-w", "%{http_code}"]).args(arguments);
        command.stdout(Stdio::piped()).spawn().expect("this test needs curl: apt-get install curl")
    };
    let clients = [
        client(&["-o", &at("down"), &tope.url("/large")]),
        client(&["-o", &at("frames"), "--http2-prior-knowledge", &tope.url("/large")]),
        client(&["-T", &at("large"), "--limit-rate", "3m", &tope.url("/in/up")]),
    ];
    let size = |name: &str| std::fs::metadata(room.path(name)).map_or(0, |about| about.len());
    let uploading = || std::fs::read_dir(room.path("client_body")).is_ok_and(|mut files| files.next().is_some());
    until("all are in flight", || size("down") > 0 && size("frames") > 0 && uploading());
    assert!(size("down") < 8 << 20 && size("frames") < 8 << 20);
    assert_eq!(curl(&[&format!("{}/readyz", tope.admin)]).status, 200);

    tope.process.signal("TERM");
    // Operators are still answered, and see that it takes nothing new.
    until("it drains", || curl(&[&format!("{}/readyz", tope.admin)]).status == 503);
    let refused = Command::new("curl").args(["-s", "-o", "/dev/null", &tope.url("/large")]).status();
    assert_eq!(refused.expect("curl").code(), Some(7), "nobody listens any more");
    for (client, (name, status)) in clients.into_iter().zip([("down", "200"), ("frames", "200"), ("in/up", "201")]) {
        let out = client.wait_with_output().expect("it ends");
        assert!(out.status.success(), "{name}");
        assert_eq!(String::from_utf8_lossy(&out.stdout), status, "{name}");
        assert_eq!(room.sum(name), sum, "{name}");
    }
    assert_eq!(tope.process.wait().code(), Some(0));
    assert_eq!(room.read("access.log").lines().count(), 3, "{}", room.read("access.log"));
}
