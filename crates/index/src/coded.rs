//! The rows of a traversal code: what a walk compares in place of the stored vectors.
//!
//! A code is fitted once there are [`FIRST`] vectors, and anew when there are [`AGAIN`] times as many as it was fitted
//! to, as long as those were few; all rows are then written anew, beside the old ones, and the graph stays as it is.
//! Until the first fit, and for building where a code is coarse, the stored vectors are compared.

use crate::code::{Code, CodeError, CodeProbe, Coder, Verdict, stride_of};
use crate::executor::Executor;
use crate::memory::{Column, Growth, OutOfMemory};
use crate::predict::Part;
use crate::prefetch::prefetch_rows;
use crate::record::{Region, RowRead};
use crate::space::{Compare, Space};
use crate::vectors::Metric;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Vectors to which a code is fitted first, at least.
const FIRST: usize = 256;
/// With so many times the vectors, a code is fitted anew …
const AGAIN: usize = 16;
/// … unless it was fitted to this many, which is also the most that are looked at.
const SAMPLE: usize = 16_384;
/// Rows that one task encodes.
const TASK: usize = 1024;

/// Vectors as rows of a code.
pub(crate) struct Coded {
    pub(crate) coder: Arc<Coder>,
    pub(crate) rows: Column<u8>,
    /// The coder as a file keeps it.
    pub(crate) parameters: Arc<[u8]>,
    /// Number of vectors that the code was fitted to.
    pub(crate) fitted: usize,
    count: usize,
    metric: Metric,
    /// Estimated distance up to which two rows count as the same.
    identical: f32,
}

impl Coded {
    /// The rows of `coder`, of which there are `count`.
    pub(crate) fn new(
        coder: Arc<Coder>,
        metric: Metric,
        rows: Column<u8>,
        fitted: usize,
        count: usize,
    ) -> Coded {
        let parameters = coder.parameters().into();
        let mut coded =
            Coded { coder, rows, parameters, fitted, count, metric, identical: f32::NEG_INFINITY };
        if metric != Metric::InnerProduct {
            // What rounding leaves of a row's distance from itself.
            let own = (0..count as u32).step_by(count.div_ceil(64).max(1)).map(|id| coded.own_distance(id));
            coded.identical = 2.0 * own.fold(0.0, f32::max);
        }
        coded
    }

    fn own_distance(&self, id: u32) -> f32 {
        let (mut probe, mut key) = (CodeProbe::new(), [0]);
        self.load(id, &mut probe);
        self.keys_of(&probe, &[id], &mut key);
        self.coder.distance(key[0])
    }

    /// Brings `coded` up to the vectors of `space`: fits the code if it is time, and writes the rows that are missing.
    ///
    /// # Errors
    /// If the code cannot order the vectors, or there is no memory; `coded` is then what it was.
    pub(crate) fn update(
        coded: &mut Option<Coded>,
        code: Code,
        space: &Space,
        seed: u64,
        executor: &dyn Executor,
    ) -> Result<(), CodeFailure> {
        let count = space.len();
        if Self::is_due(coded.as_ref(), code, count) {
            match train(code, space, seed)? {
                // Copies of one vector: there will be others.
                Err(CodeError::Constant { .. }) => {}
                Err(error) => return Err(error.into()),
                Ok(coder) => {
                    let mut rows = Column::new();
                    encode(&coder, space, 0..count, &mut rows, executor)?;
                    *coded = Some(Coded::new(Arc::new(coder), space.metric, rows, count.min(SAMPLE), count));
                }
            }
        }
        if let Some(coded) = coded.as_mut().filter(|coded| coded.count < count) {
            encode(&coded.coder, space, coded.count..count, &mut coded.rows, executor)?;
            coded.count = count;
        }
        Ok(())
    }

    /// Whether it is time to fit a code, anew if there is one.
    fn is_due(coded: Option<&Coded>, code: Code, count: usize) -> bool {
        let fitted = coded.map_or(0, |coded| coded.fitted);
        let due = if fitted == 0 { FIRST } else { fitted.saturating_mul(AGAIN) };
        code != Code::None && fitted < SAMPLE && count >= due
    }

    /// What `update` takes for `more` vectors.
    pub(crate) fn part(coded: Option<&Coded>, code: Code, space: &Space, more: usize) -> Part {
        let all = space.len() + more;
        if Self::is_due(coded, code, all) {
            let stride = stride_of(code, space.metric, space.dim);
            let replaced = coded.map_or(0, |coded| coded.rows.owned_bytes());
            let growth = Growth { held: all * stride, replaced };
            return Part { growth, learning: train_bytes(code, space, all), filling: 0 };
        }
        let growth = coded
            .map_or(Growth::default(), |coded| coded.rows.growth((all - coded.count) * coded.coder.stride()));
        Part { growth, ..Part::default() }
    }

    /// Makes room for rows of `count` vectors, and no more than that.
    pub(crate) fn reserve(&mut self, count: usize) -> Result<(), OutOfMemory> {
        self.rows.reserve_exact((count - self.count) * self.coder.stride())
    }

    /// The first `count` rows, for readers.
    pub(crate) fn view(&self, count: usize) -> Coded {
        Coded {
            coder: self.coder.clone(),
            parameters: self.parameters.clone(),
            rows: self.rows.view(count * self.coder.stride()),
            count,
            ..*self
        }
    }

    pub(crate) fn truncate(&mut self, count: usize) {
        self.rows.truncate(count * self.coder.stride());
        self.count = self.count.min(count);
    }

    /// The rows `rows` alone, with room for `more`.
    pub(crate) fn keep(&self, rows: &[u32], more: usize) -> Result<Coded, OutOfMemory> {
        let stride = self.coder.stride();
        let mut kept = Coded { rows: Column::new(), ..self.view(0) };
        kept.rows.reserve((rows.len() + more) * stride)?;
        rows.iter().for_each(|&row| kept.rows.extend(&self.rows[row as usize * stride..][..stride]));
        kept.count = rows.len();
        Ok(kept)
    }

    /// Candidates for each result that the code needs, by its trial.
    pub(crate) fn oversample(&self) -> usize {
        match self.coder.verdict() {
            Verdict::Ordered { oversample } => oversample.max(2),
            Verdict::Coarse | Verdict::Refused => 16,
        }
    }

    /// Whether no number of candidates that was tried is enough.
    pub(crate) fn coarse(&self) -> bool {
        !matches!(self.coder.verdict(), Verdict::Ordered { .. })
    }

    /// Whether a graph is as good when it is built by the code's distances.
    pub(crate) fn builds(&self) -> bool {
        self.coder.code() == Code::I8
    }
}

/// Fits a code to a sample of the vectors of `space`.
pub(crate) fn train(code: Code, space: &Space, seed: u64) -> Result<Result<Coder, CodeError>, OutOfMemory> {
    let every = space.len().div_ceil(SAMPLE);
    let mut sample = Vec::new();
    let bytes = space.len().div_ceil(every) * space.dim * size_of::<f32>();
    sample.try_reserve_exact(bytes / size_of::<f32>()).map_err(|_| OutOfMemory { bytes })?;
    let mut vector = Vec::new();
    for row in (0..space.len() as u32).step_by(every) {
        space.floats(row, &mut vector);
        sample.extend_from_slice(&vector);
    }
    Ok(Coder::train(code, space.metric, space.dim, *space.kernels(), &sample, seed))
}

/// What `train` takes with `count` vectors.
pub(crate) fn train_bytes(code: Code, space: &Space, count: usize) -> usize {
    let sample = count.div_ceil(count.div_ceil(SAMPLE).max(1));
    sample * space.dim * size_of::<f32>() + Coder::train_bytes(code, space.metric, space.dim, sample)
}

/// Why rows of a code, or lists, could not be made.
pub(crate) enum CodeFailure {
    Cancelled,
    Code(CodeError),
    Memory(OutOfMemory),
}

impl From<CodeError> for CodeFailure {
    fn from(error: CodeError) -> Self {
        CodeFailure::Code(error)
    }
}

impl From<OutOfMemory> for CodeFailure {
    fn from(error: OutOfMemory) -> Self {
        CodeFailure::Memory(error)
    }
}

/// Appends the rows of the vectors `which` of `space`.
fn encode(
    coder: &Coder,
    space: &Space,
    which: Range<usize>,
    rows: &mut Column<u8>,
    executor: &dyn Executor,
) -> Result<(), OutOfMemory> {
    let stride = coder.stride();
    rows.reserve(which.len() * stride)?;
    let slots = rows.extend_slots(which.len() * stride, 0);
    let tasks: Vec<Mutex<&mut [u8]>> = slots.chunks_mut(TASK * stride).map(Mutex::new).collect();
    executor.run(tasks.len(), &|_, task| {
        let mut part = tasks[task].lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (mut vector, mut scratch) = (Vec::new(), Vec::new());
        for (row, to) in (which.start + task * TASK..).zip(part.chunks_exact_mut(stride)) {
            space.floats(row as u32, &mut vector);
            coder.encode(&vector, to, &mut scratch);
        }
    });
    Ok(())
}

impl Default for CodeProbe {
    fn default() -> Self {
        CodeProbe::new()
    }
}

impl Compare for Coded {
    type Probe = CodeProbe;

    fn len(&self) -> usize {
        self.count
    }

    #[inline]
    fn keys_of(&self, probe: &CodeProbe, ids: &[u32], keys: &mut [i32]) {
        self.coder.keys_of(probe, &self.rows, self.count, ids, keys);
    }

    #[inline]
    fn keys_from(&self, probe: &CodeProbe, first: usize, keys: &mut [i32]) {
        self.coder.keys_from(probe, &self.rows, self.count, first, keys);
    }

    #[inline]
    fn prefetch(&self, ids: &[u32]) {
        prefetch_rows(&self.rows, self.coder.stride(), ids);
    }

    fn load(&self, id: u32, probe: &mut CodeProbe) {
        let stride = self.coder.stride();
        self.coder.load(&self.rows[id as usize * stride..][..stride], probe);
    }

    #[inline]
    fn distance(&self, key: i32) -> f32 {
        self.coder.distance(key)
    }

    fn metric(&self) -> Metric {
        self.metric
    }

    #[inline]
    fn reads(&self) -> RowRead {
        RowRead { region: Region::Codes, row: self.coder.stride(), norm: 0 }
    }

    fn identical(&self) -> f32 {
        self.identical
    }
}
