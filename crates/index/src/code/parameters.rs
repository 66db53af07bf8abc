//! A coder as the bytes that an index file keeps, and back. All numbers little-endian:
//!
//! ```text
//! u8      version, 1
//! u8      1 if vectors are rotated (always for i4 and bits)
//! u8[2]   0
//! u32     vectors of the trial
//! u32     k of the trial
//! f32     noise of the trial
//! f32[5]  recalls of the trial; from the first that was not measured on, -1
//! f32     scale (i8; 0 for the others)
//! u64     seed of the rotation
//! f32     dim offsets (i8) or the mean (i4, bits)
//! ```
//!
//! Code, metric and dimension are the file's to know. The rotation is drawn again from its seed.

use super::trial::OVERSAMPLES;
use super::{Code, Coder, Form, Levels, RaBitQ, Rotation, Scalar, Trial, check_metric, stride_of};
use crate::vectors::Metric;
use lanewise_kernels::Kernels;

const VERSION: u8 = 1;
/// Bytes before the offsets.
const HEAD: usize = 48;

/// What is wrong with a coder's bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the parameters of code={code:?} are damaged: {what}")]
pub struct ParametersError {
    code: &'static str,
    what: &'static str,
}

impl Coder {
    /// The coder as bytes.
    pub(crate) fn parameters(&self) -> Vec<u8> {
        let (scale, offsets) = match &self.form {
            Form::Scalar(scalar) => (scalar.scale, &scalar.offset),
            Form::RaBitQ(rabitq) => (0.0, &rabitq.mean),
        };
        let mut bytes = vec![VERSION, u8::from(self.rotates()), 0, 0];
        bytes.extend(self.trial.vectors.to_le_bytes());
        bytes.extend(self.trial.k.to_le_bytes());
        bytes.extend(self.trial.noise.to_le_bytes());
        let recalls = self.trial.recall.iter().copied().chain(std::iter::repeat(-1.0));
        recalls.take(OVERSAMPLES.len()).for_each(|recall| bytes.extend(recall.to_le_bytes()));
        bytes.extend(scale.to_le_bytes());
        bytes.extend(self.seed.to_le_bytes());
        offsets.iter().for_each(|offset| bytes.extend(offset.to_le_bytes()));
        bytes
    }

    /// The coder that `bytes` of a file describe.
    ///
    /// # Errors
    /// If they do not describe one.
    pub(crate) fn from_parameters(
        code: Code,
        metric: Metric,
        dim: usize,
        kernels: Kernels,
        bytes: &[u8],
    ) -> Result<Coder, ParametersError> {
        let wrong = |what| ParametersError { code: code.name(), what };
        check_metric(code, metric).map_err(|_| wrong("the metric has no such code"))?;
        if dim == 0 || dim.checked_mul(4).and_then(|bytes| bytes.checked_add(HEAD)) != Some(bytes.len()) {
            return Err(wrong("their length is not the dimension's"));
        }
        let (head, offsets) = bytes.split_at(HEAD);
        let word = |at: usize| [head[at], head[at + 1], head[at + 2], head[at + 3]];
        let float = |at: usize| f32::from_le_bytes(word(at));
        if head[0] != VERSION || head[1] > 1 || head[2..4] != [0, 0] {
            return Err(wrong("version or flags are unknown"));
        }
        let rotated = head[1] == 1;
        let offsets: Vec<f32> =
            offsets.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
        if offsets.iter().any(|offset| !offset.is_finite()) {
            return Err(wrong("an offset is not finite"));
        }
        let scale = float(36);
        let scaled =
            if code == Code::I8 { scale > 0.0 && scale.is_finite() } else { scale == 0.0 && rotated };
        if !scaled {
            return Err(wrong("the scale is not one"));
        }
        let measured = |at: usize| Some(float(at)).filter(|recall| *recall >= 0.0);
        let recall: Vec<f32> = (0..OVERSAMPLES.len()).map_while(|i| measured(16 + 4 * i)).collect();
        let noise = float(12);
        if noise.is_nan() || noise < 0.0 || recall.iter().any(|&recall| recall > 1.0) {
            return Err(wrong("the trial is none"));
        }
        let (vectors, k) = (u32::from_le_bytes(word(4)), u32::from_le_bytes(word(8)));
        let seed = u64::from(u32::from_le_bytes(word(40))) | u64::from(u32::from_le_bytes(word(44))) << 32;
        let form = match code {
            Code::None | Code::Pq4 => unreachable!("no metric has it"),
            Code::I8 => {
                let rotation = rotated.then(|| Rotation::new(dim, seed));
                Form::Scalar(Scalar::new(metric, rotation, offsets, scale))
            }
            Code::I4 => Form::RaBitQ(RaBitQ::new(Levels::Sixteen, metric, offsets, seed)),
            Code::Bits => Form::RaBitQ(RaBitQ::new(Levels::Two, metric, offsets, seed)),
        };
        let trial = Trial { vectors, k, noise, recall };
        Ok(Coder { code, metric, dim, stride: stride_of(code, metric, dim), kernels, seed, form, trial })
    }
}
