//! Seeded vectors, the definition of every distance, and executors that run tasks in awkward orders.

use lanewise_index::{
    Dtype, Executor, Index, Inline, Kind, Metric, Neighbors, Params, Scratch, Search, Vectors,
};
use std::cell::Cell;
use std::ops::ControlFlow;

/// A small generator (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// Roughly normal: the sum of four uniform values.
    fn normal(&mut self) -> f32 {
        (0..4).map(|_| (self.next() >> 40) as f32 / (1 << 24) as f32 - 0.5).sum()
    }
}

/// Vectors of one element type.
#[derive(Clone, Debug)]
pub(crate) enum Data {
    F32(Vec<f32>),
    I8(Vec<i8>),
    U8(Vec<u8>),
    Bits(Vec<u8>),
}

impl Data {
    /// `n` vectors around a few centres, the same for every seed: near ones exist, as in real data. Some are repeated.
    pub(crate) fn clustered(dtype: Dtype, dim: usize, n: usize, seed: u64) -> Data {
        let mut random = Random(seed);
        let mut fixed = Random(99);
        let centres: Vec<f32> = (0..20 * dim).map(|_| fixed.normal()).collect();
        let mut floats: Vec<f32> = Vec::with_capacity(n * dim);
        for i in 0..n {
            if i > 10 && random.below(50) == 0 {
                let twin = random.below(i) * dim;
                floats.extend_from_within(twin..twin + dim);
                continue;
            }
            let centre = random.below(20) * dim;
            for d in 0..dim {
                floats.push(centres[centre + d] + 0.6 * random.normal());
            }
        }
        Data::from_floats(dtype, dim, &floats)
    }

    pub(crate) fn from_floats(dtype: Dtype, dim: usize, floats: &[f32]) -> Data {
        match dtype {
            Dtype::F32 | Dtype::F16 | Dtype::Bf16 => Data::F32(floats.to_vec()),
            Dtype::U8 => Data::U8(floats.iter().map(|x| (x * 80.0) as u8).collect()),
            Dtype::I8 => Data::I8(floats.iter().map(|x| (x * 80.0) as i8).collect()),
            Dtype::Bits => Data::Bits(floats.chunks(dim).flat_map(pack).collect()),
        }
    }

    pub(crate) fn vectors(&self) -> Vectors<'_> {
        match self {
            Data::F32(x) => Vectors::F32(x),
            Data::I8(x) => Vectors::I8(x),
            Data::U8(x) => Vectors::U8(x),
            Data::Bits(x) => Vectors::Bits(x),
        }
    }
}

fn pack(floats: &[f32]) -> Vec<u8> {
    let byte = |c: &[f32]| c.iter().enumerate().map(|(i, &x)| u8::from(x > 0.0) << i).sum();
    floats.chunks(8).map(byte).collect()
}

/// Every element type with every metric that measures it.
pub(crate) const SPACES: [(Dtype, Metric); 17] = [
    (Dtype::F32, Metric::L2),
    (Dtype::F32, Metric::InnerProduct),
    (Dtype::F32, Metric::Cosine),
    (Dtype::I8, Metric::L2),
    (Dtype::I8, Metric::InnerProduct),
    (Dtype::I8, Metric::Cosine),
    (Dtype::Bits, Metric::Hamming),
    (Dtype::Bits, Metric::Jaccard),
    (Dtype::U8, Metric::L2),
    (Dtype::U8, Metric::InnerProduct),
    (Dtype::U8, Metric::Cosine),
    (Dtype::F16, Metric::L2),
    (Dtype::F16, Metric::InnerProduct),
    (Dtype::F16, Metric::Cosine),
    (Dtype::Bf16, Metric::L2),
    (Dtype::Bf16, Metric::InnerProduct),
    (Dtype::Bf16, Metric::Cosine),
];

/// The distance by its definition, in `f64`.
pub(crate) fn distance(
    metric: Metric,
    dim: usize,
    a: Vectors<'_>,
    i: usize,
    b: Vectors<'_>,
    j: usize,
) -> f64 {
    let floats = |v: Vectors<'_>, i: usize| -> Vec<f64> {
        match v.slice(dim, i..i + 1) {
            Vectors::F32(x) => x.iter().map(|&e| e.into()).collect(),
            Vectors::I8(x) => x.iter().map(|&e| e.into()).collect(),
            Vectors::U8(x) => x.iter().map(|&e| e.into()).collect(),
            Vectors::Bits(x) => (0..dim).map(|d| f64::from(x[d / 8] >> (d % 8) & 1)).collect(),
        }
    };
    let (a, b) = (floats(a, i), floats(b, j));
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(p, q)| p * q).sum::<f64>();
    match metric {
        Metric::L2 | Metric::Hamming => a.iter().zip(&b).map(|(p, q)| (p - q).powi(2)).sum(),
        // Not −0, which would be sorted before 0.
        Metric::InnerProduct => 0.0 - dot(&a, &b),
        Metric::Jaccard => {
            let union = a.iter().zip(&b).filter(|(p, q)| **p + **q > 0.0).count();
            if union == 0 { 0.0 } else { 1.0 - dot(&a, &b) / union as f64 }
        }
        Metric::Cosine => 1.0 - dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt(),
    }
}

pub(crate) fn params(dtype: Dtype, metric: Metric, dim: usize, kind: Kind) -> Params {
    Params { dtype, metric, kind, m: 8, ef_construction: 64, nlist: 4, seed: 7, ..Params::new(dim) }
}

pub(crate) fn go_on(_: usize) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

pub(crate) fn build(params: Params, data: &Data) -> Index {
    let index = Index::new(params).unwrap();
    index.add(data.vectors(), None, &Inline, &mut go_on).unwrap();
    index
}

pub(crate) fn search(index: &Index, queries: &Data, k: usize, ef: usize) -> Vec<Neighbors> {
    index.search(queries.vectors(), &Search::new(k).ef(ef), &mut Scratch::default()).unwrap().0
}

/// Share of results that are as near as the k-th exact one.
pub(crate) fn recall(found: &[Neighbors], exact: &[Neighbors]) -> f64 {
    let mut hits = 0;
    let mut all = 0;
    for (f, e) in found.iter().zip(exact) {
        let worst = *e.distances.last().unwrap();
        hits += f.distances.iter().filter(|&&d| d <= worst).count();
        all += e.distances.len();
    }
    hits as f64 / all as f64
}

/// Runs tasks one after the other in a scrambled order on scrambled workers: what threads may do, reproducibly.
pub(crate) struct Scrambled {
    pub(crate) workers: usize,
    pub(crate) seed: u64,
}

impl Executor for Scrambled {
    fn workers(&self) -> usize {
        self.workers
    }

    fn run(&self, count: usize, task: &(dyn Fn(usize, usize) + Sync)) {
        let mut random = Random(self.seed);
        let mut order: Vec<usize> = (0..count).collect();
        for i in (1..count).rev() {
            order.swap(i, random.below(i + 1));
        }
        let worker = Cell::new(0);
        for i in order {
            worker.set(random.below(self.workers));
            task(worker.get(), i);
        }
    }
}
