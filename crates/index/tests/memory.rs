//! What an index says that it will take, against what the allocator gave: to within 5 %. Alone in its process.

use lanewise_index::{AddError, Code, Dtype, Executor, Index, Inline, Kind, Params, Vectors};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The system's allocator, counted: bytes that are out, and the most that were.
struct Counted;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn taken(bytes: usize) {
    PEAK.fetch_max(HELD.fetch_add(bytes, Relaxed) + bytes, Relaxed);
}

// SAFETY: everything is the system's, counting changes nothing.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// As one worker does it, with the scratch memory of several.
struct Workers(usize);

impl Executor for Workers {
    fn workers(&self) -> usize {
        self.0
    }

    fn run(&self, count: usize, task: &(dyn Fn(usize, usize) + Sync)) {
        (0..count).for_each(|i| task(i % self.0, i));
    }
}

fn vectors(n: usize, dim: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32 - 0.5
    };
    let centres: Vec<f32> = (0..64 * dim).map(|_| next()).collect();
    (0..n * dim).map(|i| centres[(i / dim % 64) * dim + i % dim] + 0.5 * next()).collect()
}

/// Adds `parts` one after the other, with ids if asked for, and holds each against what was predicted.
fn check(params: Params, parts: &[usize], own_ids: bool, workers: usize) {
    let all: usize = parts.iter().sum();
    let data = vectors(all, params.dim, 7);
    let ids: Vec<i64> = (0..all as i64).map(|i| 3 * i + 1).collect();
    let before = HELD.load(Relaxed);
    let index = Index::new(params).expect("parameters are right");
    let mut first = 0;
    for &count in parts {
        let need = index.predict(count, own_ids, workers).expect("there is room");
        PEAK.store(HELD.load(Relaxed), Relaxed);
        let part = Vectors::F32(&data[first * params.dim..(first + count) * params.dim]);
        let own = own_ids.then_some(&ids[first..first + count]);
        let go_on = &mut |_| ControlFlow::Continue(());
        index.add(part, own, &Workers(workers), go_on).expect("vectors are right");
        let (held, peak) = (HELD.load(Relaxed) - before, PEAK.load(Relaxed) - before);
        let Params { dtype, kind, code, dim, .. } = params;
        let off = |said: usize, was: usize| 100.0 * (said as f64 / was as f64 - 1.0);
        let (held_off, peak_off) = (off(need.held, held), off(need.peak, peak));
        let text = format!(
            "{first} + {count} of {dim} {dtype:?} {kind:?} {code:?}, ids {own_ids}, {workers} workers: \
             held {held} ({held_off:+.1} %), peak {peak} ({peak_off:+.1} %)"
        );
        assert!(held_off.abs() <= 5.0 && peak_off.abs() <= 5.0, "{text}");
        if kind != Kind::Ivf {
            assert_eq!(need.held, index.owned_bytes(), "{text}");
        }
        first += count;
    }
}

// One test: what others allocate meanwhile would count.
#[test]
fn memory_is_as_predicted() {
    let of = |kind, dtype, code, dim| Params { kind, dtype, code, ..Params::new(dim) };
    use {Code as C, Dtype as D, Kind as K};
    check(of(K::Flat, D::F32, C::None, 96), &[20_000], false, 1);
    check(of(K::Flat, D::F16, C::None, 100), &[20_000, 3_000, 30_000], true, 2);
    check(of(K::Hnsw, D::F32, C::None, 96), &[12_000], false, 1);
    check(of(K::Hnsw, D::F16, C::None, 64), &[12_000], true, 4);
    check(of(K::Hnsw, D::F32, C::I8, 128), &[12_000], false, 2);
    check(of(K::Hnsw, D::F16, C::I4, 128), &[4_000, 9_000], false, 2);
    check(of(K::Hnsw, D::F16, C::Bits, 256), &[8_000], false, 1);
    check(of(K::Hnsw, D::F32, C::I8, 64), &[200, 6_000, 6_000], true, 1);
    for code in [C::None, C::I8, C::I4, C::Bits, C::Pq4] {
        check(of(K::Ivf, D::F16, code, 96), &[40_000], false, 2);
    }
    check(of(K::Ivf, D::F32, C::Pq4, 64), &[20_000, 10_000], true, 1);
    check(Params { nlist: 64, ..of(K::Ivf, D::F32, C::I8, 64) }, &[20_000, 5_000], true, 1);
    // A few for each list, of which each grows by half.
    check(of(K::Ivf, D::F32, C::None, 64), &[20_000, 1_000, 100, 10], false, 1);

    // However many are asked about.
    let index = Index::new(Params::new(64)).expect("parameters are right");
    PEAK.store(HELD.load(Relaxed), Relaxed);
    let before = HELD.load(Relaxed);
    assert!(index.predict(20_000_000, true, 1).expect("there is room").held > 20_000_000 * 64 * 4);
    assert!(PEAK.load(Relaxed) - before < 1 << 20);

    // A limit is refused with the numbers, and nothing has changed.
    let index = Index::new(of(K::Hnsw, D::F32, C::I8, 64)).expect("parameters are right");
    let data = vectors(2_000, 64, 1);
    let need = index.predict(2_000, false, 1).expect("there is room");
    let add = || index.add(Vectors::F32(&data), None, &Inline, &mut |_| ControlFlow::Continue(()));
    index.set_memory_limit(Some(need.peak - 1));
    let refused = AddError::Limit { limit: need.peak - 1, needs: need.peak, vectors: 2_000 };
    assert_eq!(add(), Err(refused));
    assert_eq!(index.owned_bytes(), 0);
    index.set_memory_limit(Some(need.peak));
    assert!(add().is_ok());
    assert!(index.predict(usize::MAX, true, 1).is_err());

    // Billions are predicted without memory for each.
    let before = HELD.load(Relaxed);
    PEAK.store(before, Relaxed);
    let need = index.predict(2_000_000_000, true, 1).expect("an index holds so many");
    let each = need.held as f64 / 2e9;
    // 256 bytes of floats, 128 of a code with its numbers, 128 of links, those of upper layers, id and map.
    assert!((500.0..620.0).contains(&each), "{each} bytes a vector");
    let used = PEAK.load(Relaxed) - before;
    assert!(used < 1 << 20, "{used} bytes to predict");
}
