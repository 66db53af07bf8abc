//! `lanewise user`, `lanewise key`, and a node that has them.
#![cfg(unix)]

use crate::serve::Node;
use crate::{Ended, Folder};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

/// The program, with something to read.
fn run_with(folder: &Folder, args: &str, input: &str) -> Ended {
    let args: Vec<&str> = args.split(' ').collect();
    let mut command = folder.command(&args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    Ended::of(child.wait_with_output().unwrap())
}

#[test]
fn users_and_keys_come_and_go() {
    let folder = Folder::new();
    run_with(&folder, "user add anna --role admin --users u.toml", "correct horse\n").ok();
    run_with(&folder, "user add otto --users u.toml", "battery staple\n").ok();
    let key = folder.run("key add ingest --role write --users u.toml").ok();
    assert_eq!(folder.path("u.toml").metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let users = folder.run("user list --users u.toml").ok().out;
    assert!(users.contains("anna") && users.contains("admin") && users.contains("otto"), "{users}");
    let keys = folder.run("key list --users u.toml").ok().out;
    let id = key.err.split_once("id ").unwrap().1.split(';').next().unwrap();
    assert!(keys.contains(id) && keys.contains("ingest") && keys.contains("write"), "{keys}");
    let file = std::fs::read_to_string(folder.path("u.toml")).unwrap();
    for secret in ["horse", "staple", key.out.trim()] {
        assert!(![&file, &users, &keys].iter().any(|text| text.contains(secret)), "{secret}");
    }
    folder.run("user remove otto --users u.toml").ok();
    folder.run(&format!("key remove {id} --users u.toml")).ok();
    assert!(!folder.run("user list --users u.toml").ok().out.contains("otto"));
    folder.run("user remove otto --users u.toml").error(1, &["no user \"otto\""]);
    folder.run(&format!("key remove {id} --users u.toml")).error(1, &["no key", id]);
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let folder = Folder::new();
    run_with(&folder, "user add anna --users u.toml", "short\n").error(2, &["5 bytes", "8 to 1024"]);
    run_with(&folder, "user add an:na --users u.toml", "long enough\n").error(2, &["an:na"]);
    folder.run("user add anna --role king --users u.toml").error(2, &["king", "read, write, admin"]);
    folder.run("user add anna").error(2, &["--users"]);
    folder.run("user list --users none.toml").error(1, &["none.toml"]);
    assert!(folder.names().is_empty());
    std::fs::write(folder.path("u.toml"), "").unwrap();
    std::fs::set_permissions(folder.path("u.toml"), PermissionsExt::from_mode(0o644)).unwrap();
    folder.run("key add k --users u.toml").error(1, &["chmod 600"]);
    folder.run("serve --port 0 --users u.toml").error(1, &["users", "chmod 600"]);
    folder.run("serve --port 0 --users none.toml").error(1, &["none.toml"]);
    folder.run("serve --port 0 --tls-certificate none.pem --tls-key none.pem").error(1, &["none.pem", "PEM"]);
}

#[test]
fn a_node_lets_in_who_is_known_and_its_log_keeps_secrets() {
    let folder = Folder::new();
    run_with(&folder, "user add anna --role admin --users u.toml", "correct horse\n").ok();
    let args = "--users u.toml --set log.level=debug --set log.format=json --set slowlog.info=1ms";
    let node = Node::start(&folder, args);
    let asked = node.ask("GET / HTTP/1.1\r\nAuthorization: Basic YW5uYTpjb3JyZWN0IGhvcnNl\r\nX: ", "");
    assert!(asked.starts_with("HTTP/1.1 200"), "{asked}");
    assert!(node.ask("GET /?secret=sesame", "").starts_with("HTTP/1.1 401"));
    let wrong = node.ask("GET / HTTP/1.1\r\nAuthorization: Basic YW5uYTpiYXR0ZXJ5\r\nX: ", "");
    assert!(wrong.starts_with("HTTP/1.1 401"), "{wrong}");

    run_with(&folder, "user add otto --users u.toml", "battery staple\n").ok();
    node.signal("-HUP");
    let otto = || node.ask("GET / HTTP/1.1\r\nAuthorization: Basic b3R0bzpiYXR0ZXJ5IHN0YXBsZQ==\r\nX: ", "");
    assert!((0..5).any(|_| otto().starts_with("HTTP/1.1 200")));
    let ended = node.end("-TERM").ok();
    let lines: Vec<serde_json::Value> = ended
        .err
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect();
    let said = |what: &str| lines.iter().any(|line| line["message"] == what);
    for what in ["serving", "request", "not let in", "users were read", "ended"] {
        assert!(said(what), "{what}: {}", ended.err);
    }
    for secret in ["YW5uY", "horse", "battery", "staple", "sesame", "argon2"] {
        assert!(!ended.err.contains(secret), "{secret}: {}", ended.err);
    }
}
