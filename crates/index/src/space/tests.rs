//! Keys of stored vectors against their definition.

use super::*;
use proptest::prelude::*;

proptest! {
    /// Rows gathered by differences and rows in sequence, by inner products and norms, have the same keys: those that
    /// the definition gives. Dimensions on both sides of what counts as short.
    #[test]
    fn keys_of_bytes_are_the_same_however_rows_are_read(
        dim in 1usize..2 * SHORT,
        signed in any::<bool>(),
        bytes in proptest::collection::vec(prop_oneof![Just(0u8), Just(127), Just(128), Just(255), any::<u8>()], 18 * SHORT),
    ) {
        let dtype = if signed { Dtype::I8 } else { Dtype::U8 };
        let mut space = Space::new(dtype, Metric::L2, dim, Kernels::get().unwrap()).unwrap();
        let vectors = if signed { Vectors::I8(cast(&bytes)) } else { Vectors::U8(&bytes) };
        let vectors = vectors.slice(dim, 0..9);
        space.reserve(9).unwrap();
        space.append(vectors);
        let mut probe = Probe::default();
        space.prepare(vectors.slice(dim, 8..9), &mut probe);
        let (mut gathered, mut sequence) = ([0; 9], [0; 9]);
        space.keys_of(&probe, &[0, 1, 2, 3, 4, 5, 6, 7, 8], &mut gathered);
        space.keys_from(&probe, 0, &mut sequence);
        let value = |at: usize| if signed { i32::from(bytes[at] as i8) } else { i32::from(bytes[at]) };
        for row in 0..9 {
            let right: i32 = (0..dim).map(|d| (value(row * dim + d) - value(8 * dim + d)).pow(2)).sum();
            prop_assert_eq!((gathered[row], sequence[row]), (right, right), "row {}", row);
        }
    }
}
