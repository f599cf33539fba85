use proptest::prelude::*;

use super::*;

fn parse(format: Format, line: &[u8]) -> Result<Line<'_>, Broken> {
    format.parse(line, &mut HeaderMap::new())
}

#[test]
fn json_lines_say_what_they_say() {
    let mut headers = HeaderMap::new();
    let line =
        br#"{"time": "2026-09-21T14:13:20.123456Z", "ip": "203.0.113.7", "method": "POST", "path": "/lo\u0067in?x=1",
        "headers": {"X-Api-Key": "k", "Accept": ["a", "b"]}, "status": 200, "took_us": 12, "charged": {"tokens": 175}, "cost": 3, "host": "h", "more": [1.5e9]}"#;
    let read = Format::Json.parse(line, &mut headers).expect("a good line");
    let expected = Line {
        time_us: 1_790_000_000_123_456,
        address: "203.0.113.7".parse().ok(),
        method: "POST".into(),
        target: Some("/login?x=1".into()),
        host: "h".into(),
        status: Some(200),
        took_us: Some(12),
        charged: vec![("tokens".into(), 175)],
        cost: Some(3),
        ours: None,
    };
    assert_eq!(read, expected);
    assert_eq!(headers["x-api-key"], "k");
    assert_eq!(headers.get_all("accept").iter().count(), 2);
}

#[test]
fn json_times_are_read_to_the_microsecond() {
    let cases = [
        ("1790000000.123456", 1_790_000_000_123_456),
        ("1790000000", 1_790_000_000_000_000),
        ("1790000000.1234569", 1_790_000_000_123_456),
        ("1790000000.1", 1_790_000_000_100_000),
        ("\"1790000000.000001\"", 1_790_000_000_000_001),
        ("9007199254.740991", 9_007_199_254_740_991),
        ("0", 0),
        ("\"2026-09-21T16:13:20.1+02:00\"", 1_790_000_000_100_000),
        ("\"2026-09-21 14:13:20.123456789z\"", 1_790_000_000_123_456),
        ("\"1970-01-01T00:00:00Z\"", 0),
        ("\"2024-02-29T23:59:60Z\"", 1_709_251_200_000_000),
        ("\"2000-03-01T00:00:00-00:30\"", 951_870_600_000_000),
    ];
    for (time, us) in cases {
        let line = format!(r#"{{"time":{time},"path":"/"}}"#);
        assert_eq!(parse(Format::Json, line.as_bytes()).expect("a good line").time_us, us, "{time}");
    }
}

#[test]
fn what_is_no_request_says_why() {
    let json = [
        (r#"{"path":"/"}"#, "there is no `time`"),
        (r#"{"time":1.79e9}"#, "the time has an exponent: plain decimal seconds are wanted"),
        (r#"{"time":-1}"#, "the time lies before 1970"),
        (r#"{"time":"1969-12-31T23:59:59Z"}"#, "the time lies before 1970"),
        (r#"{"time":9007199254.740992}"#, "the time lies beyond the year 2255: Unix time is wanted in seconds"),
        (r#"{"time":1790000000123}"#, "the time lies beyond the year 2255: Unix time is wanted in seconds"),
        (
            r#"{"time":99999999999999999999999999}"#,
            "the time lies beyond the year 2255: Unix time is wanted in seconds",
        ),
        (r#"{"time":"1."}"#, "the time's fraction is no decimal number"),
        (r#"{"time":"1.5x"}"#, "the time's fraction is no decimal number"),
        (r#"{"time":".5"}"#, "the time is neither RFC 3339 nor Unix seconds"),
        (r#"{"time":true}"#, "the time is neither RFC 3339 nor Unix seconds"),
        (r#"{"time":"yesterday"}"#, "the time is neither RFC 3339 nor Unix seconds"),
        (r#"{"time":"2026-02-29T00:00:00Z"}"#, "the time is not as in 2026-09-21T14:13:20.123456Z"),
        (r#"{"time":"2026-02-28T24:00:00Z"}"#, "the time is not as in 2026-09-21T14:13:20.123456Z"),
        (r#"{"time":"2026-02-28T00:00:00"}"#, "the time has no offset: Z or +02:00"),
        (r#"{"time":1,"ip":"here"}"#, "`ip` is no address"),
        (r#"{"time":1,"cost":-1}"#, "invalid value: integer `-1`, expected u32"),
        (r#"{"time":1,"cost":4294967296}"#, "invalid value: integer `4294967296`, expected u32"),
        (r#"{"time":1,"cost":1.5}"#, "invalid type: floating point `1.5`, expected u32"),
        (r#"{"time":1,"headers":{"a b":"c"}}"#, "a header's name is no field name"),
        (r#"{"time":1,"headers":{"a":"x\ny"}}"#, "the value of header `a` can't stand in a header"),
        (r#"{"time":1,"time":2}"#, "duplicate field `time`"),
        (r#"{"time":1"#, "EOF while parsing an object"),
        (r#"{"time":1} {"time":2}"#, "trailing characters"),
        (r"[1]", "not a JSON object"),
    ];
    for (line, why) in json {
        assert_eq!(parse(Format::Json, line.as_bytes()).expect_err("it is wrong").why, why, "{line}");
    }
    assert_eq!(parse(Format::Json, b"{\"time\":1,\"path\":\"/\xff\"}").expect_err("it is wrong").column, Some(20));
}

#[test]
fn combined_and_common_lines_say_what_they_say() {
    let mut headers = HeaderMap::new();
    let line = br#"203.0.113.7 - a b [17/May/2015:10:05:03 +0200] "GET /a?b=\"c\" HTTP/1.1" 200 - "http://x/" "M\x20(\\)" "192.0.2.1""#;
    let read = Format::Combined.parse(line, &mut headers).expect("a good line");
    assert_eq!(read.time_us, 1_431_849_903_000_000);
    assert_eq!(read.target.as_deref(), Some("/a?b=\"c\""));
    assert_eq!((read.method.as_ref(), read.status), ("GET", Some(200)));
    assert_eq!(headers["user-agent"], "M (\\)");
    assert_eq!(headers["referer"], "http://x/");
    assert_eq!(headers["x-forwarded-for"], "192.0.2.1");

    let targets = [
        (&b"GET / HTTP/1.1"[..], "/"),
        (b"GET /", "/"),
        (b"GET /a b HTTP/1.0", "/a%20b"),
        (br"GET /\xC3\xa4 HTTP/1.1", "/%C3%A4"),
        (b"GET /\xff HTTP/1.1", "/%FF"),
        (br"GET /\q HTTP/1.1", r"/\q"),
        (br"GET /\x4 HTTP/1.1", r"/\x4"),
        (b"GET http://h/a HTTP/1.1", "http://h/a"),
        (b"OPTIONS * HTTP/1.1", "*"),
    ];
    for (request, target) in targets {
        let line = [b"::1 - - [01/Jan/1970:00:00:00 +0000] \"", request, b"\" 400 0"].concat();
        let read = parse(Format::Combined, &line).expect("a good line");
        assert_eq!(read.target.as_deref(), Some(target));
        assert_eq!(read.time_us, 0);
    }
}

#[test]
fn broken_combined_lines_say_why_and_where() {
    let cases: [(&[u8], usize, &str); 12] = [
        (b"", 1, "the line ends too early"),
        (b"example.org - - [", 1, "the line does not begin with an address"),
        (b"::1 - - ", 9, "the time is not as in [17/May/2015:10:05:03 +0000]"),
        (b"::1 - - [17/May/2015:10:05:03 +0000", 36, "the line ends too early"),
        (b"::1 - - [17/may/2015:10:05:03 +0000] ", 9, "the time is not as in [17/May/2015:10:05:03 +0000]"),
        (b"::1 - - [31/Apr/2015:10:05:03 +0000] ", 9, "the time is not as in [17/May/2015:10:05:03 +0000]"),
        (b"::1 - - [17/May/2015:10:05:03 +0000]", 37, "the line ends too early"),
        (b"::1 - - [17/May/2015:10:05:03 +0000] \"\" 400 0", 38, "the request is not `METHOD TARGET PROTOCOL`"),
        (
            b"::1 - - [17/May/2015:10:05:03 +0000] \"\\x16\\x03 a\" 400 0",
            38,
            "the request is not `METHOD TARGET PROTOCOL`",
        ),
        (b"::1 - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" ok 0", 55, "the status is no number"),
        (
            b"::1 - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"cut",
            65,
            "the line ends inside a quoted field",
        ),
        (
            b"::1 - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"cut\\",
            65,
            "the line ends inside a quoted field",
        ),
    ];
    for (line, column, why) in cases {
        let broken = parse(Format::Combined, line).expect_err("it is wrong");
        assert_eq!((broken.column, broken.why.as_ref()), (Some(column), why), "{}", String::from_utf8_lossy(line));
    }
}

#[test]
fn our_own_log_has_the_caller() {
    let line = br#"{"time":"2026-09-21T14:13:20.123456Z","seq":7,"method":"GET","path":"/a","host":"h","status":429,
        "address":"203.0.113.7","client":"acme","plan":"pro","preflight":false,"verdict":"deny","refused_by":"api","took_us":12}"#;
    let read = parse(Format::Access, line).expect("a good line");
    let took_us = read.took_us;
    let ours = read.ours.expect("a good line");
    assert_eq!((read.time_us, ours.seq, took_us), (1_790_000_000_123_456, 7, Some(12)));
    assert_eq!((ours.client.as_deref(), ours.plan.as_deref()), (Some("acme"), Some("pro")));
    assert_eq!((ours.verdict.as_deref(), ours.refused_by.as_deref()), (Some("deny"), Some("api")));
    let anonymous = br#"{"time":1,"seq":0,"method":"GET","path":"/","address":null,"client":null,"refused_by":null}"#;
    assert_eq!(parse(Format::Access, anonymous).expect("a good line").ours.expect("a good line").client, None);
}

#[test]
fn the_first_good_line_tells_the_format() {
    let cases: [(&[u8], Option<Format>); 5] = [
        (br#"{"time":1,"path":"/"}"#, Some(Format::Json)),
        (br#"{"time":1,"seq":1,"method":"GET","path":"/"}"#, Some(Format::Access)),
        (b"::1 - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 1", Some(Format::Combined)),
        (b"# a comment", None),
        (b"{\"cut", None),
    ];
    for (line, format) in cases {
        assert_eq!(Format::detect(line), format);
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(line in proptest::collection::vec(any::<u8>(), 0..200)) {
        for format in [Format::Json, Format::Access, Format::Combined] {
            let _ = parse(format, &line);
        }
    }

    #[test]
    fn no_spoilt_line_makes_it_panic(
        which in 0..3_usize,
        spoils in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..4),
    ) {
        let good: [&[u8]; 3] = [
            br#"{"time":"2026-09-21T14:13:20.123456Z","ip":"::1","method":"GET","path":"/a","headers":{"a":"b"},"cost":1}"#,
            br#"{"time":1790000000.5,"seq":7,"method":"GET","path":"/a","address":"::1","client":"c","plan":"p"}"#,
            br#"::1 - - [17/May/2015:10:05:03 +0000] "GET /\x20 HTTP/1.1" 200 1 "-" "\"" "::1""#,
        ];
        let mut line = good[which].to_vec();
        for (at, byte, kind) in spoils {
            let at = at.index(line.len().max(1)).min(line.len());
            match kind {
                0 => line.insert(at, byte),
                1 => line.truncate(at),
                _ => if let Some(here) = line.get_mut(at) { *here = byte },
            }
        }
        for format in [Format::Json, Format::Access, Format::Combined] {
            let _ = parse(format, &line);
        }
    }

    #[test]
    fn unix_times_are_exact(us in 0..1_u64 << 53, more in "[0-9]{0,9}") {
        let text = format!("{}.{:06}{more}", us / 1_000_000, us % 1_000_000);
        prop_assert_eq!(time::unix(text.as_bytes()), Ok(us));
    }

    #[test]
    fn times_beyond_the_bound_are_refused(us in 1_u64 << 53..) {
        let text = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
        prop_assert!(time::unix(text.as_bytes()).is_err());
    }

    #[test]
    fn calendar_times_are_exact(us in 0..1_u64 << 53, quarters in -80..=80_i8) {
        let at = jiff::Timestamp::from_microsecond(us.cast_signed()).expect("a good line");
        let zone = jiff::tz::Offset::from_seconds(i32::from(quarters) * 900).expect("a good line");
        let local = at.to_zoned_datetime(zone.to_time_zone());
        let rfc = local.strftime("%Y-%m-%dT%H:%M:%S.%6f%:z").to_string();
        prop_assert_eq!(time::rfc3339(rfc.as_bytes()), Ok(us), "{}", rfc);
        let common = local.strftime("%d/%b/%Y:%H:%M:%S %z").to_string();
        prop_assert_eq!(time::common(common.as_bytes()), Ok(us / 1_000_000 * 1_000_000), "{}", common);
    }
}
