//! Clients that mean harm, over real sockets: the node answers or cuts them, and serves the others.

use crate::served::Served;
use lanewise_server::HttpLimits;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(300);
/// A wait of the tests' own: what is cut is cut long before.
const LONG: Duration = Duration::from_secs(20);

/// What comes back until the node closes the connection; nothing, if it does so without a word.
fn rest(mut stream: TcpStream) -> Vec<u8> {
    stream.set_read_timeout(Some(LONG)).unwrap();
    let mut answer = Vec::new();
    if let Err(error) = stream.read_to_end(&mut answer) {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "it was not cut: {error}");
    }
    answer
}

/// Statuses of all answers on one connection.
fn statuses(node: &Served, bytes: &[u8]) -> Vec<u16> {
    let mut stream = TcpStream::connect(node.address).unwrap();
    // The node may have closed it before all is sent.
    let _ = stream.write_all(bytes);
    let text = String::from_utf8_lossy(&rest(stream)).into_owned();
    text.split("HTTP/1.1 ").skip(1).map(|answer| answer[..3].parse().unwrap()).collect()
}

fn small(folder: &std::path::Path) -> Served {
    let limits = HttpLimits {
        head_time: SHORT,
        body_time: SHORT,
        write_time: SHORT,
        at_once: 4,
        ..HttpLimits::default()
    };
    Served::within(folder, limits)
}

#[test]
fn requests_that_two_servers_would_cut_differently_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let node = small(folder.path());
    node.ask("PUT", "/a", "").expect(200);
    let hidden = "DELETE /a HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";
    let len = hidden.len();
    for head in [
        "Content-Length: 5\r\nContent-Length: 6".to_owned(),
        "Content-Length: 0, 6".to_owned(),
        "Content-Length: +1".to_owned(),
        "Content-Length: -1".to_owned(),
        "Content-Length: 0x1".to_owned(),
        "Content-Length: 99999999999999999999".to_owned(),
        "Transfer-Encoding: gzip".to_owned(),
        "Transfer-Encoding: chunked, identity".to_owned(),
        "Transfer-Encoding : chunked".to_owned(),
        " Transfer-Encoding: chunked".to_owned(),
        "Content-Length: 1\r\n X: y".to_owned(),
        "X: a\0b".to_owned(),
        "X\u{7f}: b".to_owned(),
    ] {
        let sent = format!("PUT /b HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n{hidden}");
        assert_eq!(statuses(&node, sent.as_bytes()), [400], "{head}");
    }
    // Chunks win over a length, and nothing more is read from this connection.
    for head in [
        format!("Transfer-Encoding: chunked\r\nContent-Length: {}", len + 5),
        format!("Content-Length: {}\r\nTransfer-Encoding: chunked", len + 5),
    ] {
        let sent = format!("GET / HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n0\r\n\r\n{hidden}");
        assert_eq!(statuses(&node, sent.as_bytes()), [200], "{head}");
    }
    for chunk in ["zz\r\n", "-1\r\n", "ffffffffffffffffff\r\n", "5;x\nhello\r\n0\r\n\r\n", "1\r\nabc"] {
        let sent = format!("PUT /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}");
        let said = statuses(&node, sent.as_bytes());
        assert!(said == [400] || said == [408], "{chunk:?}: {said:?}");
    }
    node.ask("GET", "/a", "").expect(200);
    assert_eq!(node.ask("HEAD", "/b", "").status, 404);
}

#[test]
fn heads_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let node = small(folder.path());
    let long = "x".repeat(200_000);
    let many = "X: y\r\n".repeat(10_000);
    for sent in [
        format!("GET /{long} HTTP/1.1\r\nHost: x\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: x\r\nX: {long}\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: x\r\n{many}\r\n"),
        format!("{long} / HTTP/1.1\r\nHost: x\r\n\r\n"),
    ] {
        let said = statuses(&node, sent.as_bytes());
        assert!(matches!(said[..], [] | [400] | [414] | [431]), "{said:?} {}", &sent[..30]);
    }
    for sent in
        ["GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "GET / HTTP/9.9\r\n\r\n"]
    {
        assert_eq!(statuses(&node, sent.as_bytes()), [400], "{sent}");
    }
    node.ask("GET", "/", "").expect(200);
}

#[test]
fn who_sends_slowly_is_cut_and_keeps_nobody_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let node = small(folder.path());
    node.ask("PUT", "/a", "").expect(200);
    // More than may be worked on at a time: heads, bodies and bulks that do not end, connections that say nothing.
    let beginnings = [
        "GET / HTTP/1.1\r\nHost: x\r\nX: ",
        "",
        "PUT /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
        "POST /_bulk HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
        "PUT /slow HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
    ];
    let slow: Vec<TcpStream> = (0..40)
        .map(|n| {
            let mut stream = TcpStream::connect(node.address).unwrap();
            stream.write_all(beginnings[n % beginnings.len()].as_bytes()).unwrap();
            stream
        })
        .collect();
    node.ask("GET", "/a", "").expect(200);
    for stream in slow {
        let said = rest(stream);
        assert!(said.is_empty() || said.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&said));
    }
    node.ask("GET", "/a", "").expect(200);
}

#[test]
fn who_drips_a_body_is_cut_though_each_drop_comes_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let node = small(folder.path());
    for path in ["/a", "/_bulk"] {
        let mut stream = TcpStream::connect(node.address).unwrap();
        write!(stream, "PUT {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n").unwrap();
        stream.set_read_timeout(Some(SHORT / 10)).unwrap();
        let (mut said, mut drops) = ([0; 12], 0);
        while stream.read_exact(&mut said).is_err() {
            drops += 1;
            assert!(drops < 200 && stream.write_all(b" ").is_ok(), "not cut after {drops} drops");
        }
        assert_eq!(&said, b"HTTP/1.1 408", "{path}");
        assert!(drops > 2, "{drops}");
    }
}

#[test]
fn who_does_not_take_its_answer_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let node = small(folder.path());
    // As many answers as no socket holds.
    let requests = "GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(1000);
    let mut stream = TcpStream::connect(node.address).unwrap();
    stream.set_write_timeout(Some(LONG)).unwrap();
    let mut sent = 0;
    let error = loop {
        match stream.write_all(requests.as_bytes()) {
            Ok(()) => sent += 1000,
            Err(error) => break error,
        }
        assert!(sent < 10_000_000, "answers pile up");
    };
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset};
    assert!(matches!(error.kind(), ConnectionReset | BrokenPipe), "it was not cut: {error}");
    node.ask("GET", "/", "").expect(200);
}

#[test]
fn connections_beyond_the_limit_are_closed_and_places_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let limits = HttpLimits { connections: 3, ..HttpLimits::default() };
    let node = Served::within(folder.path(), limits);
    let mut held: Vec<TcpStream> = (0..3)
        .map(|_| {
            let mut stream = TcpStream::connect(node.address).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            stream.read_exact(&mut [0; 12]).unwrap();
            stream
        })
        .collect();
    assert!(rest(TcpStream::connect(node.address).unwrap()).is_empty());
    held.pop();
    let answered = || statuses(&node, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n") == [200];
    assert!((0..100).any(|_| answered() || {
        std::thread::sleep(SHORT / 10);
        false
    }));
}

#[test]
fn two_gibibytes_are_refused_after_what_the_limit_allows() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    for head in ["Content-Length: 2147483648", "Transfer-Encoding: chunked"] {
        let mut stream = TcpStream::connect(node.address).unwrap();
        write!(stream, "PUT /a HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n").unwrap();
        let piece = [b"100000\r\n", vec![b' '; 1 << 20].as_slice(), b"\r\n"].concat();
        let piece = if head.starts_with('T') { &piece[..] } else { &piece[8..8 + (1 << 20)] };
        let mut sent = 0;
        while sent < 2048 && stream.write_all(piece).is_ok() {
            sent += 1;
        }
        assert!((100..400).contains(&sent), "{sent} MiB were taken");
        let said = rest(stream);
        assert!(said.is_empty() || said.starts_with(b"HTTP/1.1 413"), "{}", String::from_utf8_lossy(&said));
    }
    node.ask("GET", "/", "").expect(200);
}

#[test]
fn bodies_share_a_budget_and_give_it_back() {
    let folder = tempfile::tempdir().unwrap();
    // Of 64 KiB of JSON, each counted sixteen times.
    let limits = HttpLimits { memory_bytes: 1 << 20, ..HttpLimits::default() };
    let node = Served::within(folder.path(), limits);
    let body = " ".repeat(40 << 10);
    let alone = node.ask("PUT", "/a", " ".repeat(70 << 10)).expect(413);
    assert!(alone["error"]["reason"].as_str().unwrap().contains("65536"), "{alone}");
    let wait = || {
        let mut stream = TcpStream::connect(node.address).unwrap();
        let head = format!("PUT /a HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len() + 2);
        stream.write_all((head + &body).as_bytes()).unwrap();
        std::thread::sleep(SHORT / 30);
        stream
    };
    let refused = || node.ask("PUT", "/b", &body).status == 429;
    // Where the other came first, the one that waits was refused.
    let waiting = (0..100).find_map(|_| Some(wait()).filter(|_| refused()));
    let mut waiting = waiting.expect("there is no room beside one that waits");
    // Another that ends: what it had is there for the next.
    waiting.write_all(b"{}").unwrap();
    waiting.read_exact(&mut [0; 12]).unwrap();
    for _ in 0..5 {
        node.ask("PUT", "/b", &body);
    }
    node.ask("GET", "/b", "").expect(200);
}

#[test]
fn json_that_is_deep_or_no_text_is_refused_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    node.ask("PUT", "/a", "").expect(200);
    let deep =
        ["[".repeat(100_000), r#"{"a":"#.repeat(100_000), r#"{"query":{"bool":{"must":["#.repeat(20_000)];
    let wrong: [&[u8]; 5] =
        [b"{\"a\":\"\xff\xfe\"}", b"\xff", b"{\"a\":\"\\ud800\"}", b"{\"a\":1e999}", b"\0"];
    let bodies = deep.iter().map(String::as_bytes).chain(wrong);
    for body in bodies {
        let lines = [b"{\"index\":{\"_index\":\"a\"}}\n", body, b"\n"].concat();
        for (method, path, body) in [
            ("PUT", "/b", body),
            ("POST", "/a/_search", body),
            ("PUT", "/a/_doc/1", body),
            ("POST", "/_aliases", body),
            ("PUT", "/a/_settings", body),
            ("POST", "/_bulk", body),
        ] {
            let reply = node.ask(method, path, body);
            assert_eq!(
                reply.status,
                400,
                "{method} {path} {:?}",
                String::from_utf8_lossy(&body[..20.min(body.len())])
            );
            reply.json();
        }
        // Each line's fate is its own.
        let bulk = node.ask("POST", "/_bulk", &lines).expect(200);
        assert_eq!(bulk["errors"], true, "{bulk}");
    }
    for path in
        ["/%ff", "/a/_doc/%c3%28", "/%2e%2e/%2e%2e/etc", "/a/_search?q=%ff%00", "//", "/../a", "/a%00"]
    {
        let status = node.ask("GET", path, "").status;
        assert!((400..500).contains(&status), "{path}: {status}");
    }
}

#[test]
fn hostile_methods_and_targets_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let node = small(folder.path());
    for (line, expected) in [
        ("PRI * HTTP/2.0", &[400, 505][..]),
        ("CONNECT evil.example:443 HTTP/1.1", &[400, 403, 405]),
        ("OPTIONS * HTTP/1.1", &[400, 405]),
        ("TRACE / HTTP/1.1", &[405]),
        ("GET http://evil.example/ HTTP/1.1", &[403]),
        ("get / HTTP/1.1", &[405]),
        ("GET  / HTTP/1.1", &[400]),
        ("GET /\u{e4} HTTP/1.1", &[400, 404]),
        ("\u{16}\u{3}\u{1}", &[400]),
    ] {
        let said = statuses(&node, format!("{line}\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes());
        assert!(said.iter().all(|status| expected.contains(status)) && said.len() <= 1, "{line}: {said:?}");
    }
    node.ask("GET", "/", "").expect(200);
}
