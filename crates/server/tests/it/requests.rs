//! Requests that nobody should send.

use crate::served::Served;
use lanewise_server::HttpLimits;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

#[test]
fn what_is_not_there_is_said_in_opensearchs_shape() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    let unknown = node.ask("GET", "/_nothing/at/all/here", "").expect(400);
    assert!(unknown["error"]["reason"].as_str().unwrap().contains("no handler found for uri"));
    let method = node.ask("POST", "/", "").expect(405);
    assert!(method["error"]["reason"].as_str().unwrap().contains("allowed: [GET, HEAD]"));
    let parameter = node.ask("GET", "/?colour=red", "").expect(400);
    assert!(parameter["error"]["reason"].as_str().unwrap().contains("unrecognized parameter: [colour]"));
    let body = node.ask("PUT", "/a", "{not json").expect(400);
    assert_eq!(body["error"]["type"], "parsing_exception");
}

#[test]
fn bodies_are_bounded_packed_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let limits = HttpLimits { body_bytes: 1000, stream_bytes: 5000, ..HttpLimits::default() };
    let node = Served::within(folder.path(), limits);
    assert_eq!(node.ask("PUT", "/a", " ".repeat(1001)).status, 413);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(" ".repeat(100_000).as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    assert!(packed.len() < 1000);
    for path in ["/a", "/_bulk"] {
        let head = format!(
            "PUT {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
            packed.len()
        );
        assert_eq!(node.raw(&[head.as_bytes(), &packed].concat()).status, 413, "{path}");
    }
    let deep = "[".repeat(100_000);
    let node = Served::new(tempfile::tempdir().unwrap().path());
    assert_eq!(node.ask("PUT", "/a", deep).status, 400);
}

#[test]
fn slow_clients_are_cut() {
    let folder = tempfile::tempdir().unwrap();
    let short = Duration::from_millis(200);
    let node = Served::within(
        folder.path(),
        HttpLimits { head_time: short, body_time: short, ..HttpLimits::default() },
    );
    let mut silent = TcpStream::connect(node.address).unwrap();
    silent.write_all(b"GET / HT").unwrap();
    let mut rest = Vec::new();
    // It is closed, with an answer or without.
    let _ = silent.read_to_end(&mut rest);
    let reply = node.raw(b"PUT /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 10\r\n\r\n{");
    assert_eq!(reply.status, 408);
    assert_eq!(node.ask("GET", "/", "").status, 200);
}
