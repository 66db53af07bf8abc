//! Traversal codes: what a search walks on in place of the stored vectors, smaller and faster to compare.
//!
//! One form serves every code, so that the walk has one inner loop. The key of a row is that of
//!
//! ```text
//! a + b + m · (c · dot + d) + e · p
//! ```
//!
//! with `dot` from an integer kernel, a, c, d, e of the query and b, m, p of the row: an estimate of the distance in the
//! metric's own unit. The row's floats lie at the end of the row, in the cache line where its code ends, from the last
//! backwards: b, m, p, as many as the code needs (for `i8` one or none, and m is 1). Kernels run over the whole row;
//! past the code the query is zero, so floats add nothing and no loop has a tail. A row is 32 bytes or a multiple of 64.
//!
//! A coder never changes once it is trained. What it makes of a vector, and every key, is the same on every machine.

mod parameters;
mod plain;
mod probe;
mod rabitq;
mod rotation;
mod scalar;
#[cfg(test)]
mod tests;
mod trial;

use crate::space::{float_of, key_of};
use crate::vectors::Metric;
use lanewise_kernels::{Kernels, Rows};
pub use parameters::ParametersError;
pub(crate) use probe::CodeProbe;
use probe::{Terms, read_tail, row_bytes, signed, write_tail};
use rabitq::{Levels, RaBitQ};
use rotation::Rotation;
use scalar::Scalar;
use trial::Trial;
pub(crate) use trial::Verdict;

/// What a search walks on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Code {
    /// The stored vectors themselves.
    None = 0,
    /// A signed byte a dimension, one scale.
    I8 = 1,
    /// Four bits a dimension, a scale for each vector (extended RaBitQ).
    I4 = 2,
    /// A bit a dimension (RaBitQ).
    Bits = 3,
    /// Four bits for about four dimensions (product quantization), lists only.
    Pq4 = 4,
}

impl Code {
    /// All codes.
    pub const ALL: [Code; 5] = [Code::None, Code::I8, Code::I4, Code::Bits, Code::Pq4];

    /// The name users write.
    pub fn name(self) -> &'static str {
        match self {
            Code::None => "none",
            Code::I8 => "i8",
            Code::I4 => "i4",
            Code::Bits => "bits",
            Code::Pq4 => "pq4",
        }
    }
}

/// Why vectors cannot have a code.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum CodeError {
    #[error("code={code:?} has nothing to encode vectors of metric={metric:?}: use code=\"none\"")]
    Metric { code: &'static str, metric: &'static str },
    #[error(
        "code={code:?} needs {needed} vectors to be fitted to, not {got}: add more first, or use code=\"none\""
    )]
    TooFew { code: &'static str, got: usize, needed: usize },
    #[error("code={code:?} has nothing to tell vectors apart by: all that were looked at are the same")]
    Constant { code: &'static str },
    #[error(
        "code={code:?} cannot order these vectors by metric={metric:?}: on a sample of {vectors} only {:.0} % of the nearest {k} \
         are among the first {} by code; use a finer code, or \"none\"",
        recall * 100.0, k * oversample
    )]
    Unordered {
        code: &'static str,
        metric: &'static str,
        vectors: usize,
        recall: f32,
        k: usize,
        oversample: usize,
    },
}

/// Vectors below which no code is fitted: a scale from fewer says little of those to come.
const FEWEST: usize = 32;

/// Vectors that settle the scale of `i8`.
const SCALED: usize = 8192;

/// How vectors become rows of a code, and queries are compared with them.
pub(crate) struct Coder {
    code: Code,
    metric: Metric,
    dim: usize,
    stride: usize,
    kernels: Kernels,
    seed: u64,
    form: Form,
    trial: Trial,
}

enum Form {
    Scalar(Scalar),
    RaBitQ(RaBitQ),
}

/// The bytes of a row.
pub(crate) fn stride_of(code: Code, metric: Metric, dim: usize) -> usize {
    let (bytes, floats) = match code {
        Code::None | Code::Pq4 => unreachable!("lists make them, or nobody"),
        Code::I8 => (dim, Scalar::tail(metric, dim)),
        Code::I4 => (RaBitQ::bytes(Levels::Sixteen, dim), RaBitQ::tail(Levels::Sixteen)),
        Code::Bits => (RaBitQ::bytes(Levels::Two, dim), RaBitQ::tail(Levels::Two)),
    };
    row_bytes(bytes, floats)
}

fn check_metric(code: Code, metric: Metric) -> Result<(), CodeError> {
    if matches!(code, Code::None | Code::Pq4) || metric.of_bits() {
        return Err(CodeError::Metric { code: code.name(), metric: metric.name() });
    }
    Ok(())
}

impl Coder {
    /// Fits a code to `sample`: vectors of `dim` finite numbers each, of length one if the metric is cosine. Then tries
    /// the code on some of them.
    ///
    /// # Errors
    /// If there are too few, or the code cannot order them.
    pub(crate) fn train(
        code: Code,
        metric: Metric,
        dim: usize,
        kernels: Kernels,
        sample: &[f32],
        seed: u64,
    ) -> Result<Coder, CodeError> {
        check_metric(code, metric)?;
        let name = code.name();
        let got = sample.len() / dim;
        if got < FEWEST {
            return Err(CodeError::TooFew { code: name, got, needed: FEWEST });
        }
        if sample.chunks_exact(dim).all(|x| x == &sample[..dim]) {
            return Err(CodeError::Constant { code: name });
        }
        let coder = |form| {
            let stride = stride_of(code, metric, dim);
            let trial = Trial::default();
            let mut coder = Coder { code, metric, dim, stride, kernels, seed, form, trial };
            coder.trial = trial::run(&coder, sample);
            coder
        };
        let rabitq = |levels| RaBitQ::new(levels, metric, scalar::means(dim, sample), seed);
        let coder = match code {
            Code::None | Code::Pq4 => unreachable!("lists make them, or nobody"),
            Code::I4 => coder(Form::RaBitQ(rabitq(Levels::Sixteen))),
            Code::Bits => coder(Form::RaBitQ(rabitq(Levels::Two))),
            Code::I8 => {
                let some = trial::spread(dim, sample, SCALED);
                let plain = coder(Form::Scalar(Scalar::train(metric, None, dim, some.clone())));
                if trial::accurate(&plain.trial) {
                    plain
                } else {
                    let rotation = Some(Rotation::new(dim, seed));
                    let rotated = coder(Form::Scalar(Scalar::train(metric, rotation, dim, some)));
                    if trial::worth_rotating(&plain.trial, &rotated.trial) { rotated } else { plain }
                }
            }
        };
        match coder.verdict() {
            Verdict::Refused => Err(CodeError::Unordered {
                code: name,
                metric: metric.name(),
                vectors: coder.trial.vectors as usize,
                recall: coder.trial.recall.last().copied().unwrap_or(0.0),
                k: coder.trial.k as usize,
                oversample: trial::OVERSAMPLES[coder.trial.recall.len() - 1],
            }),
            _ => Ok(coder),
        }
    }

    /// What `train` takes besides a sample of so many.
    pub(crate) fn train_bytes(code: Code, metric: Metric, dim: usize, sample: usize) -> usize {
        let floats = |vectors: usize| sample.min(vectors) * dim * size_of::<f32>();
        let trial = floats(trial::VECTORS) + sample.min(trial::VECTORS) * stride_of(code, metric, dim);
        match code {
            Code::I8 => floats(SCALED) + trial.max(floats(SCALED)),
            _ => trial,
        }
    }

    /// Which code it is.
    pub(crate) fn code(&self) -> Code {
        self.code
    }

    /// Bytes from one row to the next.
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// Whether vectors are rotated before they are encoded.
    pub(crate) fn rotates(&self) -> bool {
        match &self.form {
            Form::Scalar(scalar) => scalar.rotation.is_some(),
            Form::RaBitQ(_) => true,
        }
    }

    /// The distance that a key stands for, in the metric's own unit.
    pub(crate) fn distance(&self, key: i32) -> f32 {
        float_of(key)
    }

    /// Whether, and with how many candidates for each result, the code orders the sample.
    pub(crate) fn verdict(&self) -> Verdict {
        trial::verdict(&self.trial)
    }

    /// What was chosen and measured, in a line.
    pub(crate) fn describe(&self) -> String {
        let scaling = match &self.form {
            Form::Scalar(scalar) => {
                format!("one scale of {}{}", scalar.scale, if self.rotates() { ", rotated" } else { "" })
            }
            Form::RaBitQ(_) => "a scale for each vector, rotated".to_owned(),
        };
        format!("code {} ({} bytes a vector): {scaling}; {}", self.code.name(), self.stride, self.trial)
    }

    /// Writes the row of `vector` and says whether the code reaches all of it; what it does not is clipped (`i8` alone).
    pub(crate) fn encode(&self, vector: &[f32], row: &mut [u8], scratch: &mut Vec<f32>) -> bool {
        assert_eq!((vector.len(), row.len()), (self.dim, self.stride));
        match &self.form {
            Form::Scalar(scalar) => scalar.encode(vector, row, scratch),
            Form::RaBitQ(rabitq) => {
                rabitq.encode(vector, row, scratch);
                true
            }
        }
    }

    /// Makes a query ready.
    pub(crate) fn prepare(&self, vector: &[f32], probe: &mut CodeProbe) {
        assert_eq!(vector.len(), self.dim);
        let (query, scratch) = probe.parts(self.stride * self.query_bytes());
        probe.terms = match &self.form {
            Form::Scalar(scalar) => scalar.prepare(vector, query, scratch),
            Form::RaBitQ(rabitq) => rabitq.prepare(vector, query, scratch),
        };
    }

    /// Makes a stored row ready, by what its code stands for.
    pub(crate) fn load(&self, row: &[u8], probe: &mut CodeProbe) {
        assert_eq!(row.len(), self.stride);
        let (query, scratch) = probe.parts(self.stride * self.query_bytes());
        probe.terms = match &self.form {
            Form::Scalar(scalar) => scalar.load(row, query, scratch),
            Form::RaBitQ(rabitq) => rabitq.load(row, query, scratch),
        };
    }

    /// The query's bytes for each of a row's.
    fn query_bytes(&self) -> usize {
        match self.code {
            Code::None | Code::Pq4 | Code::I8 => 1,
            Code::I4 => self.kernels.dot_i8u4.per(),
            Code::Bits => self.kernels.dot_u4bits.per(),
        }
    }

    fn rabitq(&self) -> &RaBitQ {
        match &self.form {
            Form::RaBitQ(rabitq) => rabitq,
            Form::Scalar(_) => unreachable!("lists ask codes of residuals only"),
        }
    }

    /// For lists, whose centres take the place of the mean (`i4` and `bits`): `vector` rotated, not centred.
    pub(crate) fn rotate(&self, vector: &[f32], to: &mut Vec<f32>) {
        self.rabitq().rotate(vector, to);
    }

    /// Writes the row of a vector whose rotated difference from its centre is `residual`.
    pub(crate) fn encode_residual(&self, residual: &[f32], row: &mut [u8]) {
        assert_eq!((residual.len(), row.len()), (self.dim, self.stride));
        self.rabitq().encode_residual(residual, row);
    }

    /// Makes a query ready for the rows of one centre: by its rotated difference from it; for inner
    /// products by itself, rotated, and what [`keys_of_list`](Self::keys_of_list) is told of each centre.
    pub(crate) fn prepare_residual(&self, residual: &[f32], probe: &mut CodeProbe) {
        assert_eq!(residual.len(), self.dim);
        let (query, _) = probe.parts(self.stride * self.query_bytes());
        probe.terms = self.rabitq().prepare_residual(residual, query);
    }

    /// Keys of the distances between `probe` and each of `ids` of `count` rows, in order.
    #[inline]
    pub(crate) fn keys_of(
        &self,
        probe: &CodeProbe,
        rows: &[u8],
        count: usize,
        ids: &[u32],
        keys: &mut [i32],
    ) {
        let (query, stride) = (probe.query(), self.stride);
        match self.code {
            Code::None | Code::Pq4 | Code::I8 => {
                self.kernels.dot_i8.ids(signed(query), Rows::new(rows, stride, count, stride), ids, keys);
            }
            Code::I4 => {
                self.kernels.dot_i8u4.ids(signed(query), Rows::new(rows, stride, count, stride), ids, keys)
            }
            Code::Bits => {
                self.kernels.dot_u4bits.ids(query, Rows::new(rows, stride, count, stride), ids, keys);
            }
        }
        self.finish(probe.terms, rows, keys, |i| ids[i] as usize);
    }

    /// Keys of the distances between `probe` and the rows `first..first + keys.len()` of `count`.
    #[inline]
    pub(crate) fn keys_from(
        &self,
        probe: &CodeProbe,
        rows: &[u8],
        count: usize,
        first: usize,
        keys: &mut [i32],
    ) {
        self.keys_in_order((probe.query(), probe.terms), rows, count, first, keys);
    }

    /// As `keys_from`, of all `rows`, which are of a centre with which the query has the negated product `base` (inner
    /// products); of the centre that the query was made ready for, without.
    pub(crate) fn keys_of_list(&self, probe: &CodeProbe, base: Option<f32>, rows: &[u8], keys: &mut [i32]) {
        let terms = Terms { a: base.unwrap_or(probe.terms.a), ..probe.terms };
        self.keys_in_order((probe.query(), terms), rows, keys.len(), 0, keys);
    }

    #[inline]
    fn keys_in_order(
        &self,
        (query, terms): (&[u8], Terms),
        rows: &[u8],
        count: usize,
        first: usize,
        keys: &mut [i32],
    ) {
        let stride = self.stride;
        match self.code {
            Code::None | Code::Pq4 | Code::I8 => {
                self.kernels.dot_i8.rows(signed(query), Rows::new(rows, stride, count, stride), first, keys);
            }
            Code::I4 => {
                self.kernels.dot_i8u4.rows(
                    signed(query),
                    Rows::new(rows, stride, count, stride),
                    first,
                    keys,
                );
            }
            Code::Bits => {
                self.kernels.dot_u4bits.rows(query, Rows::new(rows, stride, count, stride), first, keys);
            }
        }
        self.finish(terms, rows, keys, |i| first + i);
    }

    /// Makes keys of what the kernels gave; `row` says which row an entry is of.
    #[inline]
    fn finish(&self, t: Terms, rows: &[u8], keys: &mut [i32], row: impl Fn(usize) -> usize) {
        let end = |i: usize| &rows[(row(i) + 1) * self.stride - 16..][..16];
        match &self.form {
            Form::Scalar(scalar) if scalar.keeps() => {
                write(keys, |i, dot| t.a + read_tail(end(i), 0) + t.c * dot)
            }
            Form::Scalar(_) => write(keys, |_, dot| t.a + t.c * dot),
            Form::RaBitQ(_) if self.code == Code::I4 => write(keys, |i, dot| {
                let end = end(i);
                t.a + read_tail(end, 0) + read_tail(end, 1) * (t.c * dot + t.d)
            }),
            Form::RaBitQ(_) => write(keys, |i, dot| {
                let end = end(i);
                t.a + read_tail(end, 0) + read_tail(end, 1) * (t.c * dot + t.d) + t.e * read_tail(end, 2)
            }),
        }
    }
}

/// Turns each kernel's result, in place, into the key of its distance.
#[inline]
fn write(keys: &mut [i32], distance: impl Fn(usize, f32) -> f32) {
    for (i, key) in keys.iter_mut().enumerate() {
        *key = key_of(distance(i, *key as f32));
    }
}
