//! Codes against their definitions in double precision, and what they do to the order of neighbours.

use super::rotation::Random;
use super::*;
use proptest::prelude::*;

const METRICS: [Metric; 3] = [Metric::L2, Metric::InnerProduct, Metric::Cosine];
const CODES: [Code; 3] = [Code::I8, Code::I4, Code::Bits];

fn kernels() -> Kernels {
    Kernels::get().unwrap()
}

impl Random {
    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Normally distributed (Box & Muller).
    fn normal(&mut self) -> f32 {
        let (r, angle) =
            ((-2.0 * (1.0 - self.uniform()).ln()).sqrt(), std::f64::consts::TAU * self.uniform());
        (r * angle.cos()) as f32
    }
}

/// What vectors are like.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Gaussian,
    /// Around centres that are further apart than what is around each.
    Clustered,
    /// One dimension spreads 300 times as much as the others.
    OneHuge,
    /// Spreads over three decades.
    Decades,
    /// Lengths from 0.2 to 5 and a mean far from zero: what inner products are asked of.
    Lengths,
}

fn vectors(shape: Shape, metric: Metric, dim: usize, count: usize, seed: u64) -> Vec<f32> {
    let mut random = Random(seed);
    let centres: Vec<f32> = (0..20 * dim).map(|_| 2.0 * random.normal()).collect();
    let mut all = Vec::with_capacity(count * dim);
    for _ in 0..count {
        let centre = random.next() as usize % 20;
        let length = 0.2 * 25f32.powf(random.uniform() as f32);
        let x = (0..dim).map(|d| {
            let g = random.normal();
            match shape {
                Shape::Gaussian => g,
                Shape::Clustered => centres[centre * dim + d] + g,
                Shape::OneHuge => {
                    if d == dim / 3 {
                        300.0 * g
                    } else {
                        g
                    }
                }
                Shape::Decades => g * 1000f32.powf(d as f32 / dim as f32),
                Shape::Lengths => length * (g + if d % 3 == 0 { 0.5 } else { 0.0 }),
            }
        });
        all.extend(x);
    }
    if metric == Metric::Cosine {
        for x in all.chunks_exact_mut(dim) {
            let norm = x.iter().map(|&e| f64::from(e).powi(2)).sum::<f64>().sqrt();
            x.iter_mut().for_each(|e| *e = (f64::from(*e) / norm) as f32);
        }
    }
    all
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&x| x.into()).collect()
}

/// The distance by its definition.
fn distance(metric: Metric, a: &[f32], b: &[f32]) -> f64 {
    let (a, b) = (wide(a), wide(b));
    match metric {
        Metric::L2 => a.iter().zip(&b).map(|(a, b)| (a - b).powi(2)).sum(),
        Metric::Cosine => 1.0 - product(&a, &b),
        _ => -product(&a, &b),
    }
}

/// A coder fitted to vectors without asking what it does to them, and their rows.
fn encoded(code: Code, metric: Metric, dim: usize, x: &[f32], seed: u64, rotate: bool) -> (Coder, Vec<u8>) {
    let form = match code {
        Code::I8 => {
            let rotation = rotate.then(|| Rotation::new(dim, seed));
            Form::Scalar(Scalar::train(metric, rotation, dim, x.to_vec()))
        }
        Code::I4 => Form::RaBitQ(RaBitQ::new(Levels::Sixteen, metric, scalar::means(dim, x), seed)),
        _ => Form::RaBitQ(RaBitQ::new(Levels::Two, metric, scalar::means(dim, x), seed)),
    };
    let stride = stride_of(code, metric, dim);
    let coder = Coder { code, metric, dim, stride, kernels: kernels(), seed, form, trial: Trial::default() };
    let rows = rows_of(&coder, x);
    (coder, rows)
}

fn rows_of(coder: &Coder, x: &[f32]) -> Vec<u8> {
    let mut rows = vec![0; x.len() / coder.dim * coder.stride];
    let mut scratch = Vec::new();
    for (x, row) in x.chunks_exact(coder.dim).zip(rows.chunks_exact_mut(coder.stride)) {
        coder.encode(x, row, &mut scratch);
    }
    rows
}

/// What the kernels see of a query, as numbers before the query's step.
fn query_numbers(coder: &Coder, probe: &CodeProbe) -> Vec<f64> {
    let (query, dim, stride) = (probe.query(), coder.dim, coder.stride);
    let half = dim.div_ceil(2);
    let number = |d: usize| match coder.code {
        Code::I8 => f64::from(query[d] as i8),
        Code::I4 if d < half => f64::from(query[d] as i8),
        Code::I4 => f64::from(query[stride + d - half] as i8),
        _ => {
            (0..4)
                .map(|p| f64::from(query[p * stride + d / 8] >> (d % 8) & 1) * f64::from(1 << p))
                .sum::<f64>()
                - 7.5
        }
    };
    (0..dim).map(number).collect()
}

/// What a row's code stands for, and its norm as the code keeps it: of x − o or, by the definition, z.
fn row_numbers(coder: &Coder, x: &[f32], row: &[u8]) -> (Vec<f64>, f64) {
    match &coder.form {
        Form::Scalar(scalar) => {
            let decoded: Vec<f64> =
                row[..coder.dim].iter().map(|&c| f64::from(c as i8) * f64::from(scalar.scale)).collect();
            let norm = product(&decoded, &decoded);
            (decoded, norm)
        }
        Form::RaBitQ(rabitq) => {
            let mut z: Vec<f32> = x.iter().zip(&rabitq.mean).map(|(x, m)| x - m).collect();
            rotate_of(rabitq, &mut z);
            let z = wide(&z);
            let mut levels = vec![0.0; coder.dim];
            let mut one = row.to_vec();
            write_tail(&mut one, 1, 1.0);
            rabitq.decode_residual(&one, &mut levels);
            let v = wide(&levels);
            let norm = product(&z, &z);
            let factor = if norm > 0.0 { norm / product(&v, &z) } else { 0.0 };
            (v.iter().map(|v| v * factor).collect(), norm)
        }
    }
}

fn rotate_of(rabitq: &RaBitQ, x: &mut Vec<f32>) {
    let input = x.clone();
    rabitq.rotate(&input, x);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Lengths and angles stay as they are, for any dimension.
    #[test]
    fn rotations_are_orthogonal(dim in 1usize..1200, seed in any::<u64>()) {
        let rotation = Rotation::new(dim, seed);
        let x = vectors(Shape::Gaussian, Metric::Cosine, dim, 2, seed);
        let mut y = x.clone();
        y.chunks_exact_mut(dim).for_each(|y| rotation.apply(y));
        let part = |x: &[f32], i: usize, j: usize| product(&wide(&x[i * dim..][..dim]), &wide(&x[j * dim..][..dim]));
        for (i, j) in [(0, 0), (0, 1), (1, 1)] {
            prop_assert!((part(&x, i, j) - part(&y, i, j)).abs() < 1e-5);
        }
    }

    /// The key is the estimate that the module describes, of the numbers that the bytes stand for.
    #[test]
    fn keys_are_what_the_definition_says(
        code in prop::sample::select(&CODES[..]), metric in prop::sample::select(&METRICS[..]),
        dim in prop_oneof![1usize..300, Just(64), Just(128)], seed in any::<u64>(), rotate in any::<bool>(),
        load in any::<bool>(), shape in prop::sample::select(&[Shape::Gaussian, Shape::Lengths][..]),
    ) {
        let count = 40;
        let x = vectors(shape, metric, dim, count, seed);
        let (coder, rows) = encoded(code, metric, dim, &x, seed, rotate);
        let q = &x[7 * dim..][..dim];
        let mut probe = CodeProbe::new();
        // A probe that another coder used.
        probe.parts(coder.stride * coder.query_bytes()).0.fill(0x55);
        if load {
            coder.load(&rows[7 * coder.stride..][..coder.stride], &mut probe);
        } else {
            coder.prepare(q, &mut probe);
        }
        let mut keys = vec![0; count];
        coder.keys_from(&probe, &rows, count, 0, &mut keys);
        let ids: Vec<u32> = (0..count as u32).rev().collect();
        let mut gathered = vec![0; count];
        coder.keys_of(&probe, &rows, count, &ids, &mut gathered);
        gathered.reverse();
        prop_assert_eq!(&keys, &gathered);

        // The query's numbers, once with its step and once without rounding.
        let weight = if metric == Metric::L2 { 2.0 } else { 1.0 };
        let keeps = matches!(&coder.form, Form::Scalar(scalar) if scalar.keeps());
        let (exact, offset, step) = match &coder.form {
            Form::Scalar(scalar) => {
                let mut y = q.to_vec();
                if let Some(rotation) = &scalar.rotation { rotation.apply(&mut y); }
                let offset = wide(&scalar.offset);
                let centre = if keeps { offset.clone() } else { vec![0.0; dim] };
                let exact = wide(&y).iter().zip(&centre).map(|(y, o)| y - o).collect::<Vec<_>>();
                (exact, offset, -f64::from(probe.terms.c) / weight / f64::from(scalar.scale))
            }
            Form::RaBitQ(rabitq) => {
                let mut y = q.to_vec();
                rotate_of(rabitq, &mut y);
                let mut mean = rabitq.mean.clone();
                rotate_of(rabitq, &mut mean);
                let offset = wide(&mean);
                let centre = if metric == Metric::InnerProduct { vec![0.0; dim] } else { offset.clone() };
                let exact = wide(&y).iter().zip(&centre).map(|(y, o)| y - o).collect::<Vec<_>>();
                let worth = if code == Code::Bits { 2.0 } else { 1.0 };
                (exact, offset, -f64::from(probe.terms.c) / weight / worth)
            }
        };
        let rounded: Vec<f64> = query_numbers(&coder, &probe).iter().map(|n| n * step).collect();
        if !load {
            let apart = exact.iter().zip(&rounded).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
            let reach = exact.iter().fold(0.0f64, |reach, x| reach.max(x.abs()));
            let all = product(&exact, &exact).sqrt();
            // Signed bytes are half a step off at most; of four bits the best step is asked.
            let most = if code == Code::Bits { 0.2 * all } else { (dim as f64).sqrt() * (0.51 * step).max(0.51 * reach / 127.0) };
            prop_assert!(apart <= most + 1e-6, "query rounded by {apart}, not {most}");
        }
        let (loaded, loaded_norm) = row_numbers(&coder, q, &rows[7 * coder.stride..][..coder.stride]);
        for (i, &key) in keys.iter().enumerate() {
            let row = &rows[i * coder.stride..][..coder.stride];
            let (v, norm) = row_numbers(&coder, &x[i * dim..][..dim], row);
            let inner = product(&rounded, &v);
            let itself = product(&rounded, &exact);
            let half = weight / 2.0;
            let expected = match (&coder.form, metric, load) {
                (Form::Scalar(_), ..) if keeps => half * (product(&rounded, &rounded) + norm) - weight * inner,
                (Form::Scalar(_), _, false) => -product(&exact, &offset) - inner,
                (Form::Scalar(_), _, true) => {
                    let all: Vec<f64> = loaded.iter().zip(&offset).map(|(a, b)| a + b).collect();
                    -product(&all, &offset) - inner
                }
                (_, Metric::InnerProduct, false) => -product(&exact, &offset) - inner,
                (_, Metric::InnerProduct, true) => {
                    let all: Vec<f64> = loaded.iter().zip(&offset).map(|(a, b)| a + b).collect();
                    -product(&all, &offset) - inner
                }
                (_, _, false) => half * (2.0 * itself - product(&exact, &exact) + norm) - weight * inner,
                (_, _, true) => half * (loaded_norm + norm) - weight * inner,
            };
            let base = if metric == Metric::Cosine && code == Code::I8 && !keeps { 1.0 } else { 0.0 };
            let size = 1.0 + norm + product(&exact, &exact) + product(&offset, &offset);
            let got = f64::from(coder.distance(key));
            prop_assert!(
                (got - base - expected).abs() < 2e-5 * size,
                "row {i}: {got}, not {}", base + expected
            );
        }
    }

    /// Whatever a file says, it is refused, or made into a coder that compares rows without leaving memory; the bytes
    /// of a coder make the same coder.
    #[test]
    fn parameters_survive_and_damage_is_harmless(
        code in prop::sample::select(&CODES[..]), metric in prop::sample::select(&METRICS[..]),
        dim in 1usize..40, seed in any::<u64>(), rotate in any::<bool>(),
    ) {
        let x = vectors(Shape::Gaussian, metric, dim, 33, seed);
        let (coder, rows) = encoded(code, metric, dim, &x, seed, rotate);
        let bytes = coder.parameters();
        let (mut probe, mut keys) = (CodeProbe::new(), vec![0; 33]);
        let mut compare = |coder: &Coder| {
            assert_eq!(rows_of(coder, &x).len(), rows.len());
            coder.prepare(&x[..dim], &mut probe);
            coder.keys_from(&probe, &rows, 33, 0, &mut keys);
            coder.load(&rows[..coder.stride], &mut probe);
            coder.keys_of(&probe, &rows, 33, &[32, 0], &mut keys[..2]);
            keys.clone()
        };
        let expected = compare(&coder);
        let again = Coder::from_parameters(code, metric, dim, kernels(), &bytes).unwrap();
        prop_assert_eq!(compare(&again), expected);
        prop_assert_eq!(again.parameters(), bytes.clone());
        prop_assert_eq!(&again.trial, &coder.trial);
        prop_assert_eq!(rows_of(&again, &x), rows.clone());
        for bit in 0..8 * bytes.len() {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            if let Ok(coder) = Coder::from_parameters(code, metric, dim, kernels(), &bytes) {
                compare(&coder);
            }
        }
        let longer = [&bytes[..], &[0; 4]].concat();
        for wrong in [&bytes[..bytes.len() - 1], &bytes[..47], &[], &longer] {
            prop_assert!(Coder::from_parameters(code, metric, dim, kernels(), wrong).is_err());
        }
        prop_assert!(Coder::from_parameters(code, metric, dim + 1, kernels(), &bytes).is_err());
        prop_assert!(Coder::from_parameters(Code::None, metric, dim, kernels(), &bytes).is_err());
        prop_assert!(Coder::from_parameters(code, Metric::Hamming, dim, kernels(), &bytes).is_err());
    }
}

/// No rotated axis has a coordinate far above the largest that chance gives of so many, √(2 ln d² / d), also where two
/// transforms overlap least.
#[test]
fn rotations_spread_every_axis() {
    for dim in [64, 65, 127, 128, 255, 384, 511, 784, 1023] {
        let rotation = Rotation::new(dim, 5);
        let bound = 2.2 * (4.0 * (dim as f32).ln() / dim as f32).sqrt();
        for axis in 0..dim {
            let mut x = vec![0.0; dim];
            x[axis] = 1.0;
            rotation.apply(&mut x);
            let most = plain::most(&x);
            assert!(most < bound, "axis {axis} of {dim}: {most} of {bound}");
        }
    }
}

/// Over random rotations the estimated inner product has no bias, and 95 % of the errors are within RaBitQ's bound with
/// ε₀ = 1.9: ‖q‖·‖x‖·√((1 − r²) / r²)·ε₀ / √(D − 1) with r the cosine of the angle between v and z (theorem 3.2).
#[test]
fn estimates_have_no_bias_and_stay_within_the_bound() {
    let dim = 96;
    let x = vectors(Shape::Gaussian, Metric::InnerProduct, dim, 2, 11);
    let (q, x) = x.split_at(dim);
    let truth = -product(&wide(q), &wide(x));
    for code in [Code::I4, Code::Bits] {
        let (mut errors, mut outside) = (Vec::new(), 0);
        for seed in 0..1000 {
            let form = RaBitQ::new(
                if code == Code::Bits { Levels::Two } else { Levels::Sixteen },
                Metric::InnerProduct,
                vec![0.0; dim],
                seed,
            );
            let stride = stride_of(code, Metric::InnerProduct, dim);
            let trial = Trial::default();
            let form = Form::RaBitQ(form);
            let coder = Coder {
                code,
                metric: Metric::InnerProduct,
                dim,
                stride,
                kernels: kernels(),
                seed,
                form,
                trial,
            };
            let row = rows_of(&coder, x);
            let (mut probe, mut key) = (CodeProbe::new(), [0]);
            coder.prepare(q, &mut probe);
            coder.keys_from(&probe, &row, 1, 0, &mut key);
            let error = f64::from(coder.distance(key[0])) - truth;
            let (decoded, norm) = row_numbers(&coder, x, &row);
            let r2 = norm / product(&decoded, &decoded);
            let bound =
                (product(&wide(q), &wide(q)) * norm * (1.0 - r2) / r2 / (dim as f64 - 1.0)).sqrt() * 1.9;
            // What rounding the query to four bits adds, a tenth of its length, is no part of the theorem.
            outside += usize::from(error.abs() > 1.1 * bound);
            errors.push(error);
        }
        let count = errors.len() as f64;
        let mean = errors.iter().sum::<f64>() / count;
        let deviation = (errors.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / count).sqrt();
        assert!(mean.abs() < 4.0 * deviation / count.sqrt(), "{code:?}: mean {mean}, deviation {deviation}");
        assert!(outside < 50, "{code:?}: {outside} of 1000 outside");
        println!(
            "{code:?}: mean error {mean:.4}, deviation {deviation:.4}, {outside} of 1000 outside the bound"
        );
    }
}

/// Nearest ten of `queries` among `x`, by code with so many candidates each: the part found.
fn recall(coder: &Coder, x: &[f32], queries: &[f32], oversample: usize) -> f64 {
    let (dim, count) = (coder.dim, x.len() / coder.dim);
    let rows = rows_of(coder, x);
    let (mut probe, mut keys) = (CodeProbe::new(), vec![0; count]);
    let mut found = 0;
    for q in queries.chunks_exact(dim) {
        let truth: Vec<f64> = x.chunks_exact(dim).map(|x| distance(coder.metric, q, x)).collect();
        let mut nearest: Vec<usize> = (0..count).collect();
        nearest.sort_by(|&i, &j| truth[i].total_cmp(&truth[j]));
        coder.prepare(q, &mut probe);
        coder.keys_from(&probe, &rows, count, 0, &mut keys);
        let mut coded: Vec<usize> = (0..count).collect();
        coded.sort_by_key(|&i| keys[i]);
        found += nearest[..10].iter().filter(|i| coded[..10 * oversample].contains(i)).count();
    }
    found as f64 / (10 * queries.len() / dim) as f64
}

/// Exhaustive search by each code, without and with rescoring; the floors are a little below what was seen.
#[test]
fn recall_of_exhaustive_search() {
    // (oversample 1, 4 for bits or 2 for others) of i8, i4, bits.
    let floors = [
        (Shape::Gaussian, Metric::L2, [[0.96, 1.0], [0.83, 0.98], [0.32, 0.64]]),
        (Shape::Clustered, Metric::L2, [[0.94, 1.0], [0.77, 0.97], [0.26, 0.70]]),
        (Shape::Gaussian, Metric::Cosine, [[0.96, 0.99], [0.83, 0.98], [0.25, 0.55]]),
        (Shape::OneHuge, Metric::L2, [[0.74, 0.93], [0.55, 0.80], [0.30, 0.65]]),
        (Shape::Decades, Metric::L2, [[0.97, 1.0], [0.90, 0.98], [0.50, 0.90]]),
        (Shape::Lengths, Metric::InnerProduct, [[0.95, 1.0], [0.85, 0.98], [0.40, 0.80]]),
    ];
    let (dim, count) = (128, 2000);
    for (shape, metric, floors) in floors {
        let all = vectors(shape, metric, dim, count + 20, 3);
        let (x, queries) = all.split_at(count * dim);
        for (code, floor) in CODES.into_iter().zip(floors) {
            let coder = Coder::train(code, metric, dim, kernels(), x, 1).unwrap();
            let more = if code == Code::Bits { 4 } else { 2 };
            let got = [recall(&coder, x, queries, 1), recall(&coder, x, queries, more)];
            println!("{shape:?} {metric:?}: recall {got:.3?} (1k, {more}k); {}", coder.describe());
            for (got, floor) in got.into_iter().zip(floor) {
                assert!(got >= floor, "{shape:?} {metric:?} {code:?}: recall {got} below {floor}");
            }
        }
    }
}

/// What a code cannot serve is refused with the reason.
#[test]
fn refusals() {
    let train = |code, metric, x: &[f32]| {
        Coder::train(code, metric, 8, kernels(), x, 1).map(|_| ()).unwrap_err().to_string()
    };
    let x = vectors(Shape::Gaussian, Metric::L2, 8, 1000, 1);
    assert!(train(Code::I8, Metric::L2, &x[..31 * 8]).contains("needs 32 vectors to be fitted to, not 31"));
    assert!(train(Code::I4, Metric::L2, &x[..8].repeat(40)).contains("the same"));
    assert!(train(Code::None, Metric::L2, &x).contains("use code=\"none\""));
    assert!(train(Code::Bits, Metric::Hamming, &x).contains("metric=\"hamming\""));
    // Three bits cannot tell thousands of vectors apart.
    let x3 = vectors(Shape::Gaussian, Metric::L2, 3, 4000, 1);
    let refused = Coder::train(Code::Bits, Metric::L2, 3, kernels(), &x3, 1).map(|_| ());
    assert!(refused.unwrap_err().to_string().contains("cannot order these vectors by metric=\"l2\""));
}

/// `i8` is rotated where one dimension outdoes the others, and only then; a query beyond all rows is not clipped, and a
/// row that is says so.
#[test]
fn what_is_out_of_range() {
    let dim = 96;
    let train = |shape| {
        let x = vectors(shape, Metric::L2, dim, 1000, 2);
        (Coder::train(Code::I8, Metric::L2, dim, kernels(), &x, 1).unwrap(), x)
    };
    let (coder, x) = train(Shape::Gaussian);
    assert!(!coder.rotates() && train(Shape::OneHuge).0.rotates());
    assert_eq!((coder.code(), coder.verdict()), (Code::I8, Verdict::Ordered { oversample: 2 }));
    let far: Vec<f32> = x[..dim].iter().map(|x| 50.0 * x).collect();
    let (mut row, mut scratch) = (vec![0; coder.stride], Vec::new());
    assert!(coder.encode(&x[dim..2 * dim], &mut row, &mut scratch));
    let (mut probe, mut key) = (CodeProbe::new(), [0]);
    coder.prepare(&far, &mut probe);
    coder.keys_from(&probe, &row, 1, 0, &mut key);
    let (got, truth) = (f64::from(coder.distance(key[0])), distance(Metric::L2, &far, &x[dim..2 * dim]));
    assert!((got / truth - 1.0).abs() < 0.01, "{got} for {truth}");
    assert!(!coder.encode(&far, &mut row, &mut scratch));
    // The bytes reach 127 steps from the offset, and half a step by rounding.
    let Form::Scalar(scalar) = &coder.form else { unreachable!("i8 is scalar") };
    for (steps, reached) in [(127.4, true), (127.6, false)] {
        let x: Vec<f32> = scalar.offset.iter().map(|o| o - steps * scalar.scale).collect();
        assert_eq!(coder.encode(&x, &mut row, &mut scratch), reached, "{steps}");
    }
}

/// Rows of what people embed with are whole cache lines, and no more.
#[test]
fn strides() {
    let strides = |metric, dim| CODES.map(|code| stride_of(code, metric, dim));
    assert_eq!(strides(Metric::Cosine, 384), [384, 256, 64]);
    assert_eq!(strides(Metric::L2, 128), [192, 128, 32]);
    assert_eq!(strides(Metric::Cosine, 768), [768, 448, 128]);
    assert_eq!(Scalar::tail(Metric::Cosine, 768), 0);
    assert_eq!(strides(Metric::Cosine, 784), [832, 448, 128]);
    assert_eq!(Scalar::tail(Metric::Cosine, 784), 1);
    assert_eq!(strides(Metric::L2, 784), [832, 448, 128]);
    assert_eq!(strides(Metric::L2, 28), [32, 32, 32]);
}

/// Rows encoded around centres of their own compare as their whole vectors do, by centres rotated once.
#[test]
fn residuals_of_lists() {
    let (dim, count) = (64, 200);
    for (code, metric) in [(Code::I4, Metric::L2), (Code::Bits, Metric::L2), (Code::I4, Metric::InnerProduct)]
    {
        let x = vectors(Shape::Clustered, metric, dim, count, 4);
        let (coder, _) = encoded(code, metric, dim, &x, 9, false);
        let centre = scalar::means(dim, &x[..20 * dim]);
        let (mut rotated, mut residual) = (Vec::new(), Vec::new());
        coder.rotate(&centre, &mut rotated);
        let mut rows = vec![0; count * coder.stride];
        for (x, row) in x.chunks_exact(dim).zip(rows.chunks_exact_mut(coder.stride)) {
            coder.rotate(x, &mut residual);
            residual.iter_mut().zip(&rotated).for_each(|(x, c)| *x -= c);
            coder.encode_residual(&residual, row);
        }
        let q = &x[..dim];
        let mut probe = CodeProbe::new();
        coder.rotate(q, &mut residual);
        let mut base = None;
        if metric == Metric::L2 {
            residual.iter_mut().zip(&rotated).for_each(|(x, c)| *x -= c);
            coder.prepare_residual(&residual, &mut probe);
        } else {
            coder.prepare_residual(&residual, &mut probe);
            base = Some(distance(metric, q, &centre) as f32);
        }
        let mut keys = vec![0; count];
        coder.keys_of_list(&probe, base, &rows, &mut keys);
        let (mut error, mut size) = (0.0, 0.0);
        for (x, &key) in x.chunks_exact(dim).zip(&keys).skip(1) {
            let truth = distance(metric, q, x);
            error += (f64::from(coder.distance(key)) - truth).powi(2);
            size += truth * truth;
        }
        let relative = (error / size).sqrt();
        // Inner products are of either sign, and small beside what the error is relative to.
        let most = if (code, metric) == (Code::I4, Metric::L2) { 0.02 } else { 0.15 };
        assert!(relative < most, "{code:?} {metric:?}: {relative}");
    }
}

/// The same bytes and keys on every machine and instruction set.
#[test]
fn codes_are_the_same_everywhere() {
    let dim = 50;
    let x: Vec<f32> =
        (0..100 * dim).map(|i| ((i * 7919 + i / dim * 31) % 1009) as f32 / 100.0 - 5.0).collect();
    let hash = |bytes: &[u8]| {
        let step = |h: u64, &b: &u8| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3);
        bytes.iter().fold(0xcbf2_9ce4_8422_2325u64, step)
    };
    let hashes = CODES.map(|code| {
        let (coder, rows) = encoded(code, Metric::L2, dim, &x, 1, true);
        let (mut probe, mut keys) = (CodeProbe::new(), [0; 100]);
        coder.prepare(&x[dim..2 * dim], &mut probe);
        coder.keys_from(&probe, &rows, 100, 0, &mut keys);
        (hash(&rows), hash(&keys.map(i32::to_le_bytes).concat()))
    });
    let expected = [
        (0x9ef0_20d7_1d56_06de, 0x2cb4_76c9_a5ac_adee),
        (0xfcb7_47fe_100d_fb15, 0x5230_5026_2d06_3400),
        (0xc122_ffe7_fec8_56fe, 0xa900_2530_5232_b53e),
    ];
    assert_eq!(hashes, expected, "{hashes:x?}");
}

/// A query that is zero, or the mean of all vectors, has finite distances.
#[test]
fn queries_without_direction() {
    let (dim, count) = (40, 50);
    for (code, metric) in
        CODES.into_iter().flat_map(|code| [(code, Metric::L2), (code, Metric::InnerProduct)])
    {
        let x = vectors(Shape::Gaussian, metric, dim, count, 6);
        let (coder, rows) = encoded(code, metric, dim, &x, 1, false);
        for q in [vec![0.0; dim], scalar::means(dim, &x)] {
            let (mut probe, mut keys) = (CodeProbe::new(), vec![0; count]);
            coder.prepare(&q, &mut probe);
            coder.keys_from(&probe, &rows, count, 0, &mut keys);
            for (x, &key) in x.chunks_exact(dim).zip(&keys) {
                let (got, truth) = (f64::from(coder.distance(key)), distance(metric, &q, x));
                let size = (product(&wide(&q), &wide(&q)) * product(&wide(x), &wide(x))).sqrt();
                assert!(
                    (got - truth).abs() <= 0.7 * size + 0.1 * (1.0 + truth.abs()),
                    "{code:?} {metric:?}: {got}, {truth}"
                );
            }
        }
    }
}
