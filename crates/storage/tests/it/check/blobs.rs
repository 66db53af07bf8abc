//! Blobs, cut off at every moment, under two names.

use super::Checked;
use super::logs::moments;
use crate::require;
use lanewise_storage::blob::{BLOCK, Blob, BlobWriter};
use lanewise_storage::{Faulty, Memory, Rng, Storage};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

pub(crate) fn data(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 31 + at / 251) as u8).collect()
}

/// Writes a blob in pieces of changing length.
pub(crate) fn write(storage: &dyn Storage, path: &Path, data: &[u8]) -> io::Result<u64> {
    let mut writer = BlobWriter::new(storage.create(path)?);
    let mut rest = data;
    for piece in [1, 7, 100_000, 3, BLOCK, 5000].into_iter().cycle() {
        let (now, later) = rest.split_at(rest.len().min(piece));
        writer.write_all(now)?;
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    writer.finish()
}

/// Says how many images were looked at.
pub(crate) fn crashes(seed: u64) -> Checked {
    let random = &mut Rng::with_seed(seed);
    let memory = Memory::new();
    let storage = Faulty::new(Arc::new(memory.clone()));
    let data = data([0, 1, 500, 70_000][random.usize(..4)]);
    let (one, two, root) = (Path::new("one"), Path::new("two"), Path::new(""));
    let run = || {
        write(&storage, one, &data)?;
        storage.sync_dir(root)?;
        memory.note(1);
        storage.link(one, two)?;
        storage.sync_dir(root)?;
        memory.note(2);
        storage.remove(one)?;
        storage.sync_dir(root)?;
        memory.note(3);
        io::Result::Ok(())
    };
    run().map_err(|error| error.to_string())?;
    let journal = memory.journal();
    let moments = moments(&journal, random);
    for &at in &moments {
        let step = journal.notes(at).last().unwrap_or(0);
        let image = journal.image(at, random);
        for (path, wanted, allowed) in [(one, step == 1, step < 3), (two, step >= 2, (1..).contains(&step))] {
            let file = match image.open(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    require!(!wanted, "at {at}: {} is gone", path.display());
                    continue;
                }
                file => file.map_err(|error| error.to_string())?,
            };
            require!(allowed, "at {at}: {} is there", path.display());
            match Blob::open(file).and_then(|blob| blob.bytes()) {
                Ok(bytes) => require!((*bytes).as_ref() == data, "at {at}: wrong bytes"),
                // Torn: it was never acknowledged.
                Err(error) => require!(step == 0, "at {at}: {error}"),
            }
        }
    }
    Ok(moments.len())
}
