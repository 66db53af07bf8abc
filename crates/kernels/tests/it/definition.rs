//! What each kernel computes, by its definition, in double precision; and how far a variant may be from it.

use lanewise_kernels::{bf16, f16};
use std::fmt::Debug;

/// A small generator with a printed seed (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn float(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}

/// A number as kernels take or give it.
pub(crate) trait Number: Copy + Default + Debug + PartialEq + 'static {
    fn draw(random: &mut Random) -> Self;
    fn extremes() -> Vec<Self>;
    fn value(self) -> f64;
}

impl Number for f32 {
    fn draw(random: &mut Random) -> f32 {
        random.float()
    }
    fn extremes() -> Vec<f32> {
        vec![1e15, -1e15, 0.0, -0.0, 1.0, 1e-30, f32::MIN_POSITIVE / 4.0]
    }
    fn value(self) -> f64 {
        self.into()
    }
}

impl Number for f16 {
    /// One in eight is subnormal.
    fn draw(random: &mut Random) -> f16 {
        match random.next() % 8 {
            0 => f16::from_bits((random.next() & 0x83ff) as u16),
            _ => f16::from_f32(random.float()),
        }
    }
    fn extremes() -> Vec<f16> {
        [0.0, -0.0, 1.0, 65504.0, -65504.0, 6e-8].map(f16::from_f32).to_vec()
    }
    fn value(self) -> f64 {
        self.to_f64()
    }
}

impl Number for bf16 {
    fn draw(random: &mut Random) -> bf16 {
        match random.next() % 8 {
            0 => bf16::from_bits((random.next() & 0x807f) as u16),
            _ => bf16::from_f32(random.float()),
        }
    }
    fn extremes() -> Vec<bf16> {
        [0.0, -0.0, 1.0, 1e15, -1e15, 1e-30, 1e-39].map(bf16::from_f32).to_vec()
    }
    fn value(self) -> f64 {
        self.to_f64()
    }
}

impl Number for i8 {
    fn draw(random: &mut Random) -> i8 {
        random.next() as i8
    }
    fn extremes() -> Vec<i8> {
        vec![-128, 127, 0, -1]
    }
    fn value(self) -> f64 {
        self.into()
    }
}

impl Number for u8 {
    fn draw(random: &mut Random) -> u8 {
        random.next() as u8
    }
    fn extremes() -> Vec<u8> {
        vec![255, 0, 0x80, 0x77, 0x0f, 0xf0]
    }
    fn value(self) -> f64 {
        self.into()
    }
}

impl Number for i32 {
    fn draw(_: &mut Random) -> i32 {
        unreachable!("results are not drawn")
    }
    fn extremes() -> Vec<i32> {
        Vec::new()
    }
    fn value(self) -> f64 {
        self.into()
    }
}

/// What a kernel is, read off its name: `dot_f32_avx2`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Name {
    pub(crate) op: String,
    pub(crate) kind: String,
    pub(crate) isa: String,
}

impl Name {
    pub(crate) fn of(kernel: &impl Debug) -> Self {
        let name = format!("{kernel:?}");
        let [op, kind, isa] = name.split('_').collect::<Vec<_>>()[..] else { panic!("{name}") };
        Name { op: op.into(), kind: kind.into(), isa: isa.into() }
    }

    /// Query values that the kernel is made for.
    pub(crate) fn fit<Q: Number>(&self, query: &mut [Q]) {
        if self.kind == "u8u4" {
            for x in query {
                // SAFETY: the query of u8u4 is bytes.
                unsafe { *std::ptr::from_mut(x).cast::<u8>() &= 15 };
            }
        }
    }

    /// Pairs of numbers that meet, in any order.
    fn pairs<Q: Number, R: Number>(&self, q: &[Q], r: &[R]) -> Vec<(f64, f64)> {
        let n = r.len();
        let byte = |x: f64| x as u8;
        let signed = |x: u8| f64::from((x ^ 8) as i8 - 8);
        let all = |x: &dyn Fn(usize) -> [(f64, f64); 8], some: usize| {
            (0..n).flat_map(|i| x(i).into_iter().take(some)).collect::<Vec<_>>()
        };
        let none = (0.0, 0.0);
        match self.kind.as_str() {
            "u4" | "i4" => {
                let number = |x: u8| if self.kind == "i4" { signed(x) } else { x.into() };
                let pair = |i: usize| {
                    let (a, b) = (byte(q[i].value()), byte(r[i].value()));
                    let (low, high) = ((number(a & 15), number(b & 15)), (number(a >> 4), number(b >> 4)));
                    [low, high, none, none, none, none, none, none]
                };
                all(&pair, 2)
            }
            "i8u4" | "u8u4" => {
                let pair = |i: usize| {
                    let b = byte(r[i].value());
                    let (high, low) =
                        ((q[i].value(), f64::from(b >> 4)), (q[n + i].value(), f64::from(b & 15)));
                    [high, low, none, none, none, none, none, none]
                };
                all(&pair, 2)
            }
            "u4bits" => {
                let pair = |i: usize| {
                    std::array::from_fn(|bit| {
                        let set = |x: f64| f64::from(byte(x) >> bit & 1);
                        let plane = |p: usize| f64::from(1u8 << p) * set(q[p * n + i].value());
                        ((0..4).map(plane).sum(), set(r[i].value()))
                    })
                };
                all(&pair, 8)
            }
            "bits" => {
                let pair = |i: usize| {
                    std::array::from_fn(|bit| {
                        let set = |x: f64| f64::from(byte(x) >> bit & 1);
                        (set(q[i].value()), set(r[i].value()))
                    })
                };
                all(&pair, 8)
            }
            _ => q.iter().zip(r).map(|(a, b)| (a.value(), b.value())).collect(),
        }
    }

    /// Fails unless `got` is what the definition says: integers, and quotients of them, to the bit. Floats: every term
    /// and every partial sum is rounded once, so the error is at most (n + 3) ulps of the sum of the terms' magnitudes
    /// (Higham, Accuracy and Stability, 3.1), plus what underflow may lose.
    pub(crate) fn check<Q: Number, R: Number, O: Number>(&self, q: &[Q], r: &[R], got: O, what: &str) {
        let pairs = self.pairs(q, r);
        let sum = |term: &dyn Fn(f64, f64) -> f64| pairs.iter().map(|&(a, b)| term(a, b)).sum::<f64>();
        let integers = !self.kind.contains('f');
        let got = got.value();
        let (dot, size) = (sum(&|a, b| a * b), sum(&|a, b| (a * b).abs()));
        let (a2, b2) = (sum(&|a, _| a * a), sum(&|_, b| b * b));
        let (value, size) = match self.op.as_str() {
            "dot" => (dot, size),
            "l2" => (sum(&|a, b| (a - b).powi(2)), sum(&|a, b| (a - b).powi(2))),
            "l1" => (sum(&|a, b| (a - b).abs()), sum(&|a, b| (a - b).abs())),
            "hamming" => (sum(&|a, b| (a - b).abs()), 0.0),
            "linf" => {
                let most = pairs.iter().map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                (most, most)
            }
            "jaccard" => {
                let either = a2 + b2 - dot;
                let value = if either == 0.0 { 0.0 } else { 1.0 - dot / either };
                (f64::from(value as f32), 0.0)
            }
            "cosine" if a2 == 0.0 || b2 == 0.0 => (0.0, 0.0),
            "cosine" => {
                let length = (a2 * b2).sqrt();
                // Squares must stay inside a float.
                if !integers && [a2, b2].iter().any(|&x| !(1e-25..3e38).contains(&x)) {
                    return;
                }
                let value = (dot / length).clamp(-1.0, 1.0);
                if integers { (f64::from(value as f32), 0.0) } else { (value, size / length + value.abs()) }
            }
            op => panic!("no definition of {op}"),
        };
        if integers {
            assert_eq!(got, value, "{what}");
            return;
        }
        let n = pairs.len() as f64;
        let mut bound = (n + 3.0) * f64::from(f32::EPSILON) * size + n * 1e-45;
        match self.isa.as_str() {
            // Subnormal numbers are taken as zero.
            "avx512bf16" | "amx" | "bf16" | "svebf16" => {
                let most = pairs.iter().fold(1.0f64, |most, (a, b)| most.max(a.abs()).max(b.abs()));
                bound += n * 2.4e-38 * most;
            }
            "avx512fp16" => {
                // Terms are rounded to 11 bits twice, and may not pass 65504.
                if pairs
                    .iter()
                    .any(|&(a, b)| if self.op == "dot" { a * b } else { (a - b).powi(2) }.abs() > 65000.0)
                {
                    return;
                }
                bound += size * 3.0 / 1024.0 + n * 1e-7;
            }
            _ => {}
        }
        let error = (got - value).abs();
        assert!(error <= bound, "{what}: got {got}, is {value}, error {error:e} over {bound:e}");
    }
}
