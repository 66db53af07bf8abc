//! A storage that fails when it is told to, to prove that each failure is met.
//!
//! Every call is counted, by kind if wanted, and the n-th, or all from the n-th on, can be made to fail as a broken or a
//! full disk does. So a test runs a history once to count its calls, and then once more for each of them. What is
//! [planted](crate::fault) of syncs and renames is carried out here too.

use crate::fault::{Fault, planted};
use crate::publish::is_temporary;
use crate::storage::{Append, Bytes, Entry, Held, Storage};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The calls of [`Storage`] and [`Append`] that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are named after the calls")]
pub enum Call {
    Create,
    Open,
    Append,
    Sync,
    SyncFile,
    Rename,
    Remove,
    Link,
    List,
    CreateDir,
    RemoveDir,
    SyncDir,
    Lock,
    FreeBytes,
}

impl Call {
    /// All of them.
    pub const ALL: [Call; 14] = [
        Call::Create,
        Call::Open,
        Call::Append,
        Call::Sync,
        Call::SyncFile,
        Call::Rename,
        Call::Remove,
        Call::Link,
        Call::List,
        Call::CreateDir,
        Call::RemoveDir,
        Call::SyncDir,
        Call::Lock,
        Call::FreeBytes,
    ];

    /// Those that need room on the disk.
    pub const WRITES: [Call; 6] =
        [Call::Create, Call::Append, Call::Link, Call::CreateDir, Call::Rename, Call::Lock];

    fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// What a failing call meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A broken disk (`EIO`); an append has then written everything.
    Broken,
    /// A full disk (`ENOSPC`); an append has then written half.
    Full,
    /// No more open files (`EMFILE`).
    Handles,
    /// A mistake in the program: the call panics.
    Panic,
}

impl From<Failure> for io::Error {
    /// As the system makes it, so that its text is known from real ones.
    fn from(failure: Failure) -> io::Error {
        #[cfg(unix)]
        let code = match failure {
            Failure::Broken | Failure::Panic => libc::EIO,
            Failure::Full => libc::ENOSPC,
            Failure::Handles => libc::EMFILE,
        };
        #[cfg(unix)]
        return io::Error::from_raw_os_error(code);
        #[cfg(not(unix))]
        match failure {
            Failure::Full => io::ErrorKind::StorageFull.into(),
            Failure::Broken | Failure::Handles | Failure::Panic => io::ErrorKind::Other.into(),
        }
    }
}

/// Which calls fail, and how.
#[derive(Clone, Debug)]
struct Plan {
    kinds: u32,
    /// How many calls of those kinds succeed first.
    after: u64,
    /// Whether only one fails.
    once: bool,
    failure: Failure,
}

#[derive(Debug, Default)]
struct State {
    /// Of each kind.
    calls: [u64; Call::ALL.len()],
    /// Of the plan's kinds, since it was made.
    seen: u64,
    failed: u64,
    plan: Option<Plan>,
}

#[derive(Debug, Default)]
struct Shared(Mutex<State>);

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call, which fails if it is its turn.
    fn call(&self, call: Call) -> Result<(), Failure> {
        let state = &mut *self.state();
        state.calls[call as usize] += 1;
        let Some(plan) = state.plan.as_ref().filter(|plan| plan.kinds & call.bit() != 0) else {
            return Ok(());
        };
        state.seen += 1;
        if state.seen <= plan.after || (plan.once && state.seen > plan.after + 1) {
            return Ok(());
        }
        state.failed += 1;
        assert!(plan.failure != Failure::Panic, "a mistake that was planted");
        Err(plan.failure)
    }
}

/// A storage around another one. Clones fail together.
#[derive(Clone, Debug)]
pub struct Faulty {
    inner: Arc<dyn Storage>,
    shared: Arc<Shared>,
}

impl Faulty {
    /// Nothing fails at first.
    pub fn new(inner: Arc<dyn Storage>) -> Faulty {
        Faulty { inner, shared: Arc::default() }
    }

    /// From now on lets `after` calls of these kinds pass and fails the next one (`once`), or all that follow.
    pub fn fail(&self, kinds: &[Call], after: u64, once: bool, failure: Failure) {
        let state = &mut *self.shared.state();
        let kinds = kinds.iter().fold(0, |bits, kind| bits | kind.bit());
        state.plan = Some(Plan { kinds, after, once, failure });
        state.seen = 0;
    }

    /// Nothing fails any more.
    pub fn heal(&self) {
        self.shared.state().plan = None;
    }

    /// How many calls of these kinds there were.
    pub fn calls(&self, kinds: &[Call]) -> u64 {
        let state = self.shared.state();
        kinds.iter().map(|&kind| state.calls[kind as usize]).sum()
    }

    /// How many calls were made to fail.
    pub fn failed(&self) -> u64 {
        self.shared.state().failed
    }
}

impl Storage for Faulty {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Append>> {
        self.shared.call(Call::Create)?;
        let inner = self.inner.create(path)?;
        Ok(Box::new(Growing {
            inner,
            shared: self.shared.clone(),
            late: AtomicBool::new(is_temporary(path)),
        }))
    }

    fn open(&self, path: &Path) -> io::Result<Bytes> {
        self.shared.call(Call::Open)?;
        self.inner.open(path)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        self.shared.call(Call::SyncFile)?;
        if planted(Fault::SyncDropped) {
            return Ok(());
        }
        self.inner.sync_file(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.shared.call(Call::Rename)?;
        self.inner.rename(from, to)?;
        if planted(Fault::RenamedBeforeSync) && is_temporary(from) {
            self.inner.sync_dir(crate::storage::folder(to))?;
            self.inner.sync_file(to)?;
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.shared.call(Call::Remove)?;
        self.inner.remove(path)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.shared.call(Call::Link)?;
        self.inner.link(from, to)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        self.shared.call(Call::List)?;
        self.inner.list(dir)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.shared.call(Call::CreateDir)?;
        self.inner.create_dir(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.shared.call(Call::RemoveDir)?;
        self.inner.remove_dir(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.shared.call(Call::SyncDir)?;
        if planted(Fault::SyncDirDropped) {
            return Ok(());
        }
        self.inner.sync_dir(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Held>> {
        self.shared.call(Call::Lock)?;
        self.inner.lock(path)
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.shared.call(Call::FreeBytes)?;
        self.inner.free_bytes()
    }
}

#[derive(Debug)]
struct Growing {
    inner: Box<dyn Append>,
    shared: Arc<Shared>,
    /// Its first sync is one that [`Fault::RenamedBeforeSync`] puts off.
    late: AtomicBool,
}

impl Append for Growing {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        if let Err(failure) = self.shared.call(Call::Append) {
            let written = match failure {
                Failure::Broken => bytes.len(),
                Failure::Full => bytes.len() / 2,
                Failure::Handles | Failure::Panic => 0,
            };
            self.inner.append(&bytes[..written])?;
            return Err(failure.into());
        }
        self.inner.append(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.shared.call(Call::Sync)?;
        // Relaxed: whoever syncs a file that has no name yet is alone with it.
        let late = self.late.swap(false, Ordering::Relaxed) && planted(Fault::RenamedBeforeSync);
        if planted(Fault::SyncDropped) || late {
            return Ok(());
        }
        self.inner.sync()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }
}
