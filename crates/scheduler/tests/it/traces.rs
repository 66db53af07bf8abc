//! Trace files: written, read back, and not believed.

use lanewise_scheduler::MappingId;
use lanewise_scheduler::sim::trace::{Access, Builder, Record, Trace, TraceError, TraceWriter, read};
use proptest::prelude::*;
use std::io;

type Tasks = Vec<(Option<u32>, u64, Vec<(u64, u32)>)>;

/// Two tables, and queries with tasks.
fn queries() -> impl Strategy<Value = Vec<(u32, bool, Tasks)>> {
    let range = (0u64..40_000, 0u32..3000);
    let task = (prop::option::of(0u32..9), 0u64..5000, prop::collection::vec(range, 0..12));
    let query = (0u32..2, any::<bool>(), prop::collection::vec(task, 1..4));
    prop::collection::vec(query, 0..12)
}

fn record(to: &mut impl Record, queries: &[(u32, bool, Tasks)]) -> io::Result<()> {
    to.table("a graph", Access::Gathered, 43_000)?;
    to.table("lists", Access::Streamed, 1 << 30)?;
    for (table, leads, tasks) in queries {
        to.query(*table, *leads)?;
        for (list, compute_ns, touched) in tasks {
            to.task(*list, *compute_ns, touched)?;
        }
    }
    Ok(())
}

fn written(queries: &[(u32, bool, Tasks)]) -> Vec<u8> {
    let mut writer = TraceWriter::new(Vec::new(), "a test", true).unwrap();
    record(&mut writer, queries).unwrap();
    writer.finish().unwrap()
}

/// The bytes with their checksum set right.
fn signed(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.len() - 4;
    let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &bytes[..end]) as u32;
    bytes[end..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

proptest! {
    #[test]
    fn a_file_gives_back_what_was_recorded(queries in queries()) {
        let mut builder = Builder::new("a test", true);
        record(&mut builder, &queries).unwrap();
        let trace = read([&written(&queries)[..]]).unwrap();
        prop_assert_eq!(&trace, &builder.finish().unwrap());
        prop_assert_eq!(trace.queries.len(), queries.len());
    }

    /// Each range is made of whole objects without gaps, objects do not overlap, and none is longer than a block.
    #[test]
    fn objects_are_cut_so_that_ranges_are_whole(queries in queries()) {
        let trace = read([&written(&queries)[..]]).unwrap();
        let base = |table: u32| if table == 0 { 0 } else { 43_000u64.div_ceil(64) };
        let end = |object: usize| trace.starts[object] + u64::from(trace.lines[object]);
        prop_assert!((1..trace.starts.len()).all(|i| trace.starts[i] >= end(i - 1)));
        prop_assert!(trace.lines.iter().all(|&lines| (1..=256).contains(&lines)));
        let mut touched_at_all = vec![false; trace.lines.len()];
        for span in &trace.spans {
            touched_at_all[span.first as usize..(span.first + span.count) as usize].fill(true);
        }
        prop_assert!(touched_at_all.into_iter().all(|touched| touched));
        for ((table, _, tasks), query) in queries.iter().zip(&trace.queries) {
            prop_assert_eq!(query.tasks.len(), tasks.len());
            for ((list, _, touched), number) in tasks.iter().zip(query.tasks.clone()) {
                let task = &trace.tasks[number as usize];
                prop_assert_eq!(task.id, list.map_or(MappingId::table(*table), |list| MappingId::list(*table, list)));
                let touched = touched.iter().filter(|range| range.1 > 0);
                let spans = &trace.spans[task.spans.clone()];
                let mut lines = 0;
                prop_assert_eq!(touched.clone().count(), spans.len());
                for (&(offset, length), span) in touched.zip(spans) {
                    let objects = span.first as usize..(span.first + span.count) as usize;
                    prop_assert_eq!(trace.starts[objects.start], base(*table) + offset / 64);
                    let last = base(*table) + (offset + u64::from(length)).div_ceil(64);
                    prop_assert_eq!(end(objects.end - 1), last);
                    prop_assert!((objects.start + 1..objects.end).all(|i| trace.starts[i] == end(i - 1)));
                    lines += last - trace.starts[objects.start];
                }
                prop_assert_eq!(task.lines, lines);
            }
        }
    }

    /// Whatever bytes are changed, and even with a checksum that agrees: an error or a trace, no panic.
    #[test]
    fn hostile_files_are_refused(
        queries in queries(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut: Option<prop::sample::Index>,
    ) {
        let good = written(&queries);
        let mut bytes = good.clone();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(20 + cut.index(bytes.len() - 20));
        }
        if bytes != good {
            prop_assert!(read([&bytes[..]]).is_err());
        }
        let _ = read([&signed(bytes)[..]]);
    }
}

#[test]
fn tables_of_several_files_are_numbered_on() {
    let query = |table, list| vec![(table, false, vec![(list, 7, vec![(64, 64)])])];
    let (one, two) = (written(&query(1, Some(4))), written(&query(0, None)));
    let trace = read([&one[..], &two[..]]).unwrap();
    let ids: Vec<MappingId> = trace.tasks.iter().map(|task| task.id).collect();
    assert_eq!(ids, [MappingId::list(1, 4), MappingId::table(2)]);
    assert_eq!((trace.tables.len(), trace.source.as_str()), (4, "a test; a test"));
}

#[test]
fn errors_say_what_is_wrong() {
    let error = |bytes: &[u8]| read([bytes]).unwrap_err().1;
    assert_eq!(error(b"LANEWISE"), TraceError::Magic);
    let good = written(&[]);
    assert_eq!(error(&good[..good.len() - 1]), TraceError::Checksum);
    let mut newer = good.clone();
    newer[8] = 2;
    assert_eq!(error(&newer), TraceError::Version { found: 2 });
    let beyond = |table, touched: Vec<(u64, u32)>| {
        let mut writer = TraceWriter::new(Vec::new(), "", false).unwrap();
        record(&mut writer, &[(table, false, vec![(None, 1, touched)])]).unwrap();
        error(&writer.finish().unwrap())
    };
    assert!(matches!(beyond(2, vec![]), TraceError::Invalid { what: "a query of no table", .. }));
    assert!(matches!(
        beyond(0, vec![(42_990, 11)]),
        TraceError::Invalid { what: "a range beyond its table", .. }
    ));
    // A few bytes that claim 2³⁰ blocks.
    let mut writer = TraceWriter::new(Vec::new(), "", false).unwrap();
    writer.table("all", Access::Streamed, 1 << 44).unwrap();
    writer.query(0, false).unwrap();
    let all: Vec<(u64, u32)> = (0..4096u64).map(|i| (i << 32, u32::MAX)).collect();
    writer.task(None, 1, &all).unwrap();
    assert_eq!(error(&writer.finish().unwrap()), TraceError::Large);
    let empty: Trace = read([&good[..]]).unwrap();
    assert!(empty.queries.is_empty() && empty.synthetic);
}
