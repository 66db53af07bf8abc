//! `lanewise serve`: what it says, what it refuses, and how it ends.
#![cfg(unix)]

use crate::{Ended, Folder};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

/// A node that runs in a folder.
pub(crate) struct Node {
    pub(crate) child: Child,
    /// What it said first.
    pub(crate) line: String,
    pub(crate) address: String,
}

impl Node {
    /// Started with these arguments, on any port that is free.
    pub(crate) fn start(folder: &Folder, args: &str) -> Node {
        let args = format!("serve --port 0 {args}");
        let args: Vec<&str> = args.split_whitespace().collect();
        let mut child = folder.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let Some((_, address)) = line.trim_end().rsplit_once("://") else {
            child.kill().unwrap();
            panic!("{:?}", Ended::of(child.wait_with_output().unwrap()).err);
        };
        let address = address.to_owned();
        Node { child, line, address }
    }

    /// The answer to one request.
    pub(crate) fn ask(&self, request: &str, body: &str) -> String {
        let head = format!(
            "{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all((head + body).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    pub(crate) fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Told to end, and how it did.
    pub(crate) fn end(mut self, signal: &str) -> Ended {
        self.signal(signal);
        Ended::of(std::mem::replace(&mut self.child, nobody()).wait_with_output().unwrap())
    }
}

/// A child that ends at once.
fn nobody() -> Child {
    Command::new("true").spawn().unwrap()
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_node_says_where_it_is_keeps_what_it_was_given_and_ends_in_peace() {
    let folder = Folder::new();
    for (signal, index) in [("-INT", "a"), ("-TERM", "b")] {
        let node = Node::start(&folder, "--name first");
        let data = folder.path("lanewise-data").canonicalize().unwrap();
        assert!(node.line.contains(data.to_str().unwrap()), "{}", node.line);
        assert!(node.address.starts_with("127.0.0.1:"), "{}", node.address);
        assert!(node.ask("GET /", "").contains(r#""name":"first""#));
        let made = node.ask(&format!("PUT /{index}"), "");
        assert!(made.starts_with("HTTP/1.1 200"), "{made}");
        let ended = node.end(signal).ok();
        assert!(ended.err.contains("no users are known"), "{}", ended.err);
    }
    let node = Node::start(&folder, "");
    assert!(node.line.contains("(2 indexes)"), "{}", node.line);
    node.end("-TERM").ok();
}

#[test]
fn only_the_owner_may_look_into_the_data() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    Node::start(&folder, "--data in/side").end("-TERM").ok();
    assert_eq!(folder.path("in/side").metadata().unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn what_is_taken_is_named() {
    let folder = Folder::new();
    let node = Node::start(&folder, "");
    folder
        .run("serve --port 0")
        .error(1, &["lanewise-data", "in use by another process", "give another folder"]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    folder
        .run(&format!("serve --data other --port {port}"))
        .error(1, &[&format!("127.0.0.1:{port}"), "in use", "--port"]);
    folder.run("serve --port 0 --data /proc/none").error(1, &["/proc/none"]);
    assert!(node.ask("GET /", "").starts_with("HTTP/1.1 200"));
}

#[test]
fn what_was_asked_before_the_end_is_answered_and_what_comes_after_is_not() {
    let folder = Folder::new();
    let node = Node::start(&folder, "");
    let mut slow = TcpStream::connect(&node.address).unwrap();
    let mut idle = TcpStream::connect(&node.address).unwrap();
    slow.write_all(b"PUT /late HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        .unwrap();
    // The node waits for the body when it says so: from here on the request is at work.
    let mut said = [0; 25];
    slow.read_exact(&mut said).unwrap();
    assert_eq!(&said, b"HTTP/1.1 100 Continue\r\n\r\n");
    node.signal("-TERM");
    // Whoever asks for nothing is let go at once, before the slow one is done.
    assert_eq!(idle.read(&mut [0]).unwrap(), 0);
    assert!(TcpStream::connect(&node.address).is_err());
    slow.write_all(b"{}").unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("late"), "{answer}");
    node.end("-TERM").ok();
    let node = Node::start(&folder, "");
    assert!(node.ask("GET /late", "").starts_with("HTTP/1.1 200"));
}

#[test]
fn who_does_not_end_is_cut() {
    for (args, signals) in [("--set limits.drain=200ms", 1), ("", 2)] {
        let folder = Folder::new();
        let node = Node::start(&folder, args);
        let mut slow = TcpStream::connect(&node.address).unwrap();
        slow.write_all(b"PUT /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n")
            .unwrap();
        slow.read_exact(&mut [0; 25]).unwrap();
        if signals == 2 {
            node.signal("-INT");
            // Two of one kind that come together are one.
            while TcpStream::connect(&node.address).is_ok() {}
        }
        let ended = node.end("-INT");
        assert_eq!(ended.code, Some(1), "{}", ended.err);
        assert!(ended.err.contains("1 connections were cut"), "{}", ended.err);
    }
}

#[test]
fn a_configuration_is_read_from_file_environment_and_arguments() {
    let folder = Folder::new();
    std::fs::write(folder.path("c.toml"), "name = \"file\"\ndata = \"by-file\"\n[limits]\nbody = \"10b\"\n")
        .unwrap();
    let node = Node::start(&folder, "--config c.toml --name argument --set limits.at_once=3");
    assert!(node.line.contains("by-file") && node.ask("GET /", "").contains("argument"), "{}", node.line);
    assert!(node.ask("PUT /a", "{          }").starts_with("HTTP/1.1 413"));
    node.end("-TERM").ok();

    for (text, words) in [
        ("prot = 1", &["c.toml", "`prot`", "did you mean `port`?"][..]),
        ("limits = 7", &["`limits`"]),
        ("[limits]\nbodi = \"1mb\"", &["`limits.bodi`", "`limits.body`"]),
        ("[limits]\nbody = \"much\"", &["limits.body", "\"much\"", "100mb"]),
        ("port = 65536", &["port", "65536"]),
        ("data = [1]", &["data", "give a text or a number"]),
        ("a = \nb = 1", &["c.toml", "line 1"]),
    ] {
        std::fs::write(folder.path("c.toml"), text).unwrap();
        folder.run("serve --config c.toml").error(2, words);
    }
    folder.run("serve --config missing.toml").error(2, &["missing.toml"]);
    folder.run("serve --set colour=red").error(2, &["--set", "`colour`", "docs/serve.md"]);
    folder.run("serve --port tcp://10.0.0.1:80").error(2, &["--port", "Kubernetes"]);
    let mut command = folder.command(&["serve"]);
    let ended =
        Ended::of(command.env("LANEWISE_LIMITS_BODY", "x").env("LANEWISE_FOO", "1").output().unwrap());
    ended.error(2, &["LANEWISE_LIMITS_BODY", "100mb"]);
}

#[test]
fn others_are_let_in_only_with_tls_and_users() {
    let folder = Folder::new();
    for address in ["0.0.0.0", "::", "10.1.2.3", "::ffff:10.1.2.3"] {
        folder.run(&format!("serve --listen {address}")).error(2, &[address, "TLS", "users", "127.0.0.1"]);
    }
    folder.run("serve --listen 0.0.0.0 --users u").error(2, &["TLS"]);
    folder.run("serve --listen 0.0.0.0 --tls-certificate c --tls-key k").error(2, &["lanewise user add"]);
    folder.run("serve --tls-key k").error(2, &["tls.certificate", "missing"]);
    assert!(folder.names().is_empty());
}
