//! What can be had of a damaged file of the log: a single flipped bit set right, records that are good by themselves.

use super::format::{ALIGN, HEADER, Header, PREFIX, Record, encode};
use crate::checksum::{Crc, u32_at};
use crate::mend::{Flipped, flipped};
use std::ops::RangeInclusive;

/// The bytes of the log's file `number` with the bits set right that are wrong in them, one in the header and one in each
/// record at most; `None` if nothing is wrong, or not that. An `identity` is that of the log, where it is known.
pub fn mend(bytes: &[u8], number: u64, identity: Option<u64>) -> Option<Vec<u8>> {
    let mut mended = bytes.to_vec();
    let mut changed = false;
    let fits =
        |header: &Header| header.number == number && identity.is_none_or(|known| known == header.identity);
    let header = match Header::decode(&mended) {
        Ok(header) => header,
        Err(_) => {
            let found = Crc::new().with(mended.get(..12)?).with(mended.get(16..HEADER)?).value();
            match flipped(HEADER - 4, found, u32_at(&mended, 12))? {
                Flipped::Checksum => mended[12..16].copy_from_slice(&found.to_le_bytes()),
                Flipped::Bit(bit) => mended[bit / 8 + if bit < 96 { 0 } else { 4 }] ^= 1 << (bit % 8),
            }
            changed = true;
            Header::decode(&mended).ok()?
        }
    };
    if !fits(&header) {
        return None;
    }
    let (mut at, mut next) = (HEADER, header.first);
    let seed = header.seed();
    while at < mended.len() {
        let good = Record::unchecked(&mended, at).filter(|record| record.is_right(&mended, at, &seed));
        if let Some(record) = good {
            next += u64::from(record.payload.is_some());
            at = record.end;
            continue;
        }
        if !set_right(&mut mended, at, next, &seed) {
            break;
        }
        changed = true;
    }
    changed.then_some(mended)
}

/// Sets right the bit of the record at `at` that is wrong, if a single one is; says so. The record has the number `next`, so
/// that what was torn or never written is not taken for one.
fn set_right(file: &mut [u8], at: usize, next: u64, seed: &Crc) -> bool {
    let tried = |file: &mut [u8], bit: usize| {
        file[at + bit / 8] ^= 1 << (bit % 8);
        let right = Record::unchecked(file, at).is_some_and(|record| {
            record.sequence == next && record.synced <= at as u64 && record.is_right(file, at, seed)
        });
        if !right {
            file[at + bit / 8] ^= 1 << (bit % 8);
        }
        right
    };
    // Its length is wrong.
    if file.len() >= at + PREFIX && (32..64).any(|bit| tried(file, bit)) {
        return true;
    }
    // Its length stands, and any other bit may be wrong.
    let Some(Record { end, .. }) = Record::unchecked(file, at) else { return false };
    let (found, expected) = (seed.clone().with(&file[at + 4..end]).value(), u32_at(file, at));
    let bit = match flipped(end - at - 4, found, expected) {
        Some(Flipped::Bit(bit)) => bit + 32,
        Some(Flipped::Checksum) => (found ^ expected).trailing_zeros() as usize,
        None => return false,
    };
    tried(file, bit)
}

/// Gives `each` the place, the sequence number and the payload of every record in a file of the log that is good by itself,
/// whatever lies between them. Nothing if its header is damaged.
pub fn survivors(bytes: &[u8], each: &mut dyn FnMut(usize, u64, &[u8])) {
    let Ok(header) = Header::decode(bytes) else { return };
    let seed = header.seed();
    // As in a replay: a file made to look like records everywhere must not take for ever.
    let mut work = 4 * bytes.len();
    let mut at = HEADER;
    while at + PREFIX <= bytes.len() {
        let Some(record) = Record::unchecked(bytes, at) else {
            at += ALIGN;
            continue;
        };
        let Some(left) = work.checked_sub(record.end - at) else { return };
        work = left;
        if !record.is_right(bytes, at, &seed) {
            at += ALIGN;
            continue;
        }
        if let Some(payload) = record.payload {
            each(at, record.sequence, payload);
        }
        at = record.end;
    }
}

/// The file `number` of the log with this `identity`, made of what is `kept` of it (nothing: a new one), and a record of
/// `payload` for each of `numbers`, which are those that come next: so that none of them is given again.
pub fn go_on(
    kept: &[u8],
    number: u64,
    identity: u64,
    numbers: RangeInclusive<u64>,
    payload: &[u8],
) -> Vec<u8> {
    let (header, mut file) = match Header::decode(kept) {
        Ok(header) => (header, kept.to_vec()),
        Err(_) => {
            let header = Header { number, first: *numbers.start(), identity };
            (header, header.encode().to_vec())
        }
    };
    let (seed, mut record) = (header.seed(), Vec::new());
    for sequence in numbers {
        encode(&mut record, &seed, sequence, HEADER as u64, Some(payload));
        file.extend_from_slice(&record);
    }
    file
}

/// Whose log a file is, and the number of its first record, if its header is right.
pub fn header(bytes: &[u8]) -> Option<(u64, u64)> {
    Header::decode(bytes).ok().map(|header| (header.identity, header.first))
}

/// The number in the name of a file of the log.
pub fn number(name: &std::ffi::OsStr) -> Option<u64> {
    super::format::number(name)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::{Log, replay};
    use super::*;
    use crate::{Memory, Storage};
    use std::ops::ControlFlow;
    use std::path::Path;
    use std::sync::Arc;

    #[test]
    fn a_flipped_bit_anywhere_is_set_right() {
        let memory = Memory::new();
        let go_on = &mut |_: u64, _: &[u8]| ControlFlow::Continue(());
        let (log, _) = Log::open(Arc::new(memory.clone()), Path::new(""), 9, 1, go_on).unwrap();
        for size in [0usize, 5, 64] {
            let position = log.append(&vec![3; size]).unwrap();
            log.sync(position).unwrap();
        }
        let path = Path::new("log-0000000000000001");
        let file = (*memory.open(path).unwrap()).as_ref().to_vec();
        assert_eq!(mend(&file, 1, Some(9)), None);
        let (mut numbers, mut third) = (Vec::new(), 0);
        survivors(&file, &mut |at, number, _| {
            numbers.push(number);
            third = at;
        });
        assert_eq!((numbers, header(&file)), (vec![1, 2, 3], Some((9, 1))));
        let mut untouched = 0;
        for bit in 0..8 * file.len() {
            let mut wrong = file.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            let mended = mend(&wrong, 1, Some(9));
            assert_eq!(mended.as_ref(), Some(&file), "bit {bit}");
            // Two bits in one record are damage still.
            wrong[bit / 8] ^= 1 << ((bit + 3) % 8);
            untouched += usize::from(mend(&wrong, 1, Some(9)).is_none());
        }
        assert_eq!(untouched, 8 * file.len());
        assert!(replay(&memory, Path::new(""), 9, 1, go_on).is_ok());
        assert_eq!(mend(&file, 2, Some(9)), None);
        // What goes on behind two records, or behind none, reads on.
        for (kept, first) in [(&file[..third], 3), (&[][..], 1)] {
            let memory = Memory::new();
            memory.create(path).unwrap().append(&super::go_on(kept, 1, 9, first..=5, b"spent")).unwrap();
            let mut spent = Vec::new();
            let each = &mut |number: u64, record: &[u8]| {
                spent.extend((record == b"spent").then_some(number));
                ControlFlow::Continue(())
            };
            assert_eq!(replay(&memory, Path::new(""), 9, 1, each).unwrap().next, 6);
            assert!(spent.into_iter().eq(first..=5));
        }
    }
}
