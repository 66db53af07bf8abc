//! Records of a table's log from strangers: whatever they are, the table does not open, or does what they say; and a repair
//! cuts the log before those that say nothing.

#![no_main]

mod closed;

use closed::{Files, closed, log_of, memory, resources};
use lanewise_engine::Threads;
use lanewise_engine::table::{Repair, Table, repair};
use lanewise_storage::Storage;
use lanewise_storage::log::Log;
use libfuzzer_sys::fuzz_target;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// What seeds have between records.
const CUT: &[u8] = b"next record";

static TABLE: LazyLock<(Files, (u64, u64))> = LazyLock::new(|| {
    let (files, _) = closed();
    let log = log_of(&files);
    (files, log)
});

fuzz_target!(|data: &[u8]| {
    let (files, (identity, from)) = &*TABLE;
    let memory = memory(files);
    let storage: Arc<dyn Storage> = Arc::new(memory.clone());
    {
        let go_on = &mut |_: u64, _: &[u8]| ControlFlow::Continue(());
        let (log, _) = Log::open(storage.clone(), Path::new("log"), *identity, *from, go_on).expect("it is whole");
        let mut rest = data;
        loop {
            let cut = rest.windows(CUT.len()).position(|bytes| bytes == CUT);
            log.append(&rest[..cut.unwrap_or(rest.len())]).expect("memory has room");
            let Some(cut) = cut else { break };
            rest = &rest[cut + CUT.len()..];
        }
        log.close().expect("memory has room");
    }
    let read = |table: Table| {
        table.flush().expect("memory has room");
        (0..40).for_each(|i| drop(table.get(&format!("d{i}")).expect("just written")));
    };
    let opened = Table::open(storage.clone(), resources());
    if let Ok(table) = opened {
        read(table);
        return;
    }
    let threads = Threads::new(NonZeroUsize::new(1));
    let report = repair(&storage, Repair::default(), threads, &mut |_, _| ControlFlow::Continue(()));
    assert!(report.expect("it has its schema").lost_writes.is_some());
    read(Table::open(storage, resources()).expect("it is repaired"));
});
