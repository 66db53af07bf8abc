//! How many bytes to go over so that they stay in one level of the memory: by the sizes of the caches, which are taken
//! for hints, since systems report them wrongly or not at all.

use super::expected::Part;
use lanewise_engine::topology::Machine;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
const GIB: usize = 1 << 30;

/// One level, as it is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Level {
    pub(super) read: Part,
    pub(super) copy: Part,
    /// A multiple of 16, at least 2 KiB.
    pub(super) bytes: usize,
}

/// The levels of the first chiplet, nearest first.
pub(super) fn levels(machine: &Machine) -> Vec<Level> {
    let caches = machine.chiplets.first().map_or(&[][..], |chiplet| &chiplet.caches);
    let cache = |level| {
        let bytes = caches.iter().find(|cache| cache.level == level).and_then(|cache| cache.bytes);
        bytes.and_then(|bytes| usize::try_from(bytes).ok())
    };
    let free = machine.memory.available_bytes.into_iter().chain(machine.limits.memory_bytes).min();
    by_sizes([cache(1), cache(2), cache(3)], free.and_then(|bytes| usize::try_from(bytes).ok()))
}

/// From the sizes of the caches and of the memory that is free, where they are known. A level is left out where there is
/// no such cache, or where measuring it would take more than 1 GiB or a quarter of what is free.
fn by_sizes([l1, l2, l3]: [Option<usize>; 3], free: Option<usize>) -> Vec<Level> {
    // Sizes that no such cache ever had are not believed.
    let l1 = l1.filter(|bytes| (4 * KIB..=MIB).contains(bytes)).unwrap_or(32 * KIB);
    let l2 = l2.filter(|bytes| (2 * l1 + 1..=64 * MIB).contains(bytes));
    let l3 = l3.filter(|bytes| (2 * l2.unwrap_or(l1) + 1..=4 * GIB).contains(bytes));
    // Half of a cache is surely in it. The last one is shared: a virtual machine sees all of it and gets some.
    let half_of_l3 = |bytes: usize| (bytes / 2).min((32 * MIB).max(l2.unwrap_or(l1) * 2));
    // Twice the last cache, so that nothing is left of one pass when the next begins.
    let memory = (2 * l3.or(l2).unwrap_or(l1)).max(64 * MIB);
    let most = free.map_or(128 * MIB, |bytes| bytes / 4).min(GIB);
    let all = [
        (Part::ReadL1, Part::CopyL1, Some(l1 / 2)),
        (Part::ReadL2, Part::CopyL2, l2.map(|bytes| bytes / 2)),
        (Part::ReadL3, Part::CopyL3, l3.map(half_of_l3)),
        (Part::ReadMemory, Part::CopyMemory, Some(memory)),
    ];
    let level = |(read, copy, bytes): (Part, Part, Option<usize>)| {
        let bytes = bytes.map(|bytes| bytes & !15).filter(|&bytes| bytes <= most.max(MIB))?;
        Some(Level { read, copy, bytes })
    };
    all.into_iter().filter_map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(caches: [usize; 3], free: Option<usize>) -> Vec<(Part, usize)> {
        let known = caches.map(|bytes| (bytes > 0).then_some(bytes));
        by_sizes(known, free).iter().map(|level| (level.read, level.bytes)).collect()
    }

    #[test]
    fn each_level_gets_what_fits_it_and_not_the_one_before() {
        let server = bytes([48 * KIB, 2 * MIB, 260 * MIB], Some(24 * GIB));
        let expected = [
            (Part::ReadL1, 24 * KIB),
            (Part::ReadL2, MIB),
            (Part::ReadL3, 32 * MIB),
            (Part::ReadMemory, 520 * MIB),
        ];
        assert_eq!(server, expected);
        // A small Arm board: no third level.
        let board = bytes([32 * KIB, MIB, 0], Some(GIB));
        assert_eq!(
            board,
            [(Part::ReadL1, 16 * KIB), (Part::ReadL2, 512 * KIB), (Part::ReadMemory, 64 * MIB)]
        );
    }

    #[test]
    fn what_would_take_too_much_memory_is_left_out() {
        let levels = bytes([48 * KIB, 2 * MIB, 260 * MIB], Some(256 * MIB));
        assert_eq!(levels.last(), Some(&(Part::ReadL3, 32 * MIB)));
        let nothing_free = bytes([48 * KIB, 2 * MIB, 260 * MIB], Some(0));
        assert_eq!(nothing_free, [(Part::ReadL1, 24 * KIB), (Part::ReadL2, MIB)]);
    }

    #[test]
    fn no_size_that_a_system_may_claim_does_harm() {
        let sizes = [
            0,
            1,
            4 * KIB,
            32 * KIB,
            64 * KIB,
            MIB,
            2 * MIB,
            40 * MIB,
            100 * MIB,
            GIB,
            usize::MAX / 2,
            usize::MAX,
        ];
        for l1 in sizes {
            for l2 in sizes {
                for (l3, free) in sizes.iter().flat_map(|&l3| sizes.map(|free| (l3, free))) {
                    let levels = bytes([l1, l2, l3], Some(free));
                    assert_eq!(levels[0].0, Part::ReadL1);
                    for (_, bytes) in &levels {
                        assert!(
                            (2 * KIB..=GIB).contains(bytes) && bytes % 16 == 0,
                            "{l1} {l2} {l3}: {levels:?}"
                        );
                    }
                    assert!(levels.is_sorted_by_key(|&(_, bytes)| bytes), "{l1} {l2} {l3}: {levels:?}");
                }
            }
        }
    }
}
