//! Build time, and recall against queries a second, printed as lines of JSON, to be set beside another library's.
//! LANEWISE_IVF names a folder with `base.f32`, `query.f32` (rows of floats) and
//! `truth.u32` (ten rows' numbers a query); LANEWISE_IVF_DIM, _LISTS, _RUNS, _THREADS and _SWEEP (`nprobe:want,...`)
//! say what is measured.

use super::tests::Workers;
use super::*;
use lanewise_kernels::{Rows, f16};
use std::time::Instant;

fn read<T: Copy + Default>(name: &str) -> Vec<T> {
    let path = format!("{}/{name}", std::env::var("LANEWISE_IVF").expect("LANEWISE_IVF names a folder"));
    let bytes = std::fs::read(&path).expect(&path);
    let mut values = vec![T::default(); bytes.len() / size_of::<T>()];
    // SAFETY: numbers of four bytes, which any bytes are.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), values.as_mut_ptr().cast(), size_of_val(&*values))
    };
    values
}

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |value| value.parse().expect(name))
}

#[expect(clippy::disallowed_methods, reason = "a measurement")]
fn now() -> Instant {
    Instant::now()
}

/// Seconds of CPU that this process has used, in user mode.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("/proc/self/stat");
    let ticks = stat.rsplit(')').next().and_then(|rest| rest.split(' ').nth(12)).expect("utime");
    ticks.parse::<f64>().expect("ticks") / 100.0
}

fn bytes<T>(values: &[T]) -> &[u8] {
    // SAFETY: plain numbers.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

#[test]
#[ignore = "a measurement of data that has to be made first"]
fn build_and_search() {
    let (base, query, truth) = (read::<f32>("base.f32"), read::<f32>("query.f32"), read::<u32>("truth.u32"));
    let dim = number("LANEWISE_IVF_DIM", 384);
    let (nlist, threads) = (number("LANEWISE_IVF_LISTS", 1024), number("LANEWISE_IVF_THREADS", 2));
    let runs = number("LANEWISE_IVF_RUNS", default_runs(dim));
    let (count, queries) = (base.len() / dim, query.len() / dim);
    let kernels = Kernels::get().expect("kernels");
    let source = Dense { vectors: &base, dim };
    let workers = Workers(threads);
    let (start, cpu_before) = (now(), cpu());
    let params = Params { metric: Metric::L2, dim, nlist, code: ListCode::Pq4 { runs }, seed: 1 };
    let go = &mut |_| ControlFlow::Continue(());
    let ivf = Ivf::train(params, kernels, &source, count, &workers, go).expect("train");
    let (train, train_cpu) = (start.elapsed().as_secs_f64(), cpu() - cpu_before);
    let mut lists = vec![0; count];
    assert!(ivf.assign(&source, 0, &mut lists, &workers, go));
    let assign = start.elapsed().as_secs_f64() - train;
    ivf.add(&source, 0, &lists, &|_, _, _| {}, &workers).expect("add");
    let all = start.elapsed().as_secs_f64();
    let sizes = (0..nlist).map(|l| ivf.lists().list(l).len()).max().unwrap_or(0);
    println!(
        "{{\"lanewise\": \"build\", \"runs\": {runs}, \"train_s\": {train:.3}, \"assign_s\": {assign:.3}, \"build_s\": {all:.3}, \
         \"train_cpu_s\": {train_cpu:.2}, \"cpu_s\": {:.2}, \
         \"largest_over_mean\": {:.2}, \"bytes\": {}}}",
        cpu() - cpu_before,
        sizes as f64 * nlist as f64 / count as f64,
        ivf.lists().owned_bytes() + ivf.centroids().owned_bytes()
    );
    let halves: Vec<f16> = base.iter().map(|&x| f16::from_f32(x)).collect();
    let f16_rows = Rows::new(bytes(&halves), dim * 2, count, dim);
    let f32_rows = Rows::new(bytes(&base), dim * 4, count, dim);
    let sweep = std::env::var("LANEWISE_IVF_SWEEP").unwrap_or_else(|_| "8:50,16:50,32:50".into());
    for stored in ["f16", "f32"] {
        for setting in sweep.split(',') {
            let (nprobe, want) = setting.split_once(':').expect("nprobe:want");
            let (nprobe, want) =
                (nprobe.parse::<usize>().expect("nprobe"), want.parse::<usize>().expect("want"));
            let (mut probe, mut scratch, mut best) =
                (ListProbe::default(), ScanScratch::default(), Best::default());
            let (mut ids, mut keys, mut last) = (Vec::new(), Vec::new(), Vec::new());
            let mut rounds = Vec::new();
            let mut found = 0;
            for _ in 0..number("LANEWISE_IVF_ROUNDS", 3) {
                found = 0;
                let start = now();
                for (i, q) in query.chunks_exact(dim).enumerate() {
                    ivf.probe(q, nprobe, &mut probe);
                    best.reset(want);
                    for i in 0..probe.lists().len() {
                        let allowed = Allowed { rows: count, which: Which::All };
                        ivf.scan(&probe, i, &mut |_, _, _| {}, allowed, &mut scratch, &mut best);
                    }
                    ids.clear();
                    ids.extend(best.sorted().iter().map(|e| e.id()));
                    keys.resize(ids.len(), 0.0f32);
                    if stored == "f16" {
                        kernels.l2_f32f16.ids(q, f16_rows, &ids, &mut keys);
                    } else {
                        kernels.l2_f32.ids(q, f32_rows, &ids, &mut keys);
                    }
                    last.clear();
                    last.extend(keys.iter().zip(&ids).map(|(&k, &id)| (k.to_bits(), id)));
                    last.sort_unstable();
                    let truth = &truth[i * 10..][..10];
                    found += last.iter().take(10).filter(|x| truth.contains(&x.1)).count();
                }
                rounds.push(queries as f64 / start.elapsed().as_secs_f64());
            }
            rounds.sort_by(f64::total_cmp);
            println!(
                "{{\"lanewise\": \"{stored}\", \"nprobe\": {nprobe}, \"want\": {want}, \"recall\": {:.4}, \"qps\": {:.0}}}",
                found as f64 / (10 * queries) as f64,
                rounds[rounds.len() / 2]
            );
        }
    }
    let mut probe = ListProbe::default();
    let start = now();
    for (i, q) in query.chunks_exact(dim).enumerate() {
        ivf.insert((count + i) as u32, q, &|_, _| {}, &mut probe).expect("insert");
    }
    let each = start.elapsed().as_secs_f64() * 1e6 / queries as f64;
    println!("{{\"lanewise\": \"insert\", \"us\": {each:.2}}}");
}
