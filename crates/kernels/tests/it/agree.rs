//! One harness over all kernels and variants: each form agrees with the definition (integers to the bit, floats within
//! the stated bound), at every dimension from 0 to 600, at every misalignment, at extreme values, next to guard pages.

use crate::guarded::Guarded;
use lanewise_kernels::{Kernel, Kernels, Rows};
use std::fmt::Debug;

/// Dimensions up to here are all tried.
const DIMS: usize = 600;

/// A small generator with a printed seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// An element type of the kernels: how values are drawn, and what an operation gives by its definition.
trait Element: Copy + Default + Debug {
    type Out: Copy + Default + Debug + PartialEq;
    fn draw(random: &mut Random) -> Self;
    fn extremes() -> Vec<[Self; 2]>;
    fn check(op: Op, a: &[Self], b: &[Self], got: Self::Out, what: &str);
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    Dot,
    L2,
    Hamming,
}

impl Element for f32 {
    type Out = f32;

    fn draw(random: &mut Random) -> f32 {
        (random.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    fn extremes() -> Vec<[f32; 2]> {
        vec![[0.0, 0.0], [1e15, -1e15], [1e-30, 1e-30], [f32::MIN_POSITIVE / 4.0, 1.0], [-0.0, 3.0]]
    }

    /// The bound: every product and every partial sum is rounded once, so the error is at most (n + 2) ulps of the sum
    /// of the terms' magnitudes (Higham, Accuracy and Stability, 3.1), plus what underflow may lose.
    fn check(op: Op, a: &[f32], b: &[f32], got: f32, what: &str) {
        let terms = a.iter().zip(b).map(|(&x, &y)| match op {
            Op::Dot => f64::from(x) * f64::from(y),
            _ => (f64::from(x) - f64::from(y)).powi(2),
        });
        let (sum, size) = terms.fold((0.0, 0.0), |(s, m), t| (s + t, m + t.abs()));
        let bound = (a.len() as f64 + 3.0) * f64::from(f32::EPSILON) * size + a.len() as f64 * 1e-45;
        let error = (f64::from(got) - sum).abs();
        assert!(error <= bound, "{what}: got {got}, is {sum}, error {error:e} over {bound:e}");
    }
}

impl Element for i8 {
    type Out = i32;

    fn draw(random: &mut Random) -> i8 {
        random.next() as i8
    }

    fn extremes() -> Vec<[i8; 2]> {
        vec![[-128, -128], [-128, 127], [127, 127], [127, -128], [0, -128], [-1, 1]]
    }

    fn check(op: Op, a: &[i8], b: &[i8], got: i32, what: &str) {
        let term = |x: i64, y: i64| if op == Op::Dot { x * y } else { (x - y) * (x - y) };
        let sum: i64 = a.iter().zip(b).map(|(&x, &y)| term(x.into(), y.into())).sum();
        assert_eq!(i64::from(got), sum, "{what}");
    }
}

impl Element for u8 {
    type Out = i32;

    fn draw(random: &mut Random) -> u8 {
        random.next() as u8
    }

    fn extremes() -> Vec<[u8; 2]> {
        vec![[0, 0], [0, 255], [255, 0], [255, 255], [0x80, 0x01]]
    }

    fn check(_: Op, a: &[u8], b: &[u8], got: i32, what: &str) {
        let sum: u32 = a.iter().zip(b).map(|(x, y)| (x ^ y).count_ones()).sum();
        assert_eq!(got as u32, sum, "{what}");
    }
}

/// Runs `test` on every variant of every kernel, and says which were run.
macro_rules! every_kernel {
    ($test:ident) => {{
        let all = Kernels::every_variant();
        all.dot_f32.iter().for_each(|k| $test(Op::Dot, k));
        all.l2_f32.iter().for_each(|k| $test(Op::L2, k));
        all.dot_i8.iter().for_each(|k| $test(Op::Dot, k));
        all.l2_i8.iter().for_each(|k| $test(Op::L2, k));
        all.hamming_bits.iter().for_each(|k| $test(Op::Hamming, k));
    }};
}

fn vector<T: Element>(random: &mut Random, n: usize) -> Vec<T> {
    (0..n).map(|_| T::draw(random)).collect()
}

fn bytes<T>(data: &[T]) -> &[u8] {
    // SAFETY: plain numbers without padding, read as bytes.
    unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), size_of_val(data)) }
}

#[test]
fn every_dimension_next_to_guard_pages() {
    every_kernel!(one_at_guards);
}

fn one_at_guards<T: Element>(op: Op, kernel: &Kernel<T, T::Out>) {
    let mut random = Random(1);
    let (mut left, mut right) = (Guarded::new(DIMS * 4), Guarded::new(DIMS * 4));
    for n in 0..=DIMS {
        let (a, b) = (vector::<T>(&mut random, n), vector::<T>(&mut random, n));
        let what = format!("{kernel:?} n={n}");
        T::check(op, &a, &b, kernel.one(left.at_end(&a), right.at_end(&b)), &what);
        T::check(op, &a, &b, kernel.one(left.at_start(&a), right.at_start(&b)), &what);
        T::check(op, &a, &b, kernel.one(left.at_end(&a), right.at_start(&b)), &what);
    }
}

#[test]
fn rows_and_ids_next_to_guard_pages() {
    every_kernel!(many_at_guards);
}

fn many_at_guards<T: Element>(op: Op, kernel: &Kernel<T, T::Out>) {
    let mut random = Random(2);
    const MOST: usize = 19;
    let mut query = Guarded::new(DIMS * 4);
    let mut matrix = Guarded::new(MOST * DIMS * 4);
    let mut list = Guarded::new(40 * 4);
    for n in (0..=DIMS).filter(|n| n % 7 == 0 || *n < 140) {
        // Counts go through every way of splitting into groups of eight, four, two and one.
        let count = n % MOST + 1;
        let q = vector::<T>(&mut random, n);
        let flat = vector::<T>(&mut random, n * count);
        let ids: Vec<u32> = (0..(n * 5) % 33).map(|_| (random.next() % count as u64) as u32).collect();
        let q = query.at_end(&q);
        let stride = n * size_of::<T>();
        let rows = Rows::new(bytes(matrix.at_end(&flat)), stride, count, n);
        let mut out = vec![T::Out::default(); count];
        kernel.rows(q, rows, 0, &mut out);
        for (r, &got) in out.iter().enumerate() {
            T::check(op, q, &flat[r * n..][..n], got, &format!("{kernel:?} rows n={n} row {r}/{count}"));
        }
        let mut gathered = vec![T::Out::default(); ids.len()];
        kernel.ids(q, rows, list.at_end(&ids), &mut gathered);
        for (&id, &got) in ids.iter().zip(&gathered) {
            // To the bit, floats too: a row's result does not depend on its place in the call or on the form.
            assert_eq!(got, out[id as usize], "{kernel:?} ids n={n} id {id} of {ids:?}");
        }
    }
}

#[test]
fn every_misalignment() {
    every_kernel!(misaligned);
}

fn misaligned<T: Element>(op: Op, kernel: &Kernel<T, T::Out>) {
    let mut random = Random(3);
    let (a, b) = (vector::<T>(&mut random, 1024), vector::<T>(&mut random, 1024));
    let steps = 64 / size_of::<T>();
    for n in [1, 3, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 255, 384, 513] {
        for i in 0..steps {
            for j in [0, 1, steps / 2, steps - 1] {
                let (x, y) = (&a[i..i + n], &b[j..j + n]);
                T::check(op, x, y, kernel.one(x, y), &format!("{kernel:?} n={n} offsets {i}, {j}"));
            }
        }
    }
}

#[test]
fn extreme_values() {
    every_kernel!(extreme);
}

fn extreme<T: Element>(op: Op, kernel: &Kernel<T, T::Out>) {
    for [x, y] in T::extremes() {
        // The last count is the largest whose integer results are promised to be exact.
        for n in [1, 15, 64, 257, 4096, kernel.bound().min(140_000)] {
            let (a, b) = (vec![x; n], vec![y; n]);
            T::check(op, &a, &b, kernel.one(&a, &b), &format!("{kernel:?} {x:?} {y:?} n={n}"));
            let mut out = [T::Out::default(); 1];
            kernel.ids(&a, Rows::new(bytes(&b), n * size_of::<T>(), 1, n), &[0], &mut out);
            T::check(op, &a, &b, out[0], &format!("{kernel:?} ids {x:?} {y:?} n={n}"));
        }
    }
}

#[test]
fn not_a_number_is_not_lost() {
    let all = Kernels::every_variant();
    for kernel in all.dot_f32.iter().chain(&all.l2_f32) {
        for n in [1, 16, 33, 100] {
            for at in 0..n {
                let (mut a, b) = (vec![1.0; n], vec![2.0; n]);
                a[at] = f32::NAN;
                assert!(kernel.one(&a, &b).is_nan(), "{kernel:?} n={n} at {at}");
            }
        }
    }
}

#[test]
#[should_panic(expected = "id without a row")]
fn an_id_without_a_row_is_refused() {
    let kernel = Kernels::get().unwrap().dot_f32;
    let rows = [0.0f32; 8];
    kernel.ids(&[0.0; 4], Rows::new(bytes(&rows), 16, 2, 4), &[0, 2], &mut [0.0; 2]);
}
