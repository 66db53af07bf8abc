//! What an index is made for.

use crate::code::Code;
use crate::error::CreateError;
use crate::vectors::{Dtype, Metric};

/// How an index finds what is near.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// By comparing every vector: exact. With a code, by comparing every code.
    Flat = 0,
    /// By walking a graph (HNSW): approximate, in time that hardly grows with the number of vectors.
    Hnsw = 1,
    /// By scanning the lists of the nearest centroids (IVF): approximate, and built fastest.
    Ivf = 2,
}

impl Kind {
    /// All kinds, in the order of their numbers in files.
    pub const ALL: [Kind; 3] = [Kind::Flat, Kind::Hnsw, Kind::Ivf];

    /// The name users write.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Flat => "flat",
            Kind::Hnsw => "hnsw",
            Kind::Ivf => "ivf",
        }
    }
}

/// What an index is made for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Dimensions of a vector; bits for [`Dtype::Bits`].
    pub dim: usize,
    /// How distances are measured.
    pub metric: Metric,
    /// Element type of the stored vectors.
    pub dtype: Dtype,
    /// How near vectors are found.
    pub kind: Kind,
    /// What searches walk on, or lists hold.
    pub code: Code,
    /// HNSW: links a node has in upper layers; twice that in the base layer.
    pub m: usize,
    /// HNSW: candidates kept while a vector is inserted.
    pub ef_construction: usize,
    /// IVF: number of lists; 0: about four times the square root of the number of vectors when they are made.
    pub nlist: usize,
    /// What the layers of HNSW, the samples of lists and the rotations of codes are drawn from.
    pub seed: u64,
}

/// The most lists.
pub(crate) const NLIST: usize = 65_536;

impl Params {
    /// The usual choices for vectors of `dim` dimensions: HNSW over floats by L2, no
    /// code, `m` 16, `ef_construction` 200, `nlist` 0.
    pub fn new(dim: usize) -> Self {
        Params {
            dim,
            metric: Metric::L2,
            dtype: Dtype::F32,
            kind: Kind::Hnsw,
            code: Code::None,
            m: 16,
            ef_construction: 200,
            nlist: 0,
            seed: 0,
        }
    }

    /// Checks what does not depend on the machine.
    pub(crate) fn check(&self) -> Result<(), CreateError> {
        if self.code != Code::None && self.metric.of_bits() {
            return Err(CreateError::CodeOfBits { code: self.code.name() });
        }
        match *self {
            Params { kind, code: Code::Pq4, .. } if kind != Kind::Ivf => {
                Err(CreateError::CodeOfLists { code: self.code.name(), kind: kind.name() })
            }
            Params { kind: Kind::Flat, .. } => Ok(()),
            Params { kind: Kind::Ivf, nlist, .. } if nlist > NLIST => Err(CreateError::Nlist { nlist }),
            Params { kind: Kind::Ivf, .. } => Ok(()),
            Params { m, .. } if !(2..=512).contains(&m) => Err(CreateError::M { m }),
            Params { ef_construction: ef, .. } if !(1..=65_536).contains(&ef) => {
                Err(CreateError::EfConstruction { ef })
            }
            _ => Ok(()),
        }
    }
}
