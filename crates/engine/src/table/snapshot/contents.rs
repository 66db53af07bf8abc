//! What a snapshot's manifest says; `docs/formats/snapshot.md` gives every byte.

use super::SnapshotError;
use crate::documents::Schema;
use crate::table::segment::SegmentId;
use crate::table::settings::Settings;
use lanewise_storage::manifest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Component, Path};

/// The newest version of snapshots; what older programs can read says that it is 1.
const VERSION: u32 = 3;

/// A table at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Contents {
    version: u32,
    /// As whoever made it said.
    pub(super) created_ms: u64,
    pub(super) schema: Schema,
    pub(super) settings: Settings,
    /// The last write that it may hold.
    pub(super) last: u64,
    pub(super) segments: Vec<Stored>,
}

/// A segment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stored {
    pub(super) segment: SegmentId,
    /// Below `segments` of the repository.
    pub(super) folder: String,
    pub(super) live: u64,
    pub(super) files: Vec<File>,
    /// Dead rows, a file in the snapshot's own folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) deleted: Option<File>,
}

/// A file, and what it is known by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) bytes: u64,
    /// XXH3-64 of the end of the blob.
    pub(super) end: u64,
}

impl Contents {
    pub(super) fn new(schema: Schema, settings: Settings, created_ms: u64, last: u64) -> Contents {
        Contents { version: schema.version(), created_ms, schema, settings, last, segments: Vec::new() }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a snapshot is JSON")
    }

    /// Of the bytes of a manifest's file.
    pub(super) fn decode(file: &[u8]) -> Result<Contents, SnapshotError> {
        /// Of any version.
        #[derive(Deserialize)]
        struct Any {
            version: u32,
        }
        let json = |error: serde_json::Error| SnapshotError::Invalid { what: error.to_string() };
        let manifest = manifest::decode(file)?;
        let Any { version } = serde_json::from_slice(&manifest.contents).map_err(json)?;
        if version > VERSION {
            return Err(SnapshotError::Version { found: version });
        }
        let contents: Contents = serde_json::from_slice(&manifest.contents).map_err(json)?;
        contents.check().map_err(|what| SnapshotError::Invalid { what })?;
        Ok(contents)
    }

    /// Whether names are names, and numbers can be gone on from.
    fn check(&self) -> Result<(), String> {
        self.schema.check().map_err(|error| error.to_string())?;
        self.settings.check().map_err(|error| error.to_string())?;
        let fine = |wrong: bool, what: &str| if wrong { Err(what.to_owned()) } else { Ok(()) };
        fine(self.last >= u64::MAX >> 1, "there is no write after its last")?;
        let mut numbers = BTreeSet::new();
        for Stored { segment, folder, files, deleted, .. } in &self.segments {
            fine(segment.0 >= u64::MAX >> 1, "there is no segment after its last")?;
            fine(!numbers.insert(*segment), "a segment is there twice")?;
            let names = files.iter().chain(deleted).map(|file| &file.name).chain([folder]);
            let plain = |name: &String| {
                let mut parts = Path::new(name).components();
                matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name.as_str())
            };
            fine(!names.into_iter().all(plain), "a file's name is a path")?;
            let distinct: BTreeSet<&String> = files.iter().map(|file| &file.name).collect();
            fine(distinct.len() != files.len(), "a file is there twice")?;
            // It would be taken for one of the restored table's own.
            fine(
                distinct.iter().any(|name| name.starts_with("deleted-")),
                "dead rows are among the segment's files",
            )?;
        }
        Ok(())
    }

    /// All files, those in the snapshot's own folder last.
    pub(super) fn files(&self) -> impl Iterator<Item = &File> {
        let deleted = self.segments.iter().flat_map(|stored| &stored.deleted);
        self.segments.iter().flat_map(|stored| &stored.files).chain(deleted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of version 1, and of those with what came to schemas.
    const SCHEMAS: [&str; 3] = [
        r#"{"fields": {"n": {"type": "integer"}, "v": {"type": "vector", "dim": 2}}}"#,
        r#"{"fields": {"a": {"type": "vector", "dim": 3}, "n": {"type": "integer"}, "n.k": {"type": "keyword"}, "v": {"type": "vector", "dim": 2}},
            "rules": {"n.k": {"ignore_above": 9, "null_value": "x"}, "v": {"exact": true}}, "later": ["a"]}"#,
        r#"{"fields": {"p": {"type": "nested"}, "p.v": {"type": "vector", "dim": 2}}}"#,
    ];

    fn golden() -> Contents {
        of(SCHEMAS[0])
    }

    fn of(schema: &str) -> Contents {
        let mut contents =
            Contents::new(serde_json::from_str(schema).unwrap(), Settings::default(), 1_767_225_600_000, 41);
        let file = |name: &str, bytes, end| File { name: name.to_owned(), bytes, end };
        for (segment, deleted) in [(1, None), (3, Some(file("deleted-3", 44, 5)))] {
            contents.segments.push(Stored {
                segment: SegmentId(segment),
                folder: format!("00000000000000ff-{segment:016x}-0"),
                live: 7,
                files: vec![file("rows", 300, 1 << 60), file("vectors-0", 2000, 9)],
                deleted,
            });
        }
        contents
    }

    #[test]
    fn the_golden_files_are_read_and_written() {
        for (version, schema) in (1..).zip(SCHEMAS) {
            let path = format!("{}/tests/golden/snapshot-{version}.lw", env!("CARGO_MANIFEST_DIR"));
            let golden = of(schema);
            assert_eq!(golden.version, version);
            let memory = lanewise_storage::Memory::new();
            manifest::replace(&memory, Path::new("m"), 0, &golden.encode()).unwrap();
            let written = lanewise_storage::Storage::open(&memory, Path::new("m")).unwrap();
            if std::env::var_os("LANEWISE_GOLDEN").is_some() {
                std::fs::write(&path, (*written).as_ref()).unwrap();
            }
            let file = std::fs::read(path).unwrap();
            assert_eq!(Contents::decode(&file).unwrap(), golden);
            assert!((*written).as_ref() == file);
        }
    }

    #[test]
    fn what_would_lead_elsewhere_is_refused() {
        let refused = |change: fn(&mut Contents)| {
            let mut contents = golden();
            change(&mut contents);
            contents.check().unwrap_err()
        };
        let path = "a file's name is a path";
        assert_eq!(refused(|c| c.segments[0].files[0].name = "../manifest".to_owned()), path);
        assert_eq!(refused(|c| c.segments[0].files[0].name = "a/b".to_owned()), path);
        assert_eq!(refused(|c| c.segments[0].files[0].name = "rows/".to_owned()), path);
        assert_eq!(refused(|c| c.segments[1].folder = "..".to_owned()), path);
        assert_eq!(refused(|c| c.segments[1].segment = SegmentId(1)), "a segment is there twice");
        assert_eq!(refused(|c| c.segments[0].files[1].name = "rows".to_owned()), "a file is there twice");
        assert_eq!(refused(|c| c.last = u64::MAX), "there is no write after its last");
    }
}
