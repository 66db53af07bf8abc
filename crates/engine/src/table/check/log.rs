//! What is wrong with a table's log: a flipped bit is set right; of worse damage the log is cut after the last good record
//! before it, so that the table is what it was after some write.

use super::overlay::Overlay;
use super::{CheckError, Effect, Report, Severity};
use crate::documents::Mapping;
use crate::table::indexes::check_vectors;
use crate::table::op::{Record, decode};
use crate::table::state::State;
use lanewise_index::{Index, Reader};
use lanewise_storage::log::{self, ReplayError, replay};
use lanewise_storage::{Kind, Storage};
use std::ops::{ControlFlow, RangeInclusive};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the log is to end.
pub(in crate::table) struct Cut {
    /// The file that ends here, at its byte `offset`; it goes as a whole if that is 0.
    pub(in crate::table) path: PathBuf,
    pub(in crate::table) offset: usize,
    /// The numbers of the lost writes, which are not given again.
    pub(in crate::table) numbers: RangeInclusive<u64>,
    /// Those behind it, which go.
    pub(in crate::table) later: Vec<PathBuf>,
}

/// Numbers that are spent after a cut, at most.
const NUMBERS: u64 = 1 << 20;

fn dir() -> &'static Path {
    Path::new("log")
}

/// The log's files, in order.
fn files(storage: &dyn Storage) -> Vec<(u64, PathBuf)> {
    let entries = storage.list(dir()).unwrap_or_default();
    let files = entries.iter().filter(|entry| entry.kind == Kind::File);
    files.filter_map(|entry| Some((log::number(&entry.name)?, dir().join(&entry.name)))).collect()
}

fn headers(storage: &dyn Storage) -> impl Iterator<Item = (u64, u64)> {
    files(storage).into_iter().filter_map(|(_, path)| log::header((*storage.open(&path).ok()?).as_ref()))
}

/// Whose log it is, as its files have it.
pub(super) fn identity(storage: &dyn Storage) -> Option<u64> {
    headers(storage).last().map(|(identity, _)| identity)
}

/// The first record that there is.
pub(super) fn first(storage: &dyn Storage) -> Option<u64> {
    headers(storage).map(|(_, first)| first).min()
}

/// Looks for damage; where the log is cut `cut` says so. `last` is the last write that segments hold. Whether the manifest must be written anew.
pub(super) fn examine(
    overlay: &Arc<Overlay>,
    mapping: &Mapping,
    last: u64,
    state: &mut State,
    cut: &mut Option<Cut>,
    report: &mut Report,
) -> Result<bool, CheckError> {
    let storage: &dyn Storage = &**overlay;
    let listed = match storage.list(dir()) {
        Ok(listed) => listed,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let what = "it is missing, with all writes since the head was last sealed: it begins anew, empty";
            report.find(dir(), Severity::Loss, what);
            state.replay_from = state.replay_from.max(last + 1);
            return Ok(true);
        }
        Err(error) => return Err(CheckError::Io { path: dir().to_owned(), error }),
    };
    for entry in &listed {
        if log::number(&entry.name).is_none() || entry.kind != Kind::File {
            report.find(&dir().join(&entry.name), Severity::Harmless, "no file of a log");
        } else {
            (report.files, report.bytes) = (report.files + 1, report.bytes + entry.bytes);
        }
    }
    let indexes = mapping.schema().vectors().map(|(_, params)| Index::new(*params));
    // A schema was checked when it was made.
    let readers: Vec<Reader> = indexes.filter_map(Result::ok).map(|index| index.reader()).collect();
    let mut rewrite = false;
    let mut mended: Vec<PathBuf> = Vec::new();
    loop {
        let mut wrong = None;
        let each = &mut |seq: u64, record: &[u8]| match sound(mapping, &readers, record) {
            Ok(()) => ControlFlow::Continue(()),
            Err(what) => {
                wrong = Some((seq, what));
                ControlFlow::Break(())
            }
        };
        let (path, offset, sequence, what) =
            match replay(storage, dir(), state.identity, state.replay_from, each) {
                Ok(replayed) => {
                    if let Some(torn) = replayed.torn {
                        let what = format!(
                            "its last {} bytes are no record: a write that a crash cut short",
                            torn.bytes
                        );
                        report.find(&torn.path, Severity::Harmless, what);
                    }
                    return Ok(rewrite);
                }
                Err(ReplayError::Damaged { path, offset, sequence, what }) => {
                    let number = path.file_name().and_then(log::number).unwrap_or(0);
                    let right = storage.open(&path).ok().filter(|_| !mended.contains(&path));
                    let right =
                        right.and_then(|file| log::mend((*file).as_ref(), number, Some(state.identity)));
                    if let Some(right) = right {
                        report.find(
                            &path,
                            Severity::Mendable,
                            "single bits are wrong: they are set right by the checksums",
                        );
                        overlay.insert(&path, right);
                        mended.push(path);
                        continue;
                    }
                    (path, offset as usize, sequence, what.to_owned())
                }
                Err(ReplayError::Missing { wanted, first }) => {
                    let what = format!("writes {wanted} to {} are missing", first - 1);
                    report.find(dir(), Severity::Loss, what);
                    report.lost_writes = Some(wanted..=first - 1);
                    state.replay_from = first;
                    rewrite = true;
                    continue;
                }
                Err(ReplayError::Stopped { sequence }) => {
                    let what = wrong.map_or_else(String::new, |(_, what)| what);
                    let Some((path, offset)) = find(storage, sequence) else {
                        report.find(dir(), Severity::Loss, what);
                        return Ok(rewrite);
                    };
                    (path, offset, sequence, what)
                }
                Err(error @ ReplayError::Version { .. }) => return Err(CheckError::Newer(error.to_string())),
                Err(ReplayError::Io { path, error }) => return Err(CheckError::Io { path, error }),
            };
        let later = files(storage).into_iter().map(|(_, path)| path).filter(|other| *other > path).collect();
        let numbers = sequence..=sequence.max(last);
        let mut found = Cut { path, offset, numbers, later };
        lose(storage, mapping, &mut found, report);
        let what = format!("{what}: the log is cut before write {sequence}, and what follows is set aside");
        report.find(&found.path, Severity::Loss, what);
        *cut = Some(found);
        return Ok(rewrite);
    }
}

/// Whether a record can be done again: its vectors must suit their fields.
fn sound(mapping: &Mapping, readers: &[Reader], record: &[u8]) -> Result<(), String> {
    let Record::Put { parsed, .. } = decode(mapping, record).map_err(|error| error.to_string())? else {
        return Ok(());
    };
    check_vectors(mapping, &parsed, |field| &readers[field]).map_err(|error| error.to_string())
}

/// Where a record is.
fn find(storage: &dyn Storage, sequence: u64) -> Option<(PathBuf, usize)> {
    files(storage).into_iter().rev().find_map(|(_, path)| {
        let mut found = None;
        log::survivors((*storage.open(&path).ok()?).as_ref(), &mut |at, seq, _| {
            found = found.or((seq == sequence).then_some(at));
        });
        found.map(|at| (path, at))
    })
}

/// Says which writes are lost, as far as their records are good by themselves.
fn lose(storage: &dyn Storage, mapping: &Mapping, cut: &mut Cut, report: &mut Report) {
    let from = *cut.numbers.start();
    let mut last = from;
    for path in [&cut.path].into_iter().chain(&cut.later) {
        let Ok(file) = storage.open(path) else { continue };
        log::survivors((*file).as_ref(), &mut |at, seq, record| {
            if path == &cut.path && at < cut.offset || seq < from {
                return;
            }
            last = last.max(seq);
            if let Ok(Record::Put { id, .. } | Record::Delete { id, .. }) = decode(mapping, record) {
                report.affect(&id, Effect::Older { seq });
            }
        });
    }
    report.lost_writes = Some(from..=last);
    // Each takes a record, and a segment may claim any.
    cut.numbers = from..=last.max(*cut.numbers.end()).min(from.saturating_add(NUMBERS));
}
