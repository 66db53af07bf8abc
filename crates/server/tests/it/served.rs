//! A node on a free port, and one request after the other.

use lanewise_engine::scheduler::Options;
use lanewise_engine::table::Resources;
use lanewise_engine::{Admission, Limits, Pool, Threads};
use lanewise_server::{HttpLimits, Node, Server};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// The status' line, and the headers.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| {
            panic!("{error}: {} {:?}", self.status, String::from_utf8_lossy(&self.body))
        })
    }

    /// The JSON of an answer that has this status.
    #[track_caller]
    pub(crate) fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        self.json()
    }
}

impl Served {
    pub(crate) fn new(folder: &Path) -> Served {
        Served::within(folder, HttpLimits::default())
    }

    pub(crate) fn within(folder: &Path, limits: HttpLimits) -> Served {
        Served::with(folder, limits, |_| {})
    }

    #[expect(clippy::disallowed_methods, reason = "the node runs beside the test")]
    pub(crate) fn with(
        folder: &Path,
        limits: HttpLimits,
        prepare: impl FnOnce(&mut Server) + Send + 'static,
    ) -> Served {
        let resources = Resources {
            threads: Threads::new(None),
            pool: Arc::new(Pool::start(Options::default()).unwrap()),
            admission: Admission::usual(),
        };
        let node = Node::open(folder, resources, Limits::default()).unwrap();
        let node = Arc::new(node.with_repositories(vec![folder.join("repos")]));
        let (stop, stopped) = oneshot::channel();
        let (bound, address) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async {
                let mut server = Server::listen("127.0.0.1:0".parse().unwrap(), node, limits).await.unwrap();
                prepare(&mut server);
                bound.send(server.address().unwrap()).unwrap();
                server.run(async { drop(stopped.await) }).await;
            });
        });
        Served { address: address.recv().unwrap(), stop: Some(stop), thread: Some(thread) }
    }

    /// One request on a connection of its own.
    pub(crate) fn ask(&self, method: &str, path: &str, body: impl AsRef<[u8]>) -> Reply {
        let body = body.as_ref();
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n");
        if !body.is_empty() {
            head += &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
        }
        self.raw(&[(head + "\r\n").as_bytes(), body].concat())
    }

    /// These bytes, and what comes back until the node closes the connection.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Reply {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("an HTTP answer");
        let head = String::from_utf8(answer[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        assert!(!head.to_lowercase().contains("transfer-encoding"), "bodies come whole");
        Reply { status, head, body: answer[end + 4..].to_vec() }
    }
}

/// Base64, as credentials are sent.
pub(crate) fn encoded(text: &str) -> String {
    use base64::Engine;
    base64::prelude::BASE64_STANDARD.encode(text)
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}
