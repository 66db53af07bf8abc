//! Sums and rounding in plain `f32` operations of a fixed order: unlike a kernel's, whose order is its instruction set's,
//! they give the same bits on every machine, and so do the codes made from them. Written so that compilers vectorise.

const LANES: usize = 16;

/// The sum of `term(a, b)` over the pairs, in `LANES` partial sums.
#[inline]
fn sum(a: &[f32], b: &[f32], term: impl Fn(f32, f32) -> f32) -> f32 {
    let mut sums = [0.0f32; LANES];
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    for ((sum, &x), &y) in sums.iter_mut().zip(a.remainder()).zip(b.remainder()) {
        *sum = term(x, y);
    }
    for (x, y) in a.zip(b) {
        for lane in 0..LANES {
            sums[lane] += term(x[lane], y[lane]);
        }
    }
    sums.iter().sum()
}

/// Inner product.
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    sum(a, b, |x, y| x * y)
}

/// Sum of the squared differences.
pub(super) fn l2(a: &[f32], b: &[f32]) -> f32 {
    sum(a, b, |x, y| (x - y) * (x - y))
}

/// Sum of the magnitudes.
pub(super) fn norm1(a: &[f32]) -> f32 {
    sum(a, a, |x, _| x.abs())
}

/// The largest magnitude.
pub(super) fn most(a: &[f32]) -> f32 {
    let mut most = [0.0f32; LANES];
    let larger = |most: f32, x: f32| if x.abs() > most { x.abs() } else { most };
    let chunks = a.chunks_exact(LANES);
    for (most, &x) in most.iter_mut().zip(chunks.remainder()) {
        *most = x.abs();
    }
    for x in chunks {
        for lane in 0..LANES {
            most[lane] = larger(most[lane], x[lane]);
        }
    }
    most.into_iter().fold(0.0, larger)
}

/// No bits for fractions are left in a sum with this, and it ends in a byte of zeros. (The standard library's rounding
/// is a call on x86-64 without SSE4.1.)
const MAGIC: f32 = 12_582_912.0;

/// The nearest integer, the even one if there are two, of `x` within ±2²².
#[inline]
pub(super) fn round(x: f32) -> f32 {
    (x + MAGIC) - MAGIC
}

/// The same as a byte, of `x` within -128 and 255.
#[inline]
pub(super) fn byte(x: f32) -> u8 {
    (x + MAGIC).to_bits() as u8
}

/// The sums of the two results of `term`.
#[inline]
pub(super) fn two_sums(a: &[f32], term: impl Fn(f32) -> (f32, f32)) -> (f32, f32) {
    let (mut first, mut second) = ([0.0f32; LANES], [0.0f32; LANES]);
    let chunks = a.chunks_exact(LANES);
    for (lane, &x) in chunks.remainder().iter().enumerate() {
        (first[lane], second[lane]) = term(x);
    }
    for x in chunks {
        for lane in 0..LANES {
            let (one, two) = term(x[lane]);
            first[lane] += one;
            second[lane] += two;
        }
    }
    (first.iter().sum(), second.iter().sum())
}
