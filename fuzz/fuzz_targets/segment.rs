//! Segments from strangers: whatever is in a file of rows, of vectors or of dead rows behind right checksums, the table does
//! not open, or can be read; and a repair makes it one that opens.

#![no_main]

mod closed;

use closed::{Files, closed, memory, resources};
use lanewise_engine::Threads;
use lanewise_engine::table::{Repair, Severity, Table, check, repair};
use lanewise_storage::blob::BlobWriter;
use lanewise_storage::{Memory, Storage};
use libfuzzer_sys::fuzz_target;
use std::io::Write;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

/// The table, and those of its files that are ours.
static TABLE: LazyLock<(Files, Vec<PathBuf>)> = LazyLock::new(|| {
    let (files, _) = closed();
    let ours = |path: &&PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        path.starts_with("segments") && ["rows", "vectors-", "deleted-"].iter().any(|ours| name.starts_with(ours))
    };
    let ours = files.keys().filter(ours).cloned().collect();
    (files, ours)
});

fn blob(data: &[u8]) -> Vec<u8> {
    let memory = Memory::new();
    let mut writer = BlobWriter::new(memory.create(Path::new("b")).expect("memory has room"));
    writer.write_all(data).and_then(|()| writer.finish()).expect("memory has room");
    (*memory.open(Path::new("b")).expect("just written")).as_ref().to_vec()
}

fuzz_target!(|data: &[u8]| {
    let Some((&which, data)) = data.split_first() else { return };
    let (files, ours) = &*TABLE;
    let mut files = files.clone();
    files.insert(ours[usize::from(which) % ours.len()].clone(), blob(data));
    let storage: Arc<dyn Storage> = Arc::new(memory(&files));
    let go = &mut |_, _| ControlFlow::Continue(());
    let read = |table: Table| {
        for i in 0..32 {
            let _ = table.get(&format!("d{i}"));
        }
        let _ = table.force_merge(1);
    };
    if let Ok(table) = Table::open(Arc::new(memory(&files)), resources()) {
        read(table);
    }
    let report = check(&storage, go).expect("memory can be read");
    let threads = Threads::new(NonZeroUsize::new(1));
    let repaired = repair(&storage, Repair::default(), threads, go);
    assert_eq!(repaired.expect("it has its schema"), report);
    assert!(check(&storage, go).expect("memory can be read").severity() <= Some(Severity::Harmless));
    read(Table::open(storage, resources()).expect("it is repaired"));
});
