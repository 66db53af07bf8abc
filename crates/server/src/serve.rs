//! Connections: taken in, within limits, until the node is told to stop; then what is at work ends first.

use crate::auth::{Guard, UsersError};
use crate::http::{HttpLimits, Peer, router};
use crate::node::Node;
use crate::reload::Reload;
use crate::tls::{Tls, TlsError};
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;
use tokio_io_timeout::TimeoutStream;
use tower_service::Service;

/// Bytes of a request's head.
const HEAD_BYTES: usize = 64 << 10;
/// What TLS begins with.
const HANDSHAKE: u8 = 22;
/// The answer to who speaks plainly where TLS is spoken.
const PLAIN: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\
    Content-Length: 32\r\n\r\nThis port speaks HTTPS, no HTTP\n";

/// A node that listens.
pub struct Server {
    listener: TcpListener,
    node: Arc<Node>,
    limits: HttpLimits,
    reload: Reload,
    connections: Connections,
}

/// The connections of a server, to be counted.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    free: Arc<Semaphore>,
    all: usize,
}

impl Connections {
    /// Those that are open.
    pub(crate) fn count(&self) -> usize {
        self.all - self.free.available_permits()
    }
}

/// Why a node does not listen.
#[derive(Debug, thiserror::Error)]
#[error("address {address}: {error}: give another address (--listen) or port (--port)")]
pub struct ServeError {
    address: SocketAddr,
    error: io::Error,
}

impl Server {
    /// Listens at `address`; port 0 is any that is free. Nobody is asked who they are, and nothing is secret.
    ///
    /// # Errors
    /// If the address is taken, or none of this machine's.
    pub async fn listen(
        address: SocketAddr,
        node: Arc<Node>,
        limits: HttpLimits,
    ) -> Result<Server, ServeError> {
        let listener = TcpListener::bind(address).await.map_err(|error| ServeError { address, error })?;
        if let Ok(address) = listener.local_addr() {
            let _ = node.address.set(address);
        }
        let all = limits.connections;
        let connections = Connections { free: Arc::new(Semaphore::new(all)), all };
        let reload = Reload { node: node.clone(), guard: None, tls: None, asked: Arc::default() };
        Ok(Server { listener, node, limits, reload, connections })
    }

    /// Lets in only those whom a file names ([`UsersFile`](crate::UsersFile)); it is read anew when it changes.
    ///
    /// # Errors
    /// If it cannot be read, others than its owner may read it, or nobody is in it.
    pub fn set_users(&mut self, path: &Path) -> Result<(), UsersError> {
        self.reload.guard = Some(Arc::new(Guard::open(path)?));
        Ok(())
    }

    /// Speaks by TLS, with a certificate (and those that signed it) and its private key, as PEM.
    ///
    /// # Errors
    /// If a file cannot be read, or they do not belong together.
    pub fn set_tls(&mut self, certificate: &Path, key: &Path) -> Result<(), TlsError> {
        self.reload.tls = Some(Arc::new(Tls::open(certificate, key)?));
        Ok(())
    }

    /// What reads users and certificate anew at once.
    pub(crate) fn reloads(&self) -> Arc<Notify> {
        self.reload.asked.clone()
    }

    /// Where it listens.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    pub(crate) fn connections(&self) -> Connections {
        self.connections.clone()
    }

    /// Answers until `stop` is ready, and then what was asked before, for as long as `limits.drain`. How many connections
    /// had not ended by then.
    pub async fn run(self, stop: impl Future<Output = ()>) -> usize {
        let Server { listener, node, limits, reload, connections } = self;
        let router = router(node.clone(), limits, reload.guard.clone());
        let tls = reload.tls.clone();
        let reload = tokio::spawn(reload.keep());
        let graceful = GracefulShutdown::new();
        let mut stop = std::pin::pin!(stop);
        loop {
            let taken = tokio::select! {
                taken = listener.accept() => taken,
                () = &mut stop => break,
            };
            let (stream, from) = match taken {
                Ok(taken) => taken,
                // No descriptors are left, or the client is gone.
                Err(_) => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    continue;
                }
            };
            let Ok(place) = connections.free.clone().try_acquire_owned() else {
                node.metrics.too_many.add();
                continue;
            };
            node.metrics.connected.add();
            let connection = Connection {
                node: node.clone(),
                router: router.clone(),
                limits,
                from: Peer(from.ip()),
                watcher: graceful.watcher(),
            };
            let tls = tls.clone();
            tokio::spawn(async move {
                connection.serve(stream, tls).await;
                drop(place);
            });
        }
        drop(listener);
        reload.abort();
        match timeout(limits.drain, graceful.shutdown()).await {
            Ok(()) => 0,
            Err(_) => connections.count(),
        }
    }
}

/// One of them.
struct Connection {
    node: Arc<Node>,
    router: Router,
    limits: HttpLimits,
    from: Peer,
    watcher: Watcher,
}

impl Connection {
    async fn serve(self, stream: TcpStream, tls: Option<Arc<Tls>>) {
        let _ = stream.set_nodelay(true);
        let Some(tls) = tls else { return self.speak(stream).await };
        let (metrics, limit) = (&self.node.metrics, self.limits.head_time);
        let mut first = [0];
        match timeout(limit, stream.peek(&mut first)).await {
            Ok(Ok(1)) if first[0] == HANDSHAKE => {}
            Ok(Ok(1)) if first[0].is_ascii_uppercase() => {
                metrics.no_tls.add();
                let mut stream = stream;
                // Read first: closing with something unread would reset the connection, and the answer be lost.
                let _ = timeout(limit, async {
                    match stream.read(&mut [0; 4096]).await? {
                        0 => Ok(()),
                        _ => stream.write_all(PLAIN).await,
                    }
                })
                .await;
                return;
            }
            _ => return metrics.no_tls.add(),
        }
        match timeout(limit, tls.acceptor().accept(stream)).await {
            Ok(Ok(stream)) => self.speak(stream).await,
            _ => metrics.no_tls.add(),
        }
    }

    async fn speak(self, stream: impl AsyncRead + AsyncWrite + Send + 'static) {
        let Connection { router, limits, from, watcher, .. } = self;
        // Of writing alone: hyper looks after what is read.
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(limits.write_time));
        let service = service_fn(move |request: Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(from);
            // A router is always ready.
            router.clone().call(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head_time)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(Box::pin(stream)), service);
        // Whatever ends a connection is between it and its client.
        let _ = watcher.watch(connection).await;
    }
}
