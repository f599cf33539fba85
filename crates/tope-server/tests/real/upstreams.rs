//! What goes wrong behind the gateway is told as what it is, and is over when it is over.

use std::time::Duration;

use crate::support::{Room, Tope, curl, free_port, nginx, until};

const YES: &str = "location / { return 200 \"yes\\n\"; }";

fn policy(upstream: &str) -> String {
    format!("upstream: {upstream}\ntimeouts: {{ upstream: 500ms }}\nlimits: {{ all: {{ by: ip, rate: 1000/min }} }}\n")
}

#[test]
fn an_upstream_is_killed_and_comes_back() {
    let (room, port) = (Room::new(), free_port());
    let first = nginx(&room, port, YES);
    let mut tope = Tope::start(&room, &policy(&format!("http://127.0.0.1:{port}")));
    assert_eq!(curl(&[&tope.url("/")]).status, 200);
    drop(first);
    for _ in 0..3 {
        let down = curl(&[&tope.url("/")]);
        assert_eq!((down.status, down.kind.as_str()), (502, "application/problem+json"), "{}", down.body);
        assert!(down.body.contains("\"status\":502"), "{}", down.body);
    }
    let _second = nginx(&room, port, YES);
    let back = curl(&[&tope.url("/")]);
    assert_eq!((back.status, back.body.trim()), (200, "yes"), "at once, by the same process");
    assert!(tope.process.running());
}

#[test]
fn an_upstream_that_stands_still_is_504() {
    let (room, port) = (Room::new(), free_port());
    let nginx = nginx(&room, port, YES);
    let tope = Tope::start(&room, &policy(&format!("http://127.0.0.1:{port}")));
    assert_eq!(curl(&[&tope.url("/")]).status, 200);
    nginx.signal("STOP");
    let still = curl(&[&tope.url("/")]);
    assert_eq!((still.status, still.kind.as_str()), (504, "application/problem+json"), "{}", still.body);
    nginx.signal("CONT");
    until("it answers again", || curl(&[&tope.url("/")]).status == 200);
}

#[test]
fn two_upstreams_take_turns_and_one_is_enough() {
    let (room, ports) = (Room::new(), [free_port(), free_port()]);
    let [one, two] = ports.map(|port| nginx(&room, port, &format!("location / {{ return 200 \"{port}\\n\"; }}")));
    let upstreams = ports.map(|port| format!("http://127.0.0.1:{port}")).join(", ");
    let tope = Tope::start(&room, &policy(&format!("[{upstreams}]")));
    // One connection, so one worker, which has turns of its own.
    let twenty = || curl(&[&tope.url("/[1-20]")]);
    let answers = twenty();
    let by: Vec<&str> = answers.body.lines().filter(|line| line.parse::<u16>().is_ok()).collect();
    for port in ports {
        let port = port.to_string();
        assert_eq!(by.iter().filter(|one| **one == port).count(), 10, "{}", answers.body);
    }
    assert!(by.windows(2).all(|pair| pair[0] != pair[1]), "{}", answers.body);

    drop(one);
    let answers = twenty();
    assert_eq!(answers.body.matches(&ports[1].to_string()).count(), 20, "{}", answers.body);
    drop(two);
    assert_eq!(curl(&[&tope.url("/")]).status, 502);
    let _one = nginx(&room, ports[0], &format!("location / {{ return 200 \"{}\\n\"; }}", ports[0]));
    until("the first is asked again", || {
        std::thread::sleep(Duration::from_millis(100));
        curl(&[&tope.url("/")]).status == 200
    });
}
