//! Reading a log: every record once and in order, and telling a torn tail from damage.
//!
//! What was written after the last sync may be lost in any part when the power fails; it was promised to nobody. So the
//! first bad record of the last file ends the log, unless something shows that it was synced: a good record behind it
//! that says so, or a next file, which is only begun when all before it is durable. Then it is damage, and an error.
//! What remains undetected is damage in the last batch before a crash, where the record that vouches for it was lost.

use super::format::{ALIGN, HEADER, Header, HeaderError, NUMBER_MAX, PREFIX, Record, VERSION, number, path};
use crate::checksum::Crc;
use crate::fault::{Fault, planted};
use crate::storage::{Bytes, Kind, Storage};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Why a log could not be read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ReplayError {
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error(
        "{}: damaged at byte {offset}: {what}; records from number {sequence} on are lost, restore them from a snapshot",
        path.display()
    )]
    Damaged { path: PathBuf, offset: u64, sequence: u64, what: &'static str },
    #[error("{}: version {found} of the log, this program reads up to {VERSION}: use a newer Lanewise", path.display())]
    Version { path: PathBuf, found: u32 },
    #[error("the log begins with record {first}, but record {wanted} is wanted; restore its older files")]
    Missing { wanted: u64, first: u64 },
    #[error("the reader of the log stopped at record {sequence}")]
    Stopped { sequence: u64 },
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// How many records were given.
    pub records: u64,
    /// The sequence number that comes next.
    pub next: u64,
    /// Where the last file ends with what was never synced and did not survive.
    pub torn: Option<Torn>,
}

/// Bytes of a file that are no records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torn {
    /// The file.
    pub path: PathBuf,
    /// Where they begin.
    pub offset: u64,
    /// How many there are.
    pub bytes: u64,
}

/// What the writer must know to go on.
pub(super) struct Found {
    pub(super) replayed: Replayed,
    /// Number and first sequence number of each file, in order; 0 where all of its records were not wanted.
    pub(super) files: Vec<(u64, u64)>,
    /// The last file, if records of it may not be durable.
    pub(super) unsynced: Option<PathBuf>,
}

/// Gives `each` the sequence number and the payload of all records from number `from` on (the first record of a log has
/// number 1), in order, from the files in `dir` of the log with this `identity`. Changes nothing. Memory taken: the maps of two files.
///
/// # Errors
/// What the system says, what is damaged (records before it were given), and when `each` breaks off.
pub fn replay(
    storage: &dyn Storage,
    dir: &Path,
    identity: u64,
    from: u64,
    each: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
) -> Result<Replayed, ReplayError> {
    find(storage, dir, identity, from, each).map(|found| found.replayed)
}

struct File {
    path: PathBuf,
    bytes: Bytes,
    header: Header,
}

pub(super) fn find(
    storage: &dyn Storage,
    dir: &Path,
    identity: u64,
    from: u64,
    each: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
) -> Result<Found, ReplayError> {
    let from = from.max(1);
    if from > NUMBER_MAX {
        return Err(ReplayError::Missing { wanted: from, first: NUMBER_MAX });
    }
    let entries = storage.list(dir).map_err(|error| ReplayError::Io { path: dir.to_owned(), error })?;
    let names = entries.iter().filter(|entry| entry.kind == Kind::File);
    let numbers: Vec<u64> = names.filter_map(|entry| number(&entry.name)).collect();
    let mut files: Vec<(u64, u64)> = numbers.iter().map(|&number| (number, 0)).collect();
    // Backwards to the file that the first wanted record is in, or would be.
    let mut start = files.len();
    while start > 0 {
        start -= 1;
        let file = open(storage, path(dir, numbers[start]), numbers[start], identity, from)?;
        files[start].1 = file.header.first;
        match files.get(start + 1) {
            Some(&(_, next)) if next < file.header.first => {
                return Err(file.damaged(HEADER, from, "the next file begins with an older record"));
            }
            _ if file.header.first <= from => break,
            _ if start == 0 => {
                return Err(ReplayError::Missing { wanted: from, first: file.header.first });
            }
            _ => {}
        }
    }
    let mut reading = Reading { from, next: from, records: 0, each };
    let mut end = None;
    for (at, &number) in numbers.iter().enumerate().skip(start) {
        let file = open(storage, path(dir, number), number, identity, reading.next)?;
        end = Some(reading.file(&file, files.get(at + 1).map(|&(_, first)| first))?);
    }
    let replayed = Replayed {
        records: reading.records,
        next: reading.next.max(from),
        torn: end.as_ref().and_then(|end| end.torn.clone()),
    };
    let unsynced = end.filter(|end| end.unsynced).map(|end| end.path);
    Ok(Found { replayed, files, unsynced })
}

fn open(
    storage: &dyn Storage,
    path: PathBuf,
    number: u64,
    identity: u64,
    sequence: u64,
) -> Result<File, ReplayError> {
    let bytes = match storage.open(&path) {
        Ok(bytes) => bytes,
        Err(error) => return Err(ReplayError::Io { path, error }),
    };
    let damaged = |path, what| Err(ReplayError::Damaged { path, offset: 0, sequence, what });
    match Header::decode((*bytes).as_ref()) {
        Err(HeaderError::Damaged(what)) => damaged(path, what),
        Err(HeaderError::Version(found)) => Err(ReplayError::Version { path, found }),
        Ok(header) if header.number != number => damaged(path, "its name is another file's"),
        Ok(header) if header.identity != identity => damaged(path, "it belongs to another log"),
        Ok(header) => Ok(File { path, bytes, header }),
    }
}

impl File {
    fn damaged(&self, offset: usize, sequence: u64, what: &'static str) -> ReplayError {
        ReplayError::Damaged { path: self.path.clone(), offset: offset as u64, sequence, what }
    }
}

struct Reading<'a> {
    from: u64,
    next: u64,
    records: u64,
    each: &'a mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
}

/// How a file ended.
struct End {
    path: PathBuf,
    torn: Option<Torn>,
    /// No record says that all records were durable.
    unsynced: bool,
}

impl Reading<'_> {
    /// Reads a file up to the first record of the next one: what lies beyond was refused when it was written.
    fn file(&mut self, file: &File, limit: Option<u64>) -> Result<End, ReplayError> {
        let bytes = (*file.bytes).as_ref();
        let seed = file.header.seed();
        self.next = file.header.first;
        let (mut at, mut records_end, mut synced) = (HEADER, HEADER, 0);
        while limit != Some(self.next) && at < bytes.len() {
            let record = Record::unchecked(bytes, at).filter(|record| record.is_right(bytes, at, &seed));
            let Some(record) = record else { break };
            if record.sequence != self.next || record.synced > at as u64 {
                return Err(file.damaged(at, self.next, "a record is out of order"));
            }
            at = record.end;
            synced = record.synced;
            if let Some(payload) = record.payload {
                records_end = at;
                if self.next >= self.from {
                    if (self.each)(self.next, payload).is_break() {
                        return Err(ReplayError::Stopped { sequence: self.next });
                    }
                    self.records += 1;
                }
                self.next += 1;
            }
        }
        match limit {
            Some(limit) if limit == self.next || planted(Fault::GapPasses) => {}
            Some(_) => {
                let what = "a record is damaged or gone that the next file builds on";
                return Err(file.damaged(at, self.next, what));
            }
            None if at < bytes.len() && vouched(bytes, at, &seed) => {
                return Err(file.damaged(at, self.next, "a record is damaged that was synced"));
            }
            None => {}
        }
        let torn = limit.is_none() && at < bytes.len();
        let torn = torn.then(|| Torn {
            path: file.path.clone(),
            offset: at as u64,
            bytes: (bytes.len() - at) as u64,
        });
        Ok(End {
            path: file.path.clone(),
            torn,
            unsynced: synced < records_end as u64 && records_end > HEADER,
        })
    }
}

/// Whether a good record behind the bad one at `bad` says that the file was durable beyond it.
fn vouched(bytes: &[u8], bad: usize, seed: &Crc) -> bool {
    if planted(Fault::TornTailIsDamage) || planted(Fault::DamageIsTornTail) {
        return planted(Fault::TornTailIsDamage);
    }
    // Ordinary bytes hardly ever look like a record before their checksum is looked at. A file made so that they do
    // must not take for ever: when each byte was looked at four times, what remains is taken for damage, which loses
    // nothing.
    let mut work = 4 * bytes.len();
    for at in (bad + ALIGN..=bytes.len().saturating_sub(PREFIX)).step_by(ALIGN) {
        let Some(record) = Record::unchecked(bytes, at) else { continue };
        if record.synced <= bad as u64 || record.synced > at as u64 {
            continue;
        }
        let Some(left) = work.checked_sub(record.end - at) else { return true };
        work = left;
        if record.is_right(bytes, at, seed) {
            return true;
        }
    }
    false
}
