//! One harness over all kernels and variants: each form agrees with the definition (integers to the bit, floats within
//! the stated bound), at every dimension from 0 to 600, at every misalignment, at extreme values, next to guard pages.

use crate::definition::{Name, Number, Random};
use crate::guarded::Guarded;
use lanewise_kernels::{BLOCK, Kernel, Kernels, Rows, Scan};

/// Dimensions up to here are all tried.
const DIMS: usize = 600;

/// Or up to `LANEWISE_TEST_DIMS`, for emulators that take minutes over each instruction set.
fn dims() -> usize {
    std::env::var("LANEWISE_TEST_DIMS").map_or(DIMS, |dims| dims.parse().unwrap()).min(DIMS)
}

/// `all`, or `few` for such emulators.
fn thorough(all: usize, few: usize) -> usize {
    if dims() == DIMS { all } else { few }
}

/// Runs `test` on every variant of every kernel.
macro_rules! every_kernel {
    ($test:ident) => {{
        let all = Kernels::every_variant();
        all.dot_f32.iter().for_each(|k| $test(k));
        all.l2_f32.iter().for_each(|k| $test(k));
        all.cosine_f32.iter().for_each(|k| $test(k));
        all.l1_f32.iter().for_each(|k| $test(k));
        all.linf_f32.iter().for_each(|k| $test(k));
        all.dot_f16.iter().for_each(|k| $test(k));
        all.l2_f16.iter().for_each(|k| $test(k));
        all.cosine_f16.iter().for_each(|k| $test(k));
        all.dot_bf16.iter().for_each(|k| $test(k));
        all.l2_bf16.iter().for_each(|k| $test(k));
        all.cosine_bf16.iter().for_each(|k| $test(k));
        all.dot_f32f16.iter().for_each(|k| $test(k));
        all.l2_f32f16.iter().for_each(|k| $test(k));
        all.dot_f32bf16.iter().for_each(|k| $test(k));
        all.l2_f32bf16.iter().for_each(|k| $test(k));
        all.dot_f32i8.iter().for_each(|k| $test(k));
        all.l2_f32i8.iter().for_each(|k| $test(k));
        all.dot_f32u8.iter().for_each(|k| $test(k));
        all.l2_f32u8.iter().for_each(|k| $test(k));
        all.dot_i8.iter().for_each(|k| $test(k));
        all.l2_i8.iter().for_each(|k| $test(k));
        all.cosine_i8.iter().for_each(|k| $test(k));
        all.l1_i8.iter().for_each(|k| $test(k));
        all.linf_i8.iter().for_each(|k| $test(k));
        all.dot_u8.iter().for_each(|k| $test(k));
        all.l2_u8.iter().for_each(|k| $test(k));
        all.cosine_u8.iter().for_each(|k| $test(k));
        all.dot_i4.iter().for_each(|k| $test(k));
        all.l2_i4.iter().for_each(|k| $test(k));
        all.dot_u4.iter().for_each(|k| $test(k));
        all.l2_u4.iter().for_each(|k| $test(k));
        all.dot_i8u4.iter().for_each(|k| $test(k));
        all.l2_u8u4.iter().for_each(|k| $test(k));
        all.dot_u4bits.iter().for_each(|k| $test(k));
        all.hamming_bits.iter().for_each(|k| $test(k));
        all.jaccard_bits.iter().for_each(|k| $test(k));
    }};
}

fn vector<T: Number>(random: &mut Random, n: usize) -> Vec<T> {
    (0..n).map(|_| T::draw(random)).collect()
}

fn query<Q: Number, O, R>(kernel: &Kernel<Q, O, R>, random: &mut Random, n: usize) -> Vec<Q> {
    let mut q = vector(random, n * kernel.per());
    Name::of(kernel).fit(&mut q);
    q
}

fn bytes<T>(data: &[T]) -> &[u8] {
    // SAFETY: plain numbers without padding, read as bytes.
    unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), size_of_val(data)) }
}

#[test]
fn every_dimension_next_to_guard_pages() {
    every_kernel!(one_at_guards);
}

fn one_at_guards<Q: Number, O: Number, R: Number>(kernel: &Kernel<Q, O, R>) {
    let name = Name::of(kernel);
    let mut random = Random(1);
    let (mut left, mut right) = (Guarded::new(DIMS * 4 * 4), Guarded::new(DIMS * 4));
    for n in 0..=dims() {
        let (a, b) = (query(kernel, &mut random, n), vector::<R>(&mut random, n));
        let what = format!("{kernel:?} n={n}");
        let got = kernel.one(left.at_end(&a), right.at_end(&b));
        name.check(&a, &b, got, &what);
        // The same bits wherever the vectors stand.
        assert_eq!(got, kernel.one(left.at_start(&a), right.at_start(&b)), "{what}");
        assert_eq!(got, kernel.one(left.at_end(&a), right.at_start(&b)), "{what}");
    }
}

#[test]
fn rows_and_ids_and_tiles_next_to_guard_pages() {
    every_kernel!(many_at_guards);
}

fn many_at_guards<Q: Number, O: Number, R: Number>(kernel: &Kernel<Q, O, R>) {
    let name = Name::of(kernel);
    let mut random = Random(2);
    const MOST: usize = 19;
    // More than the eight of a block of the Arm matrix instructions.
    const QUERIES: usize = 9;
    let mut left = Guarded::new(QUERIES * DIMS * 4 * 4);
    let mut matrix = Guarded::new(MOST * DIMS * 4);
    let mut list = Guarded::new(40 * 4);
    for n in (0..=dims()).filter(|n| n % 7 == 0 || *n < thorough(140, 36)) {
        // Counts go through every way of splitting into groups of eight, four, two and one.
        let count = n % MOST + 1;
        let queries = n % QUERIES + 1;
        let all = query(kernel, &mut random, n * queries);
        let each = n * kernel.per();
        let flat = vector::<R>(&mut random, n * count);
        let ids: Vec<u32> = (0..(n * 5) % 33).map(|_| (random.next() % count as u64) as u32).collect();
        let all = left.at_end(&all);
        let q = &all[..each];
        let stride = n * size_of::<R>();
        let rows = Rows::new(bytes(matrix.at_end(&flat)), stride, count, n);
        let mut out = vec![O::default(); count];
        kernel.rows(q, rows, 0, &mut out);
        for (r, &got) in out.iter().enumerate() {
            name.check(q, &flat[r * n..][..n], got, &format!("{kernel:?} rows n={n} row {r}/{count}"));
        }
        let mut gathered = vec![O::default(); ids.len()];
        kernel.ids(q, rows, list.at_end(&ids), &mut gathered);
        for (&id, &got) in ids.iter().zip(&gathered) {
            // To the bit, floats too: a row's result does not depend on its place in the call or on the form.
            assert_eq!(got, out[id as usize], "{kernel:?} ids n={n} id {id} of {ids:?}");
        }
        let mut pairs = vec![O::default(); count * queries];
        kernel.tile(Rows::new(bytes(all), each * size_of::<Q>(), queries, each), rows, &mut pairs);
        for (j, pairs) in pairs.chunks(count).enumerate() {
            for (r, &got) in pairs.iter().enumerate() {
                let what = format!("{kernel:?} tile n={n} query {j}/{queries} row {r}/{count}");
                name.check(&all[j * each..][..each], &flat[r * n..][..n], got, &what);
                // AMX adds floats in another order than BF16, which serves the other forms.
                if j == 0 && (name.isa.as_str(), name.kind.as_str()) != ("amx", "bf16") {
                    assert_eq!(got, out[r], "{what}");
                }
            }
        }
    }
}

#[test]
fn tiles_of_every_shape() {
    every_kernel!(shapes);
}

/// Results are the same bits whatever else is in the call: at each count of queries and rows to beyond what a tile
/// takes at once, with gaps between rows, off any alignment, at lengths of one part and of several.
fn shapes<Q: Number, O: Number, R: Number>(kernel: &Kernel<Q, O, R>) {
    let name = Name::of(kernel);
    let mut random = Random(6);
    // Other loops have short periods; tiles have edges of their own.
    let tiles = name.isa == "amx";
    let most = if tiles { 70 } else { 19 };
    let shapes: Vec<(usize, usize)> = if tiles {
        (1..=40).flat_map(|j| (1..=40).map(move |k| (j, k))).chain([(most, 65), (65, most)]).collect()
    } else {
        (1..=most).map(|j| (j, j * 7 % most + 1)).collect()
    };
    for n in [0, 1, 63, 130, 1025, 2090] {
        if n > dims() && !tiles {
            continue;
        }
        let (q_gap, gap) = (3 * kernel.per(), 5);
        let (q_stride, stride) = (n * kernel.per() + q_gap, n + gap);
        let (a, b) =
            (query(kernel, &mut random, (n + 3) * most + 1), vector::<R>(&mut random, stride * most + 1));
        let (a, b) = (&a[kernel.per()..], &b[1..]);
        let tile = |j: usize, k: usize, queries: usize, count: usize, out: &mut [O]| {
            let q =
                Rows::new(bytes(&a[j * q_stride..]), q_stride * size_of::<Q>(), queries, n * kernel.per());
            kernel.tile(q, Rows::new(bytes(&b[k * stride..]), stride * size_of::<R>(), count, n), out);
        };
        let mut alone = vec![O::default(); most * most];
        for (i, out) in alone.iter_mut().enumerate() {
            let (j, k) = (i / most, i % most);
            tile(j, k, 1, 1, std::slice::from_mut(out));
            if i % 17 == 0 {
                let what = format!("{kernel:?} n={n} query {j} row {k}");
                name.check(&a[j * q_stride..][..n * kernel.per()], &b[k * stride..][..n], *out, &what);
            }
        }
        for &(queries, count) in shapes.iter().filter(|(j, k)| n < 1000 || (j + k) % 9 == 0 || *j > 40) {
            let mut out = vec![O::default(); queries * count];
            tile(0, 0, queries, count, &mut out);
            for (i, &got) in out.iter().enumerate() {
                let (j, k) = (i / count, i % count);
                assert_eq!(
                    got,
                    alone[j * most + k],
                    "{kernel:?} n={n} {queries} x {count}, query {j} row {k}"
                );
            }
        }
    }
}

#[test]
fn tiles_of_more_rows_than_a_panel() {
    let mut random = Random(4);
    let (n, count, queries) = (1024, 301, 9);
    let (a, b) = (vector::<f32>(&mut random, n * queries), vector::<f32>(&mut random, n * count));
    let rows = Rows::new(bytes(&b), n * 4, count, n);
    for kernel in Kernels::every_variant().dot_f32 {
        let mut out = vec![0.0; queries * count];
        kernel.tile(Rows::new(bytes(&a), n * 4, queries, n), rows, &mut out);
        for (j, out) in out.chunks(count).enumerate() {
            let mut expected = vec![0.0; count];
            kernel.rows(&a[j * n..][..n], rows, 0, &mut expected);
            assert_eq!(out, expected, "{kernel:?} query {j}");
        }
    }
}

#[test]
fn every_misalignment() {
    every_kernel!(misaligned);
}

fn misaligned<Q: Number, O: Number, R: Number>(kernel: &Kernel<Q, O, R>) {
    let name = Name::of(kernel);
    let mut random = Random(3);
    let (a, b) = (query(kernel, &mut random, 1024), vector::<R>(&mut random, 1024));
    let steps = 64 / size_of::<R>();
    for n in [1, 3, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 255, 384, 513] {
        for i in (0..steps).step_by(thorough(1, 5)) {
            for j in [0, 1, steps / 2, steps - 1] {
                let (x, y) = (&a[i..i + n * kernel.per()], &b[j..j + n]);
                name.check(x, y, kernel.one(x, y), &format!("{kernel:?} n={n} offsets {i}, {j}"));
            }
        }
    }
}

#[test]
fn extreme_values() {
    every_kernel!(extreme);
}

fn extreme<Q: Number, O: Number, R: Number>(kernel: &Kernel<Q, O, R>) {
    let name = Name::of(kernel);
    for (i, x) in Q::extremes().into_iter().enumerate() {
        for (j, y) in R::extremes().into_iter().enumerate() {
            // The last count is the largest whose integer results are promised to be exact, if that is not very long;
            // the first two values are the ones whose sums are largest.
            let longest = if i.max(j) < 2 { kernel.bound().min(140_000) } else { 4096 };
            for n in [1, 15, 64, 257, thorough(longest, 1030)] {
                let (mut a, b) = (vec![x; n * kernel.per()], vec![y; n]);
                name.fit(&mut a);
                name.check(&a, &b, kernel.one(&a, &b), &format!("{kernel:?} {x:?} {y:?} n={n}"));
                let mut out = [O::default(); 1];
                kernel.ids(&a, Rows::new(bytes(&b), n * size_of::<R>(), 1, n), &[0], &mut out);
                name.check(&a, &b, out[0], &format!("{kernel:?} ids {x:?} {y:?} n={n}"));
            }
        }
    }
}

#[test]
fn not_a_number_is_not_lost() {
    let all = Kernels::every_variant();
    for kernel in
        [&all.dot_f32, &all.l2_f32, &all.cosine_f32, &all.l1_f32, &all.linf_f32].into_iter().flatten()
    {
        for n in [1, 16, 33, 100] {
            for at in 0..n {
                let (mut a, b) = (vec![1.0; n], vec![2.0; n]);
                a[at] = f32::NAN;
                assert!(kernel.one(&a, &b).is_nan(), "{kernel:?} n={n} at {at}");
                // Against a vector without length, too.
                assert!(kernel.one(&a, &vec![0.0; n]).is_nan(), "{kernel:?} n={n} at {at}, against zeroes");
            }
        }
    }
}

#[test]
fn every_scan_sums_the_tables() {
    for scan in Kernels::every_variant().scan_pq4 {
        let mut random = Random(5);
        for m in [0, 1, 2, 3, 4, 5, 7, 8, 16, 31, 96, scan.bound()] {
            let blocks = m % 5 + 1;
            let largest = if m == scan.bound() { 255 } else { 0 };
            let tables: Vec<u8> = (0..16 * m).map(|_| u8::draw(&mut random) | largest).collect();
            let codes: Vec<u8> = vector(&mut random, 16 * m * blocks);
            let (mut left, mut right) = (Guarded::new(tables.len()), Guarded::new(codes.len()));
            let mut out = vec![0; blocks * BLOCK];
            scan.scan(left.at_end(&tables), right.at_end(&codes), &mut out);
            for (v, &got) in out.iter().enumerate() {
                let code = |s: usize| {
                    let byte = codes[((v / 32) * m + s) * 16 + v % 16];
                    usize::from(if v % 32 < 16 { byte & 15 } else { byte >> 4 })
                };
                let sum: u32 = (0..m).map(|s| u32::from(tables[16 * s + code(s)])).sum();
                assert_eq!(u32::from(got), sum, "{scan:?} m={m} vector {v}");
            }
        }
    }
}

#[test]
#[should_panic(expected = "bytes of the codes")]
fn a_scan_of_too_few_codes_is_refused() {
    let scan: Scan = Kernels::get().unwrap().scan_pq4;
    scan.scan(&[0; 32], &[0; 63], &mut [0; 64]);
}

#[test]
#[should_panic(expected = "id without a row")]
fn an_id_without_a_row_is_refused() {
    let kernel = Kernels::get().unwrap().dot_f32;
    let rows = [0.0f32; 8];
    kernel.ids(&[0.0; 4], Rows::new(bytes(&rows), 16, 2, 4), &[0, 2], &mut [0.0; 2]);
}

#[test]
#[should_panic(expected = "dot_u8_scalar is exact up to 33025 elements, not 33026")]
fn beyond_its_bound_a_kernel_refuses() {
    let long = vec![0u8; 33026];
    Kernels::at_level("scalar").unwrap().dot_u8.one(&long, &long);
}
