//! Setting right a single flipped bit by the checksum that no longer fits: what bad memory and tired disks do most.
//!
//! A CRC is linear: the difference between the checksum that bytes have and the one that they should have depends on the
//! wrong bits alone. CRC32C tells all single and double errors of up to 2³¹ bits apart (its Hamming distance there is 4,
//! Koopman, "32-Bit Cyclic Redundancy Codes for Internet Applications", DSN 2002), so a difference that a single bit
//! explains is that bit, or at least three others: of random damage to a block of 64 KiB, one in 8,000 looks so.
//! Only repairs come here; whoever reads refuses what does not have its checksum.

/// The polynomial, its bits in the order of a byte's.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// What is wrong with bytes whose checksum should be another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flipped {
    /// A bit of theirs, counted from the lowest of the first byte.
    Bit(usize),
    /// One of the checksum beside them.
    Checksum,
}

/// The only bit of `bytes` bytes, or of their checksum, that can be wrong if they have the checksum `found` and should
/// have `expected`.
pub(crate) fn flipped(bytes: usize, found: u32, expected: u32) -> Option<Flipped> {
    let difference = found ^ expected;
    let mut state = 1u32;
    for after in 0..8 * bytes {
        state = if state & 1 == 1 { state >> 1 ^ POLYNOMIAL } else { state >> 1 };
        if state == difference {
            return Some(Flipped::Bit(8 * bytes - 1 - after));
        }
    }
    difference.is_power_of_two().then_some(Flipped::Checksum)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::checksum::crc;

    #[test]
    fn any_single_bit_is_found_and_no_two() {
        let bytes: Vec<u8> = (0..300u32).map(|i| (i * i) as u8).collect();
        let right = crc(&bytes);
        for bit in 0..8 * bytes.len() {
            let mut wrong = bytes.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(flipped(bytes.len(), crc(&wrong), right), Some(Flipped::Bit(bit)));
            let other = (bit * 7 + 1) % (8 * bytes.len());
            if other != bit {
                wrong[other / 8] ^= 1 << (other % 8);
                assert_eq!(flipped(bytes.len(), crc(&wrong), right), None);
            }
        }
        for bit in 0..32 {
            assert_eq!(flipped(bytes.len(), right, right ^ 1 << bit), Some(Flipped::Checksum));
        }
        assert_eq!(flipped(0, 5, 5), None);
    }
}
