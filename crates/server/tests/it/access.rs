//! Who is let in, and who is not.

use crate::served::{Reply, Served, encoded};
use lanewise_server::{HttpLimits, UsersFile};
use std::path::PathBuf;
use std::time::Duration;

/// A node whose users are in `users.toml`: reader, writer and admin, each with the password `secret-<name>`.
struct Guarded {
    _folder: tempfile::TempDir,
    path: PathBuf,
    node: Served,
}

fn users() -> UsersFile {
    let mut users = UsersFile::default();
    for (name, role) in [("reader", "read"), ("writer", "write"), ("boss", "admin")] {
        users.set_user(name, &format!("secret-{name}"), role).unwrap();
    }
    users
}

fn guarded(users: &UsersFile) -> Guarded {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.toml");
    users.write(&path).unwrap();
    let file = path.clone();
    let node = Served::with(&folder.path().join("data"), HttpLimits::default(), move |server| {
        server.set_users(&file).unwrap();
    });
    Guarded { _folder: folder, path, node }
}

fn basic(name: &str, password: &str) -> String {
    format!("Authorization: Basic {}\r\n", encoded(&format!("{name}:{password}")))
}

fn of(name: &str) -> String {
    basic(name, &format!("secret-{name}"))
}

impl Guarded {
    fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Reply {
        self.node.raw(
            format!(
                "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
                body.len()
            )
            .as_bytes(),
        )
    }
}

#[test]
fn nobody_is_let_in_without_credentials_that_are_right() {
    let node = guarded(&users());
    let wrong = [
        String::new(),
        "Authorization: \r\n".to_owned(),
        "Authorization: Basic\r\n".to_owned(),
        "Authorization: Basic !!!\r\n".to_owned(),
        format!("Authorization: Basic {}\r\n", encoded("boss")),
        format!("Authorization: Bearer {}\r\n", encoded("boss:secret-boss")),
        format!("Authorization: ApiKey {}\r\n", encoded("boss:secret-boss")),
        basic("boss", "secret-reader"),
        basic("boss", ""),
        basic("nobody", "secret-nobody"),
        basic("Boss", "secret-boss"),
    ];
    for (headers, (method, path)) in wrong
        .iter()
        .flat_map(|headers| [("GET", "/"), ("PUT", "/a"), ("GET", "/_no/such/path")].map(|to| (headers, to)))
    {
        let reply = node.ask(method, path, headers, "");
        assert!(reply.status == 401 || reply.status == 429, "{headers} {path}: {}", reply.status);
        assert_eq!(reply.json()["error"]["type"], "security_exception");
        assert_eq!(reply.head.to_lowercase().contains("www-authenticate: basic"), reply.status == 401);
        let text = format!("{}{}", reply.head, String::from_utf8_lossy(&reply.body));
        assert!(!text.contains("secret") && !text.contains("boss"), "{text}");
    }
    node.ask("GET", "/", &of("reader"), "").expect(200);
    assert_eq!(node.ask("HEAD", "/a", &of("reader"), "").status, 404);
}

#[test]
fn each_role_may_what_it_may() {
    let node = guarded(&users());
    let steps: [(&str, &str, &str, [u16; 3]); 6] = [
        ("PUT", "/a", "", [403, 403, 200]),
        ("PUT", "/a/_doc/1", "{}", [403, 201, 200]),
        ("POST", "/_bulk", "{\"delete\":{\"_index\":\"a\",\"_id\":\"7\"}}\n", [403, 200, 200]),
        ("GET", "/a/_doc/1", "", [200, 200, 200]),
        ("POST", "/a/_search", "{}", [200, 200, 200]),
        ("DELETE", "/a", "", [403, 403, 200]),
    ];
    for (method, path, body, expected) in steps {
        for (name, expected) in ["reader", "writer", "boss"].into_iter().zip(expected) {
            let reply = node.ask(method, path, &of(name), body);
            assert_eq!(
                reply.status,
                expected,
                "{name} {method} {path} {:?}",
                String::from_utf8_lossy(&reply.body)
            );
        }
    }
}

#[test]
fn keys_are_let_in_until_they_are_removed_and_others_stay() {
    let mut users = users();
    let [one, two] = ["one", "two"].map(|name| users.add_key(name, "write").unwrap());
    let node = guarded(&users);
    let of_key = |encoded: &str| format!("Authorization: ApiKey {encoded}\r\n");
    node.ask("POST", "/a/_doc", &of_key(&one.encoded), "{}").expect(201);
    assert_eq!(node.ask("PUT", "/b", &of_key(&one.encoded), "").status, 403);
    let swapped = encoded(&format!("{}:x", two.id));
    assert_eq!(node.ask("GET", "/", &of_key(&swapped), "").status, 401);
    node.ask("GET", "/", &of("reader"), "").expect(200);

    users.remove_key(&one.id).unwrap();
    users.remove_user("reader").unwrap();
    users.set_user("boss", "another secret", "read").unwrap();
    users.write(&node.path).unwrap();
    let gone = || node.ask("GET", "/", &of_key(&one.encoded), "").status == 401;
    assert!((0..100).any(|_| gone() || {
        std::thread::sleep(Duration::from_millis(100));
        false
    }));
    node.ask("GET", "/", &of_key(&two.encoded), "").expect(200);
    // What was remembered as right is forgotten.
    assert_eq!(node.ask("GET", "/", &of("reader"), "").status, 401);
    assert_eq!(node.ask("GET", "/", &of("boss"), "").status, 401);
    let boss = basic("boss", "another secret");
    node.ask("GET", "/", &boss, "").expect(200);
    assert_eq!(node.ask("PUT", "/a", &boss, "").status, 403);

    // A file that is wrong changes nothing.
    std::fs::write(&node.path, "nonsense").unwrap();
    std::thread::sleep(Duration::from_secs(3));
    node.ask("GET", "/", &boss, "").expect(200);
}

#[test]
fn guessing_is_slowed_down_and_locks_nobody_else_out() {
    let node = guarded(&users());
    // Remembered: it stays let in.
    node.ask("GET", "/", &of("boss"), "").expect(200);
    for name in ["boss", "nobody", "reader"] {
        let ask = |n: u32| node.ask("GET", "/", &basic(name, &format!("guess {n}")), "");
        let said: Vec<Reply> = (0..7).map(ask).collect();
        let statuses: Vec<u16> = said.iter().map(|reply| reply.status).collect();
        assert_eq!(statuses, [401, 401, 401, 401, 401, 429, 429], "{name}");
        assert!(said[6].head.to_lowercase().contains("retry-after: "), "{}", said[6].head);
    }
    // Even the right password waits.
    assert_eq!(node.ask("GET", "/", &of("reader"), "").status, 429);
    node.ask("GET", "/", &of("boss"), "").expect(200);
    node.ask("GET", "/", &of("writer"), "").expect(200);
    std::thread::sleep(Duration::from_millis(1100));
    node.ask("GET", "/", &of("reader"), "").expect(200);
}

/// With the right passwords at hand all at once, as when a pool of connections opens.
#[test]
#[expect(clippy::disallowed_methods, reason = "clients beside each other")]
fn many_at_once_with_right_passwords_are_all_let_in() {
    let node = guarded(&users());
    let said: Vec<u16> = std::thread::scope(|scope| {
        let ask = || node.ask("GET", "/", &of("reader"), "").status;
        let threads: Vec<_> = (0..32).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(said, [200; 32]);
}

/// Names that there are and names that there are not take as long.
#[test]
#[expect(clippy::disallowed_methods, reason = "times are compared")]
fn unknown_names_take_as_long_as_wrong_passwords() {
    let node = guarded(&users());
    let time = |name: &str, n: usize| {
        let began = std::time::Instant::now();
        assert_eq!(node.ask("GET", "/", &basic(name, &format!("guess {n}")), "").status, 401);
        began.elapsed()
    };
    let median = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2]
    };
    let (known, unknown) = (0..5).map(|n| (time("boss", n), time("nobody", n))).unzip();
    let (known, unknown) = (median(known), median(unknown));
    // Argon2 takes ten milliseconds and more; a lookup alone a hundredth of that.
    assert!(unknown * 8 > known && known * 8 > unknown, "{known:?} {unknown:?}");
}

#[test]
fn a_file_without_anybody_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.toml");
    UsersFile::default().write(&path).unwrap();
    let _node = Served::with(&folder.path().join("data"), HttpLimits::default(), move |server| {
        assert!(server.set_users(&path).unwrap_err().to_string().contains("lanewise user add"));
    });
}
