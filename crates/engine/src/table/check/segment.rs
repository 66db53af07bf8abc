//! What is wrong with a segment: whether its files fit each other, and what can be read where they do not.

use super::super::memory::Asked;
use super::salvage::{Documents, Salvage};
use super::{Damaged, Effect, Kept, Report, Severity};
use crate::documents::{Mapping, Run};
use crate::table::bits::Bits;
use crate::table::directory::Folder;
use crate::table::rows::Rows;
use crate::table::segment::{Sealed, deleted, folder, read_blob, vectors};
use crate::table::state::Listed;
use lanewise_storage::{Kind, Storage};
use serde::de::IgnoredAny;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

/// Rows that are read together.
pub(in crate::table) const TOGETHER: usize = 4096;

/// What tantivy's files end with.
const DOCUMENTS: [&str; 7] = ["json", "store", "term", "idx", "pos", "fast", "fieldnorm"];

pub(super) struct Examining<'a> {
    pub(super) storage: &'a Arc<dyn Storage>,
    pub(super) mapping: &'a Mapping,
    pub(super) listed: &'a Listed,
    pub(super) damaged: &'a Damaged,
}

impl Examining<'_> {
    pub(super) fn run(&self, report: &mut Report) -> Kept {
        let mut own = Report::default();
        // tantivy trusts what it reads, more than files with right checksums and wrong contents deserve.
        let kept = catch_unwind(AssertUnwindSafe(|| self.examine(&mut own)));
        report.findings.append(&mut own.findings);
        report.affected.append(&mut own.affected);
        kept.unwrap_or_else(|_| {
            let what = "its contents make no sense: it is set aside, with all of its documents";
            report.find(&folder(self.listed.segment), Severity::Loss, what);
            Kept::Aside
        })
    }

    fn examine(&self, report: &mut Report) -> Kept {
        let Examining { storage, mapping, listed, .. } = *self;
        let dir = folder(listed.segment);
        self.strays(report);
        let path = dir.join("rows");
        let fields = mapping.schema().vectors().count();
        let rows = || {
            let bytes = read_blob(&**storage, &path).map_err(|error| error.to_string())?;
            Rows::open(bytes, fields).map_err(|error| error.to_string())
        };
        let rows = match rows() {
            Ok(rows) => rows,
            Err(error) => {
                let what = format!("{error}: the segment is set aside, with all of its documents");
                report.find(&path, Severity::Loss, what);
                if let Ok(run) = Run::open(mapping, Box::new(Folder::new(storage.clone(), dir))) {
                    let _ =
                        run.ids(mapping, |id, _| report.affect(&String::from_utf8_lossy(id), Effect::Gone));
                }
                return Kept::Aside;
            }
        };
        let documents = Documents::open(storage, mapping, listed.segment);
        let (bits, unsure) = self.dead(&rows, &documents, report);
        let wrong = match Sealed::open(storage, mapping, listed.segment, Asked::Nobody) {
            Ok(sealed) => match self.wrong(&sealed, &bits) {
                None => return Kept::Whole { sealed: Box::new(sealed), bits, rewrite: unsure },
                Some(wrong) => wrong,
            },
            Err(error) => (dir.clone(), error.to_string()),
        };
        let mut salvage = Salvage::open(storage, mapping, listed.segment, (rows, documents), self.damaged);
        let lost = self.lost(&mut salvage, &bits, report);
        let (severity, loss) = match lost {
            (0, 0) => (Severity::Mendable, "nothing is lost".to_owned()),
            (gone, vectors) => (Severity::Loss, format!("{gone} documents and {vectors} vectors are lost")),
        };
        report.find(&wrong.0, severity, format!("{}: the segment is written anew, {loss}", wrong.1));
        Kept::Anew { salvage: Box::new(salvage), bits }
    }

    /// Files that nothing names.
    fn strays(&self, report: &mut Report) {
        let dir = folder(self.listed.segment);
        for entry in self.storage.list(&dir).unwrap_or_default() {
            let path = dir.join(&entry.name);
            let ours = entry.kind == Kind::File && self.names(&path);
            if !ours {
                report.find(&path, Severity::Harmless, "no file of the segment's");
            }
        }
    }

    fn names(&self, path: &std::path::Path) -> bool {
        let Listed { segment, deleted: generation } = *self.listed;
        let dir = folder(segment);
        let fields = self.mapping.schema().vectors().count();
        path == dir.join("rows")
            || generation.is_some_and(|generation| path == deleted(segment, generation))
            || (0..fields).any(|field| path == vectors(&dir, field))
            || path.extension().is_some_and(|end| DOCUMENTS.iter().any(|known| end == *known))
    }

    /// Dead rows; whether they are not for certain.
    fn dead(&self, rows: &Rows, documents: &Documents, report: &mut Report) -> (Bits, bool) {
        let Listed { segment, deleted: Some(generation) } = *self.listed else {
            return (Bits::default(), false);
        };
        let path: PathBuf = deleted(segment, generation);
        let known = read_blob(&**self.storage, &path).ok();
        if let Some(bits) = known.and_then(|bytes| Bits::from_bytes((*bytes).as_ref(), rows.len())) {
            return (bits, false);
        }
        // Rows that were dead when the segment was sealed have no documents.
        let mut bits = Bits::default();
        for row in rows.documents() {
            if documents.source(row).is_some_and(|source| source.is_empty()) {
                bits.insert(row);
                bits.extend(rows.nested_of(row));
            } else {
                report.affect(rows.id(row), Effect::Back);
            }
        }
        let what =
            "it is damaged, and with it which documents of the segment were deleted: they may be there again";
        report.find(&path, Severity::Loss, what);
        (bits, true)
    }

    /// What does not fit in a segment that opens, and in which file.
    fn wrong(&self, sealed: &Sealed, dead: &Bits) -> Option<(PathBuf, String)> {
        let dir = folder(self.listed.segment);
        let bad = |path: PathBuf, what: &str| Some((path, what.to_owned()));
        let bitmap = self.listed.deleted.map(|generation| deleted(self.listed.segment, generation));
        let named = self.damaged.keys().filter(|path| path.starts_with(&dir) && self.names(path));
        if let Some(path) = named.into_iter().find(|path| Some(*path) != bitmap.as_ref()) {
            return bad(path.clone(), "it is damaged");
        }
        let Sealed { rows, run, readers, .. } = sealed;
        let all = rows.documents();
        if all.clone().any(|row| !rows.rows_of(rows.id(row)).any(|found| found == row)) {
            return bad(dir.join("rows"), "a row is not found by its id");
        }
        let mut named = Bits::default();
        let mut fits = true;
        let ids = run.ids(self.mapping, |id, row| {
            fits &= (row as usize) < rows.len() && rows.id(row).as_bytes() == id && named.insert(row);
        });
        if !fits || ids.is_err() || all.clone().any(|row| !dead.contains(row) && !named.contains(row)) {
            return bad(dir, "rows and documents do not have the same ids");
        }
        let readable = |row: u32| {
            run.source(row).is_ok_and(|source| serde_json::from_slice::<IgnoredAny>(&source).is_ok())
        };
        if all.clone().any(|row| !dead.contains(row) && !readable(row)) {
            return bad(dir, "a document cannot be read");
        }
        for (field, reader) in readers.iter().enumerate() {
            let of: Vec<u32> = rows.of_vectors(field).iter().map(|row| u32::from_le_bytes(*row)).collect();
            if !of.is_sorted_by(|a, b| a < b) {
                return bad(dir.join("rows"), "a row has two vectors of a field");
            }
            let mut there = Bits::default();
            reader.ids().for_each(|number| {
                there.insert(number as u32);
            });
            if (0..).zip(&of).any(|(number, &row)| !dead.contains(row) && !there.contains(number)) {
                return bad(vectors(&dir, field), "a document's vector is not there");
            }
        }
        None
    }

    /// Goes through what is left, and says what is not: documents, and vectors of the others.
    fn lost(&self, salvage: &mut Salvage, dead: &Bits, report: &mut Report) -> (usize, usize) {
        let live: Vec<u32> = salvage.usable(dead).collect();
        let (mut gone, mut vectors) = (0, 0);
        for rows in live.chunks(TOGETHER) {
            let parsed = salvage.parsed(self.mapping, rows);
            for (&row, parsed) in rows.iter().zip(parsed) {
                let id = salvage.rows.id(row);
                let Some((_, fields)) = parsed else {
                    report.affect(id, Effect::Gone);
                    salvage.lost.insert(row);
                    gone += 1;
                    continue;
                };
                for field in fields {
                    let name = self.mapping.schema().vectors().nth(field).map_or("", |(name, _)| name);
                    report.affect(id, Effect::Vector { field: name.to_owned() });
                    vectors += 1;
                }
            }
        }
        (gone, vectors)
    }
}

/// Where a document is alive twice, the older of the two dies.
pub(super) fn settle_twice(segments: &mut [(Listed, Kept)], report: &mut Report) {
    let anew: Vec<_> = segments.iter_mut().map(|(listed, kept)| kept.settle_anew(listed, report)).collect();
    for one in 0..segments.len() {
        let (before, after) = segments.split_at_mut(one + 1);
        let (listed, kept) = &mut before[one];
        let mut dying: Vec<u32> = Vec::new();
        let Some((rows, bits)) = kept.parts() else { continue };
        for row in rows.documents().filter(|&row| !bits.contains(row)) {
            for ((_, other), anew) in after.iter_mut().zip(&anew[one + 1..]) {
                let Some((others, dead)) = other.parts() else { continue };
                let id = rows.id(row);
                let twin = match anew {
                    Some(ids) => ids.get(id).copied().filter(|&twin| !dead.contains(twin)),
                    None => others.rows_of(id).find(|&twin| !dead.contains(twin)),
                };
                let Some(twin) = twin else { continue };
                if others.seq(twin) > rows.seq(row) {
                    dying.push(row);
                } else {
                    other.kill(twin);
                    twice(listed, id, report);
                }
            }
        }
        for row in dying {
            twice(listed, kept.parts().map_or("", |(rows, _)| rows.id(row)), report);
            kept.kill(row);
        }
    }
}

fn twice(listed: &Listed, id: &str, report: &mut Report) {
    let what = format!("document {id:?} is there twice: the older goes");
    report.find(&folder(listed.segment), Severity::Mendable, what);
}

impl Kept {
    fn parts(&self) -> Option<(&Rows, &Bits)> {
        match self {
            Kept::Whole { sealed, bits, .. } => Some((&sealed.rows, bits)),
            Kept::Anew { salvage, bits } => Some((&salvage.rows, bits)),
            Kept::Aside => None,
        }
    }

    /// Of a segment that is written anew the live rows by id, once: its own table of them may be wrong. So of one whose
    /// dead rows are unknown: what was replaced within a load may be among them.
    fn settle_anew(&mut self, listed: &Listed, report: &mut Report) -> Option<HashMap<String, u32>> {
        let (rows, bits, mut live): (_, _, Vec<u32>) = match self {
            Kept::Anew { salvage, bits } => {
                let live = salvage.usable(bits).collect();
                (&salvage.rows, bits, live)
            }
            Kept::Whole { sealed, bits, rewrite: true } => {
                let live = sealed.rows.documents().filter(|&row| !bits.contains(row)).collect();
                (&sealed.rows, bits, live)
            }
            _ => return None,
        };
        // Of rows with one number, those of a load, the last counts.
        live.sort_by_key(|&row| rows.seq(row));
        let mut ids = HashMap::new();
        for row in live {
            if let Some(older) = ids.insert(rows.id(row).to_owned(), row) {
                twice(listed, rows.id(row), report);
                bits.insert(older);
                bits.extend(rows.nested_of(older));
            }
        }
        Some(ids)
    }

    /// The last write that it knows of.
    pub(super) fn last(&self) -> Option<u64> {
        let (rows, _) = self.parts()?;
        // No log gets beyond: such a number is damage.
        (0..rows.len() as u32).map(|row| rows.seq(row)).filter(|seq| *seq < 1 << 62).max()
    }

    /// Says of all live documents that they may have been deleted.
    pub(super) fn may_be_back(&self, report: &mut Report) {
        let Some((rows, dead)) = self.parts() else { return };
        for row in rows.documents().filter(|&row| !dead.contains(row)) {
            report.affect(rows.id(row), Effect::Back);
        }
    }

    fn kill(&mut self, row: u32) {
        match self {
            Kept::Whole { sealed, bits, rewrite } => {
                bits.insert(row);
                bits.extend(sealed.rows.nested_of(row));
                *rewrite = true;
            }
            Kept::Anew { bits, .. } => drop(bits.insert(row)),
            Kept::Aside => {}
        }
    }
}
