//! Index files from strangers: whatever the bytes, opening them gives an error, or an index that can be searched, changed
//! and saved. Checksums are made right first, so that what lies behind them is reached; and every section is as likely
//! to be changed, so that not all the work goes into the vectors.

#![no_main]

use crc_fast::{CrcAlgorithm, checksum};
use lanewise_index::{Dtype, Index, Inline, Scratch, Search, Vectors};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Bytes on a cache line, as a map gives them.
struct Aligned {
    room: Vec<u8>,
    start: usize,
    end: usize,
}

impl Aligned {
    fn new(bytes: &[u8]) -> Aligned {
        let mut room = vec![0; bytes.len() + 64];
        let start = room.as_ptr().align_offset(64);
        let end = start + bytes.len();
        room[start..end].copy_from_slice(bytes);
        Aligned { room, start, end }
    }
}

impl AsRef<[u8]> for Aligned {
    fn as_ref(&self) -> &[u8] {
        &self.room[self.start..self.end]
    }
}

fn crc(bytes: &[u8]) -> u32 {
    checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// Where the header says that its sections lie, those that lie inside.
fn sections(bytes: &[u8]) -> Vec<(usize, std::ops::Range<usize>)> {
    let header = header(bytes);
    let count = usize::from(bytes[12]).min((header - 4 - 128) / 32);
    let field = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let entries = (0..count).map(|i| 128 + i * 32);
    let placed = entries.map(|at| (at, field(at)..field(at).saturating_add(field(at + 8))));
    placed.filter(|(_, range)| bytes.get(range.clone()).is_some()).collect()
}

fn header(bytes: &[u8]) -> usize {
    if bytes[8] == 1 { 512 } else { 1024 }
}

/// Makes magic, length and checksums right.
fn forge(bytes: &mut [u8]) {
    if bytes.len() < 1024 {
        return;
    }
    bytes[..8].copy_from_slice(b"LANEWISE");
    let length = (bytes.len() as u64).to_le_bytes();
    bytes[16..24].copy_from_slice(&length);
    for (at, range) in sections(bytes) {
        let sum = crc(&bytes[range]);
        bytes[at + 16..at + 20].copy_from_slice(&sum.to_le_bytes());
    }
    let header = header(bytes);
    let sum = crc(&bytes[..header - 4]);
    bytes[header - 4..header].copy_from_slice(&sum.to_le_bytes());
}

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let bytes = &mut data[..size];
    // One in eight any way the fuzzer likes, lengths included.
    if size < 1024 || seed.is_multiple_of(8) {
        return fuzzer_mutate(data, size, max_size);
    }
    let mut parts = vec![8..header(bytes)];
    parts.extend(sections(bytes).into_iter().map(|part| part.1).filter(|range| !range.is_empty()));
    let part = parts[(seed / 8) as usize % parts.len()].clone();
    let length = part.len();
    fuzzer_mutate(&mut bytes[part], length, length);
    size
});

fuzz_target!(|data: &[u8]| {
    let mut bytes = data.to_vec();
    forge(&mut bytes);
    let Ok(index) = Index::open(Arc::new(Aligned::new(&bytes))) else { return };
    let (dim, dtype) = (index.params().dim, index.params().dtype);
    let (floats, signed, bytes) = (vec![1.0f32; dim], vec![1i8; dim], vec![1u8; dim]);
    let mut packed = vec![0u8; dim.div_ceil(8)];
    packed[0] = 1;
    let query = match dtype {
        Dtype::I8 => Vectors::I8(&signed),
        Dtype::U8 => Vectors::U8(&bytes),
        Dtype::Bits => Vectors::Bits(&packed),
        _ => Vectors::F32(&floats),
    };
    let mut scratch = Scratch::default();
    let go_on = &mut |_| ControlFlow::Continue(());
    let reader = index.reader();
    let filter = reader.filter(|id| id % 3 == 0);
    for how in [Search::new(3).ef(5), Search::new(5).ef(3).filter(&filter)] {
        if let Ok((found, _)) = reader.search(query, &how, &mut scratch) {
            let most = if how.filter.is_some() { filter.matches() } else { reader.len() };
            assert_eq!(found[0].ids.len(), how.k.min(most), "min(k, matches) results");
        }
    }
    // Errors are fine here, panics are not.
    let _ = index.add(query, None, &Inline, go_on);
    let _ = index.remove(&[0, 1, 5]);
    let _ = index.repair(&Inline, &mut |_, _| ControlFlow::Continue(()));
    let _ = index.search(query, &Search::new(2), &mut scratch);
    let _ = index.image().map(|image| image.bytes());
});
