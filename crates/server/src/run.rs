//! A node from its start to its end: opened, served, and drained when a signal says so.

use crate::auth::UsersError;
use crate::config::Config;
use crate::log::{Level, Log};
use crate::node::{Node, NodeError};
use crate::serve::{ServeError, Server};
use crate::tls::TlsError;
use lanewise_engine::scheduler::{Options, StartError};
use lanewise_engine::table::{Effort, Resources};
use lanewise_engine::{Admission, Limits, Pool, Threads};
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

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
    #[error("users: {0}")]
    Users(#[from] UsersError),
    #[error("tls: {0}")]
    Tls(#[from] TlsError),
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
    let (log, write) = Log::new(config.log_level, config.log_form, io::stderr());
    runtime.spawn_blocking(write);
    let ended = runtime.block_on(serve(config, log, ready));
    runtime.shutdown_timeout(LAST);
    ended
}

async fn serve(config: &Config, log: Log, ready: impl FnOnce(&Serving)) -> Result<Ended, RunError> {
    // Before anything is opened: a signal is never left to the system, which would end the process at once.
    let mut signals = Signals::listen()?;
    let resources = Resources {
        threads: Threads::new(config.threads),
        pool: Arc::new(Pool::start(Options::default())?),
        admission: Admission::new(config.memory_limit, WAITING),
    };
    let node = Node::open(&config.data, resources, Limits::default())?.named(&config.name);
    let node = Arc::new(node.with_repositories(config.repositories.clone()).telling(log, config.slow));
    let indices = node.cluster().indices.len();
    let address = SocketAddr::new(config.listen, config.port);
    let mut server = Server::listen(address, node.clone(), config.limits).await?;
    if let Some(users) = &config.users {
        server.set_users(users)?;
    }
    if let (Some(certificate), Some(key)) = (&config.certificate, &config.private_key) {
        server.set_tls(certificate, key)?;
    }
    let data = std::path::absolute(&config.data)?;
    let address = server.address()?;
    node.log.say(
        Level::Info,
        "serving",
        &[("address", address.to_string().into()), ("indices", indices.into())],
    );
    ready(&Serving { address, data, indices });
    let (stop, stopped) = oneshot::channel::<()>();
    let (reloads, ending) = (server.reloads(), node.clone());
    let hurry = async move {
        signals.end(&reloads).await;
        ending.log.say(Level::Info, "told to end: what is at work ends first", &[]);
        drop(stop);
        signals.end(&reloads).await;
    };
    tokio::pin!(hurry);
    let connections = server.connections();
    let drained = tokio::select! {
        cut = server.run(async { drop(stopped.await) }) => Some(cut),
        () = &mut hurry => None,
    };
    if drained.is_some() {
        // What the next start would build anew is sealed, unless somebody is in a hurry.
        let (enough, closing) = (Arc::new(AtomicBool::new(false)), node.clone());
        let told = enough.clone();
        let closed = tokio::task::spawn_blocking(move || {
            let proceed = || match told.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            };
            closing.unpin_all();
            closing.engine.close_all(&Effort::new(closing.threads, &proceed));
        });
        tokio::select! {
            _ = closed => {}
            () = &mut hurry => enough.store(true, Ordering::Relaxed),
        }
    }
    let cut = drained.unwrap_or_else(|| connections.count());
    node.log.say(Level::Info, "ended", &[("cut", cut.into())]);
    node.log.end();
    Ok(Ended { cut })
}

/// Signals: two that ask the process to end, one to read its files anew.
#[cfg(unix)]
struct Signals {
    end: [tokio::signal::unix::Signal; 2],
    reload: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn listen() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        let end = [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?];
        Ok(Signals { end, reload: signal(SignalKind::hangup())? })
    }

    /// Until the process is asked to end.
    async fn end(&mut self, reloads: &Notify) {
        let Signals { end: [interrupt, terminate], reload } = self;
        loop {
            tokio::select! {
                _ = interrupt.recv() => return,
                _ = terminate.recv() => return,
                _ = reload.recv() => reloads.notify_one(),
            }
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

    async fn end(&mut self, _: &Notify) {
        // Where the system gives no signals, none comes.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
