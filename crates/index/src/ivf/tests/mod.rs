//! Lists against their definitions: exact assignment, exact distances, the same bytes at any number of workers.

mod clusters;
mod codes;
mod growth;
mod search;

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads, for tests: tasks go to whoever is free.
pub(super) struct Workers(pub(super) usize);

impl Executor for Workers {
    fn workers(&self) -> usize {
        self.0
    }

    #[expect(clippy::disallowed_methods, reason = "a test's own threads")]
    fn run(&self, count: usize, task: &(dyn Fn(usize, usize) + Sync)) {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for worker in 0..self.0 {
                let next = &next;
                scope.spawn(move || {
                    loop {
                        // Relaxed: the number alone is shared; the join publishes what tasks write.
                        let i = next.fetch_add(1, Ordering::Relaxed);
                        if i >= count {
                            return;
                        }
                        task(worker, i);
                    }
                });
            }
        });
    }
}

/// Numbers of a seed, about normal: each the sum of four uniform ones.
pub(super) fn normal(count: usize, seed: u64) -> Vec<f32> {
    let mut draws = kmeans::Draws(seed);
    (0..count).map(|_| ((0..4).map(|_| draws.unit()).sum::<f64>() - 2.0) as f32).collect()
}

/// Vectors around `clusters` centres, all of them away from zero.
pub(super) fn clustered(count: usize, dim: usize, clusters: usize, seed: u64) -> Vec<f32> {
    let centres = normal(clusters * dim, seed);
    let mut draws = kmeans::Draws(seed + 1);
    let noise = normal(count * dim, seed + 2);
    let vector = |i: usize, centre: usize| {
        let (noise, centre) = (&noise[i * dim..][..dim], &centres[centre * dim..][..dim]);
        noise.iter().zip(centre).map(|(n, c)| 5.0 + c + 0.3 * n).collect::<Vec<f32>>()
    };
    (0..count).flat_map(|i| vector(i, draws.below(clusters))).collect()
}

/// Vectors of length 1.
pub(super) fn unit(mut vectors: Vec<f32>, dim: usize) -> Vec<f32> {
    for vector in vectors.chunks_exact_mut(dim) {
        let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        vector.iter_mut().for_each(|x| *x /= norm);
    }
    vectors
}

pub(super) fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
}

/// The distance that lists estimate: squared L2, also for cosine, or the negated inner product.
pub(super) fn distance(metric: Metric, a: &[f32], b: &[f32]) -> f64 {
    match metric {
        Metric::InnerProduct => -dot(a, b),
        _ => a.iter().zip(b).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum(),
    }
}

pub(super) fn kernels() -> Kernels {
    Kernels::get().expect("LANEWISE_ISA names a level that this CPU has")
}

pub(super) fn go(_: usize) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Lists of all `vectors`.
pub(super) fn build(params: Params, vectors: &[f32], workers: usize) -> Ivf {
    let dim = params.dim;
    let source = Dense { vectors, dim };
    let count = vectors.len() / dim;
    let workers = Workers(workers);
    let ivf = Ivf::train(params, kernels(), &source, count, &workers, &mut go).expect("lists");
    let mut lists = vec![0; count];
    assert!(ivf.assign(&source, 0, &mut lists, &workers, &mut go));
    let code = |row: usize, _: u32, to: &mut [u8]| to.copy_from_slice(&(row as u64).to_le_bytes());
    ivf.add(&source, 0, &lists, &code, &workers).expect("memory");
    ivf
}
