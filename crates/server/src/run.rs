//! A node from its start to its end: opened, served, and drained when a signal says so.

use crate::config::Config;
use crate::node::{Node, NodeError};
use crate::serve::{ServeError, Server};
use lanewise_engine::scheduler::{Options, StartError};
use lanewise_engine::table::Resources;
use lanewise_engine::{Admission, Limits, Pool, Threads};
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Searches, merges and openings that wait for memory.
const WAITING: NonZeroUsize = NonZeroUsize::new(1024).unwrap();
/// How long threads that still work may take, once nobody waits for them.
const LAST: Duration = Duration::from_secs(1);

/// Why a node does not start, or does not go on.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum RunError {
    #[error(transparent)]
    Node(#[from] NodeError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error(transparent)]
    Pool(#[from] StartError),
    #[error("the system gives no threads, or no signals: {0}")]
    System(#[from] io::Error),
}

/// A node that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serving {
    /// Where.
    pub address: SocketAddr,
    /// What: the folder of its data, from the root.
    pub data: PathBuf,
    /// The indexes that it has.
    pub indices: usize,
}

/// How a node ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Connections that had to be cut: what they asked for was not done in time.
    pub cut: usize,
}

/// Serves as `config` says, until SIGINT or SIGTERM; then what is at work ends first, or is cut by a second signal, or after
/// `limits.drain`. `ready` is told once requests are taken.
///
/// # Errors
/// If the folder or the address is taken, or the system fails.
pub fn run(config: &Config, ready: impl FnOnce(&Serving)) -> Result<Ended, RunError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(serve(config, ready));
    runtime.shutdown_timeout(LAST);
    ended
}

async fn serve(config: &Config, ready: impl FnOnce(&Serving)) -> Result<Ended, RunError> {
    // Before anything is opened: a signal is never left to the system, which would end the process at once.
    let mut signals = Signals::listen()?;
    let resources = Resources {
        threads: Threads::new(config.threads),
        pool: Arc::new(Pool::start(Options::default())?),
        admission: Admission::new(config.memory_limit, WAITING),
    };
    let node = Arc::new(Node::open(&config.data, resources, Limits::default())?.named(&config.name));
    let indices = node.cluster().indices.len();
    let address = SocketAddr::new(config.listen, config.port);
    let server = Server::listen(address, node, config.limits).await?;
    let data = std::path::absolute(&config.data)?;
    ready(&Serving { address: server.address()?, data, indices });
    let (stop, stopped) = oneshot::channel::<()>();
    let hurry = async move {
        signals.next().await;
        drop(stop);
        signals.next().await;
    };
    tokio::pin!(hurry);
    let connections = server.connections();
    let cut = tokio::select! {
        cut = server.run(async { drop(stopped.await) }) => cut,
        () = &mut hurry => connections.count(),
    };
    Ok(Ended { cut })
}

/// Signals that ask the process to end.
#[cfg(unix)]
struct Signals([tokio::signal::unix::Signal; 2]);

#[cfg(unix)]
impl Signals {
    fn listen() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals([signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?]))
    }

    async fn next(&mut self) {
        let [interrupt, terminate] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn listen() -> io::Result<Signals> {
        Ok(Signals)
    }

    async fn next(&mut self) {
        // Where the system gives no signals, none comes.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
