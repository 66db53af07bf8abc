//! Appending to a log, syncing it, and dropping its old files.

use super::format::{self, HEADER, Header, RECORD_BYTES_MAX};
use super::group::Group;
use super::replay::{ReplayError, Replayed, find};
use super::{AppendError, Poisoned, Position};
use crate::checksum::Crc;
use crate::fault::{Fault, planted};
use crate::publish::{PublishError, publish, remove_temporaries};
use crate::storage::{Append, Storage};
use crate::sync::{Mutex, lock};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A log that is appended to, by any number of threads. One at a time may have a folder's log open: lock it.
#[derive(Debug)]
pub struct Log {
    storage: Arc<dyn Storage>,
    dir: PathBuf,
    identity: u64,
    /// Held while a record is written. Before that of `group`, never after.
    tail: Mutex<Tail>,
    group: Group<Target>,
}

/// What one sync makes durable.
#[derive(Clone, Debug)]
struct Target {
    file: Arc<dyn Append>,
    number: u64,
    /// Bytes of the file that it covers.
    bytes: u64,
}

#[derive(Debug)]
struct Tail {
    /// None before the first append, and after a write failed: the next append begins one.
    file: Option<Current>,
    /// Sequence number of the next record.
    next: u64,
    /// Number of the next file.
    number: u64,
    /// Number and first sequence number of each file there is.
    files: Vec<(u64, u64)>,
    /// The last file may end with a record that was refused.
    refused: bool,
    buffer: Vec<u8>,
}

struct Current {
    file: Arc<dyn Append>,
    number: u64,
    first: u64,
    bytes: u64,
    seed: Crc,
}

impl std::fmt::Debug for Current {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Current")
            .field("number", &self.number)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

/// What a buffer may keep from one record to the next.
const BUFFER_KEPT: usize = 1 << 20;

impl Log {
    /// Opens the log with this `identity` (any number that other logs do not have) in the folder `dir`: gives `each` the
    /// records from number `from` on as [`replay`](super::replay) does, makes them durable, and is ready to append
    /// behind them. A new log is an empty folder. Writes no file before the first append.
    ///
    /// # Errors
    /// As [`replay`](super::replay).
    pub fn open(
        storage: Arc<dyn Storage>,
        dir: &Path,
        identity: u64,
        from: u64,
        each: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<(Log, Replayed), ReplayError> {
        let at = |path: &Path, error| ReplayError::Io { path: path.to_owned(), error };
        remove_temporaries(&*storage, dir).map_err(|error| at(dir, error))?;
        let found = find(&*storage, dir, identity, from, each)?;
        // What a killed process left may not be on disk yet, and the next file will build on it.
        if let Some(path) = found.unsynced.filter(|_| !planted(Fault::RecoveredUnsynced)) {
            storage.sync_file(&path).map_err(|error| at(&path, error))?;
        }
        let next = found.replayed.next;
        let number = found.files.last().map_or(1, |&(last, _)| last + 1);
        let tail = Tail { file: None, next, number, files: found.files, refused: false, buffer: Vec::new() };
        let group = Group::new(next.saturating_sub(1));
        let log = Log { storage, dir: dir.to_owned(), identity, tail: Mutex::new(tail), group };
        Ok((log, found.replayed))
    }

    /// Begins a file if there is none to append to, so that a full disk is known before anything else is done.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn prepare(&self) -> Result<(), AppendError> {
        let tail = &mut *lock(&self.tail);
        self.group.synced()?;
        if tail.file.is_none() { self.begin(tail) } else { Ok(()) }
    }

    /// Appends a record, which is in order but not durable when it returns.
    ///
    /// # Errors
    /// If it is longer than [`RECORD_BYTES_MAX`], could not be written, or an earlier sync failed.
    pub fn append(&self, payload: &[u8]) -> Result<Position, AppendError> {
        if payload.len() > RECORD_BYTES_MAX {
            return Err(AppendError::TooLong { bytes: payload.len() });
        }
        let tail = &mut *lock(&self.tail);
        let synced = self.group.synced()?;
        if tail.file.is_none() {
            self.begin(tail)?;
        }
        self.write(tail, synced, Some(payload)).map_err(AppendError::Refused)?;
        let current = tail.file.as_ref().expect("just written to");
        let position = Position(tail.next);
        tail.next += 1;
        let target = Target { file: current.file.clone(), number: current.number, bytes: current.bytes };
        self.group.appended(position.0, target);
        Ok(position)
    }

    /// Returns when the record at `position`, and all before it, are durable. Threads that call it together share a sync.
    ///
    /// # Errors
    /// If a sync failed, this one or an earlier one.
    ///
    /// # Panics
    /// If `position` is another log's.
    pub fn sync(&self, position: Position) -> Result<(), Poisoned> {
        let idle = self.group.sync(position.0, |target| target.file.sync())?;
        if idle {
            self.mark();
        }
        Ok(())
    }

    /// Makes everything durable that was appended before the call. Says the last sequence number.
    ///
    /// # Errors
    /// As [`Self::sync`].
    pub fn sync_all(&self) -> Result<u64, Poisoned> {
        let last = self.last();
        self.sync(Position(last)).map(|()| last)
    }

    /// The sequence number of the last record, appended or replayed; one below the first while there is none.
    pub fn last(&self) -> u64 {
        lock(&self.tail).next.saturating_sub(1)
    }

    /// The sequence number of the last record that is known to be durable.
    pub fn durable(&self) -> u64 {
        self.group.durable()
    }

    /// Bytes of the file that is appended to; 0 if the next append begins one. By it the caller decides when to rotate.
    pub fn file_bytes(&self) -> u64 {
        lock(&self.tail).file.as_ref().map_or(0, |current| current.bytes)
    }

    /// Begins a new file, unless the present one is empty, so that the old one can be dropped. Syncs the old one.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn rotate(&self) -> Result<(), AppendError> {
        let tail = &mut *lock(&self.tail);
        self.group.synced()?;
        match &tail.file {
            Some(current) if current.first == tail.next => Ok(()),
            _ => self.begin(tail),
        }
    }

    /// Removes the files of which all records have numbers up to `sequence`, except the one that is appended to. Says how
    /// many. They are needed no more: what replays the log from now on asks for records from `sequence` + 1 on.
    ///
    /// # Errors
    /// What the system says; files that could not be removed are tried again by the next call.
    pub fn drop_through(&self, sequence: u64) -> io::Result<usize> {
        // Not under the lock: removing a large file takes a while.
        let dropped: Vec<(u64, u64)> = {
            let tail = &mut *lock(&self.tail);
            let end = if tail.file.is_none() { tail.next } else { u64::MAX };
            let ends = tail.files.iter().skip(1).map(|&(_, first)| first).chain([end]);
            let count =
                ends.take(tail.files.len()).take_while(|&end| end <= sequence.saturating_add(1)).count();
            tail.files.drain(..count).collect()
        };
        for (at, &(number, _)) in dropped.iter().enumerate() {
            match self.storage.remove(&format::path(&self.dir, number)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    lock(&self.tail).files.splice(..0, dropped[at..].iter().copied());
                    return Err(error);
                }
                _ => {}
            }
        }
        // Not synced: a file that comes back after a crash is not wanted then either, and is dropped again.
        Ok(dropped.len())
    }

    /// Syncs all, and leaves a mark that says so, by which later damage is known from a torn tail.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn close(self) -> Result<(), AppendError> {
        self.sync_all()?;
        self.group.synced()?;
        let tail = &mut *lock(&self.tail);
        match &tail.file {
            Some(current) => {
                current.file.sync().map_err(|error| self.group.poison(&error.to_string()).into())
            }
            // What it ends with is void once there is a next file.
            None if tail.refused => self.begin(tail),
            None => Ok(()),
        }
    }

    /// Begins the next file, once all records before it are durable.
    fn begin(&self, tail: &mut Tail) -> Result<(), AppendError> {
        let last = tail.next.saturating_sub(1);
        self.group.sync(last, |target| target.file.sync())?;
        tail.file = None;
        let number = tail.number;
        tail.number += 1;
        let header = Header { number, first: tail.next, identity: self.identity };
        let path = format::path(&self.dir, number);
        let file = match publish(&*self.storage, &path, &[&header.encode()]) {
            Ok(file) => Arc::from(file),
            Err(PublishError::Before(error)) => return Err(AppendError::Refused(error)),
            // Nothing would be lost, but what a folder holds whose sync failed is not to be built on.
            Err(PublishError::Unsure(error)) => return Err(self.group.poison(&error.to_string()).into()),
        };
        tail.files.push((number, tail.next));
        tail.refused = false;
        let seed = header.seed();
        tail.file = Some(Current { file, number, first: tail.next, bytes: HEADER as u64, seed });
        Ok(())
    }

    /// Vouches for what was just synced, unless a record came in, which does so itself. It is not synced: if it is
    /// lost, nothing else is.
    fn mark(&self) {
        let tail = &mut *lock(&self.tail);
        let Ok(synced) = self.group.synced() else { return };
        if tail.next == self.group.durable() + 1 && tail.file.is_some() {
            // A failure gives the file up; the next append will say so if it cannot begin another.
            let _ = self.write(tail, synced, None);
        }
    }

    /// Writes a record or a mark into the present file, and gives the file up if that fails.
    fn write(&self, tail: &mut Tail, synced: Option<Target>, payload: Option<&[u8]>) -> io::Result<()> {
        let current = tail.file.as_mut().expect("begun before");
        let synced = synced.filter(|target| target.number == current.number);
        let synced = synced.map_or(HEADER as u64, |target| target.bytes);
        format::encode(&mut tail.buffer, &current.seed, tail.next, synced, payload);
        let written = current.file.append(&tail.buffer);
        current.bytes += tail.buffer.len() as u64;
        if tail.buffer.len() > BUFFER_KEPT {
            tail.buffer = Vec::new();
        }
        if written.is_err() {
            tail.file = None;
            tail.refused = payload.is_some();
        }
        written
    }
}
