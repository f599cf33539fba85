//! No spelling of a path avoids a rule: whatever a server could read as `/login` is in its bucket, or is 400.

use http::{Request, Uri};
use http_body_util::Empty;
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::client::post;
use crate::support::{Gateway, passed};

/// All of them are `/login`, or no path that we would judge.
const SPELLINGS: [&str; 31] = [
    "/login/",
    "//login",
    "/LOGIN",
    "/%6cogin",
    "/%6Cogin",
    "/l%4fgin",
    "/./login",
    "/x/../login",
    "/x/y/../../login",
    "/%2e/login",
    "/x/%2e%2e/login",
    "/login;a=1",
    "/login;",
    "/;a/login",
    "/login%2f",
    "/login%5c",
    "/%2flogin",
    "/login?x",
    "/login?",
    "/login%00",
    "/login%",
    "/login%zz",
    "/login/.",
    "/login/x/..",
    "/login//",
    "///login///",
    "/..;/login",
    "/x/..;/login",
    "/.;/login",
    "/\\login",
    "\\login",
];

fn gateway(encoded_slash: &str) -> Gateway {
    let limits = "limits: { login: { match: POST /login, by: ip, rate: 2/h } }\n";
    Gateway::start(&format!("paths: {{ case: ignore, encoded_slash: {encoded_slash} }}\n{limits}"))
}

#[test]
fn every_spelling_is_in_the_bucket_or_400() {
    for (encoded_slash, all_judged) in
        [("reject", &["/login%2f", "/login%5c", "/%2flogin", "/\\login"][..]), ("both", &[])]
    {
        let gateway = gateway(encoded_slash);
        let mut caller = gateway.caller();
        assert_eq!(passed(&mut caller, &post("/login"), 3), 2);
        let mut invalid = Vec::new();
        for spelling in SPELLINGS {
            let status = gateway.ask(&post(spelling)).status;
            assert!(matches!(status, 429 | 400), "{spelling}: {status} with encoded_slash: {encoded_slash}");
            if status == 400 {
                invalid.push(spelling);
            }
        }
        for spelling in all_judged {
            assert!(invalid.contains(spelling), "{spelling} is refused with encoded_slash: {encoded_slash}");
        }
        for spelling in ["/login/", "//login", "/LOGIN", "/%6cogin", "/x/../login", "/login;a=1", "/login?x"] {
            assert!(!invalid.contains(&spelling), "{spelling} is a path that people send");
        }
    }
}

#[test]
fn the_absolute_form_is_the_same_path() {
    let gateway = gateway("reject");
    let mut caller = gateway.caller();
    assert_eq!(passed(&mut caller, &post("http://localhost/login"), 3), 2);
    for target in ["http://localhost//login", "http://localhost/x/../login?a", "HTTP://localhost/LOGIN;x"] {
        assert_eq!(gateway.ask(&post(target)).status, 429, "{target}");
    }
    for target in ["http://other.example/login", "login", "http:///login"] {
        let status = gateway.ask(&post(target)).status;
        assert!(matches!(status, 429 | 400), "{target}: {status}");
    }
}

#[test]
fn what_is_another_path_is_not_counted() {
    let gateway = gateway("both");
    let mut caller = gateway.caller();
    assert_eq!(passed(&mut caller, &post("/login"), 3), 2);
    for other in ["/%252e/login", "/%25login", "/log%20in", "/login.html", "/x/login", "/login/x", "/"] {
        let answer = gateway.ask(&post(other));
        assert_eq!((answer.status, answer.limit_fields()), (200, vec![]), "{other}");
    }
}

#[test]
fn what_was_matched_is_what_is_forwarded() {
    let gateway = gateway("both");
    for (sent, forwarded) in [("//login/", "/login/"), ("/x/../%6cogin", "/login"), ("/a//b/./c%7e", "/a/b/c~")] {
        assert_eq!(gateway.ask(&post(sent)).json()["path"], forwarded, "{sent}");
    }
}

#[test]
fn http2_has_no_other_paths() {
    let gateway = gateway("both");
    let mut caller = gateway.caller();
    assert_eq!(passed(&mut caller, &post("/login"), 3), 2);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let statuses = runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(gateway.address).await.unwrap();
        let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (mut sender, connection) = handshake.await.unwrap();
        tokio::spawn(connection);
        let mut statuses = Vec::new();
        // A path that does not begin with a slash can't be written in HTTP/2 by this client.
        for spelling in SPELLINGS.into_iter().chain(["/login"]).filter(|spelling| spelling.starts_with('/')) {
            let uri: Uri = format!("http://localhost{spelling}").parse().unwrap();
            let request = Request::post(uri).body(Empty::<bytes::Bytes>::new()).unwrap();
            statuses.push((spelling, sender.send_request(request).await.unwrap().status().as_u16()));
        }
        statuses
    });
    assert_eq!(statuses.len(), SPELLINGS.len());
    for (spelling, status) in statuses {
        assert!(matches!(status, 429 | 400), "{spelling}: {status}");
    }
}
