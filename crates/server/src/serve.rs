//! Connections: taken in, within limits, until the node is told to stop; then what is at work ends first.

use crate::http::{HttpLimits, router};
use crate::node::Node;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Bytes of a request's head.
const HEAD_BYTES: usize = 64 << 10;

/// A node that listens.
pub struct Server {
    listener: TcpListener,
    node: Arc<Node>,
    limits: HttpLimits,
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
    /// Listens at `address`; port 0 is any that is free.
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
        Ok(Server {
            listener,
            node,
            limits,
            connections: Connections { free: Arc::new(Semaphore::new(all)), all },
        })
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
        let Server { listener, node, limits, connections } = self;
        let router = router(node, limits);
        let graceful = GracefulShutdown::new();
        let mut stop = std::pin::pin!(stop);
        loop {
            let taken = tokio::select! {
                taken = listener.accept() => taken,
                () = &mut stop => break,
            };
            let stream = match taken {
                Ok((stream, _)) => stream,
                // No descriptors are left, or the client is gone.
                Err(_) => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    continue;
                }
            };
            let Ok(place) = connections.free.clone().try_acquire_owned() else { continue };
            let _ = stream.set_nodelay(true);
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.head_time)
                .max_buf_size(HEAD_BYTES)
                .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router.clone()));
            let connection = graceful.watch(connection);
            tokio::spawn(async move {
                // Whatever ends a connection is between it and its client.
                let _ = connection.await;
                drop(place);
            });
        }
        drop(listener);
        match tokio::time::timeout(limits.drain, graceful.shutdown()).await {
            Ok(()) => 0,
            Err(_) => connections.count(),
        }
    }
}
