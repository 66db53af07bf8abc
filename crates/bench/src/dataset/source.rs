//! A file that is read once from front to back, and never trusted: its length bounds every allocation, and its place
//! goes into every error.

use super::DatasetError;
use lanewise_engine::topology::Machine;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// Bytes that are decoded at a time, a multiple of every element's size.
const CHUNK: usize = 64 << 10;

/// An open file, its length, and how far it was read.
pub(super) struct Source {
    path: PathBuf,
    file: BufReader<File>,
    len: u64,
    at: u64,
    chunk: Vec<u8>,
}

impl Source {
    pub(super) fn open(path: &Path) -> Result<Self, DatasetError> {
        let fail = |error| DatasetError::Io { path: path.to_owned(), error };
        // A pipe would block in `open` until somebody writes, so the kind is checked first.
        let metadata = std::fs::metadata(path).map_err(fail)?;
        if !metadata.is_file() {
            return Err(fail(io::Error::new(io::ErrorKind::InvalidInput, "not a file: give a regular file")));
        }
        let file = File::open(path).map_err(fail)?;
        let len = file.metadata().map_err(fail)?.len();
        Ok(Source {
            path: path.to_owned(),
            file: BufReader::with_capacity(CHUNK, file),
            len,
            at: 0,
            chunk: Vec::new(),
        })
    }

    /// Bytes of the file.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Bytes not read yet.
    pub(super) fn left(&self) -> u64 {
        self.len - self.at
    }

    /// An error at byte `offset`.
    pub(super) fn malformed(&self, offset: u64, what: impl Into<String>) -> DatasetError {
        DatasetError::Malformed { path: self.path.clone(), offset, what: what.into() }
    }

    /// An error at the place where the file is read next.
    pub(super) fn malformed_here(&self, what: impl Into<String>) -> DatasetError {
        self.malformed(self.at, what)
    }

    /// The next bytes, all of `target`.
    pub(super) fn fill(&mut self, target: &mut [u8]) -> Result<(), DatasetError> {
        if target.len() as u64 > self.left() {
            let what =
                format!("cut short: {} more bytes were expected, {} are there", target.len(), self.left());
            return Err(self.malformed_here(what));
        }
        self.file.read_exact(target).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => self.malformed_here("the file shrank while it was read"),
            _ => DatasetError::Io { path: self.path.clone(), error },
        })?;
        self.at += target.len() as u64;
        Ok(())
    }

    /// Room for `count` elements that are known to be in the file.
    pub(super) fn room<T>(&self, count: usize) -> Result<Vec<T>, DatasetError> {
        let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
        let fail = || DatasetError::Memory { path: self.path.clone(), bytes };
        // Systems that overcommit give any address range and kill the process once it is used.
        if Machine::detect().memory_bytes().is_some_and(|there| bytes > there) {
            return Err(fail());
        }
        let mut room = Vec::new();
        room.try_reserve_exact(count).map_err(|_| fail())?;
        Ok(room)
    }

    /// Reads `count` elements of `W` bytes each into `target`, which has room for them. `value` may refuse one.
    pub(super) fn decode<const W: usize, T>(
        &mut self,
        count: usize,
        target: &mut Vec<T>,
        value: impl Fn([u8; W]) -> Result<T, String>,
    ) -> Result<(), DatasetError> {
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.resize(CHUNK, 0);
        let mut left = count;
        while left > 0 {
            let part = left.min(CHUNK / W);
            let start = self.at;
            self.fill(&mut chunk[..part * W])?;
            for (i, bytes) in chunk[..part * W].as_chunks::<W>().0.iter().enumerate() {
                target.push(value(*bytes).map_err(|what| self.malformed(start + (i * W) as u64, what))?);
            }
            left -= part;
        }
        self.chunk = chunk;
        Ok(())
    }
}
