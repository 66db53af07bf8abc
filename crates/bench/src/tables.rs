//! The tables of document 004's evaluation (section VIII-A), made from a seed and scaled to the memory at hand: 60 HNSW
//! tables, or 15 IVF tables, of mixed sizes and 64 to 256 dimensions.
//!
//! Sizes follow Zipf's law from the largest table to the smallest, as far apart as the paper's: 10 to 1 for HNSW (10 to 1
//! million rows), 1500 to 1 for IVF (15 million to 10 thousand). Vectors are [`mixture`]s: compare policies on them, and
//! graphs with graphs, but not lists with graphs. A table is built once and kept in a folder, under a name that holds
//! everything it depends on.

use crate::generate::{Random, mixture};
use lanewise_engine::index::{AddError, CreateError, Executor, Index, Kind, Params, Vectors};
use lanewise_engine::{FileError, Threads, open, save};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// No table is smaller, however small the budget: below, a search compares all vectors.
pub const ROWS_MIN: usize = 1024;
/// Dimensions that tables have.
pub const DIMS: [usize; 5] = [64, 96, 128, 192, 256];
/// Links of HNSW, the paper's.
const M: usize = 32;
/// Candidates while HNSW is built. The paper takes 500; a search reads the same memory either way, and building is what
/// takes the time here.
const EF_CONSTRUCTION: usize = 200;
/// Part of the files' names: to be raised when other vectors or parameters are made of the same names.
const VERSION: u32 = 1;

/// One table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its place among the tables, by size from the largest on.
    pub rank: usize,
    /// Number of vectors.
    pub rows: usize,
    /// What its index is made with; the seed is that of the vectors too.
    pub params: Params,
}

/// Why tables were not planned, built or opened.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum TablesError {
    #[error("kind: {0} tables are not part of the evaluation: use hnsw or ivf")]
    Kind(&'static str),
    #[error(
        "budget: {budget} bytes do not hold {count} tables of {ROWS_MIN} rows, which take {needs}: raise it"
    )]
    Budget { budget: usize, count: usize, needs: usize },
    #[error(transparent)]
    Create(#[from] CreateError),
    #[error(transparent)]
    Add(#[from] AddError),
    #[error("cache folder {}: {error}", path.display())]
    Folder { path: PathBuf, error: io::Error },
    #[error("{0}")]
    Save(FileError),
    #[error("{0}; delete the file to have the table built again")]
    Open(FileError),
    #[error("{}: not the table that its name says; delete the file to have it built again", .0.display())]
    Other(PathBuf),
}

/// The tables of `kind` that together take at most `budget` bytes once built, and little less; from the largest to the
/// smallest.
///
/// # Errors
/// If `kind` is flat, the budget is too small for the smallest tables, or `LANEWISE_ISA` is wrong.
pub fn tables(kind: Kind, budget: usize, seed: u64) -> Result<Vec<Table>, TablesError> {
    let (count, ratio) = match kind {
        Kind::Hnsw => (60, 10.0),
        Kind::Ivf => (15, 1500.0),
        Kind::Flat => return Err(TablesError::Kind(kind.name())),
    };
    // The exponent with which the last of so many is so much smaller than the first.
    let exponent = f64::ln(ratio) / f64::ln(count as f64);
    let of = |largest: usize| -> Vec<Table> {
        (0..count).map(|rank| table(kind, rank, largest, exponent, seed)).collect()
    };

    let bytes = |largest: usize| -> Result<usize, TablesError> { of(largest).iter().map(Table::bytes).sum() };
    let needs = bytes(ROWS_MIN)?;
    if needs > budget {
        return Err(TablesError::Budget { budget, count, needs });
    }
    // Rows of the largest table: so many fit, and so many do not (each row is more than a byte for each dimension).
    let (mut fits, mut exceeds) = (ROWS_MIN, (budget / DIMS[0]).max(ROWS_MIN + 1));
    while exceeds - fits > 1 + fits / 256 {
        let middle = fits + (exceeds - fits) / 2;
        if bytes(middle)? <= budget { fits = middle } else { exceeds = middle }
    }
    Ok(of(fits))
}

/// The table at place `rank`, where the largest has so many rows.
fn table(kind: Kind, rank: usize, largest: usize, exponent: f64, seed: u64) -> Table {
    let share = ((rank + 1) as f64).powf(-exponent);
    let rows = ((largest as f64 * share) as usize).max(ROWS_MIN);
    let mut random = Random::new(seed, rank as u64);
    let dim = DIMS[random.below(DIMS.len())];
    // The paper's 128 to 8192 lists for its 10 thousand to 15 million rows are 1.3 to 2.1 times the root.
    let nlist = if kind == Kind::Ivf { 2 * rows.isqrt() } else { 0 };
    let seed = random.next();
    let params = Params { kind, m: M, ef_construction: EF_CONSTRUCTION, nlist, seed, ..Params::new(dim) };
    Table { rank, rows, params }
}

impl Table {
    /// What the table takes, as its index predicts it.
    fn bytes(&self) -> Result<usize, TablesError> {
        Ok(Index::new(self.params)?.predict(self.rows, false, 1)?.held)
    }

    /// The name of its file.
    pub fn file_name(&self) -> String {
        let Params { dim, kind, nlist, seed, .. } = self.params;
        let lists = if kind == Kind::Ivf { format!("-{nlist}") } else { String::new() };
        format!("{}{lists}-{}x{dim}-{seed:016x}-v{VERSION}.lanewise", kind.name(), self.rows)
    }

    /// `count` queries, one after the other: of the mixture that the vectors are of, and not among them. The first of
    /// many are those of few.
    pub fn queries(&self, count: usize) -> Vec<f32> {
        mixture(self.params.dim, 0, count, self.params.seed).1
    }

    /// The table's index: from its file in `folder`, or built and saved there. A build holds the vectors once more until
    /// it ends. `proceed` hears how many rows are in, as [`Index::add`] reports them, and may stop the build, of which
    /// nothing is kept then.
    ///
    /// # Errors
    /// If the file is damaged or of another table, there is no memory or no space, or the build was stopped.
    pub fn index(
        &self,
        folder: &Path,
        threads: Threads,
        proceed: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Index, TablesError> {
        fs::create_dir_all(folder).map_err(|error| TablesError::Folder { path: folder.to_owned(), error })?;
        let path = folder.join(self.file_name());
        if !path.exists() {
            let index = Index::new(self.params)?;
            // Asked before the work, so that a table too large for the machine is an error and not the process's end.
            index.predict(self.rows, false, threads.workers())?;
            let (vectors, _) = mixture(self.params.dim, self.rows, 0, self.params.seed);
            index.add(Vectors::F32(&vectors), None, &threads, proceed)?;
            save(&index, &path).map_err(TablesError::Save)?;
        }
        // What was just built is read back too, so that every run searches the same memory map.
        let index = open(&path, None).map_err(TablesError::Open)?;
        if (index.len(), index.params()) != (self.rows, &self.params) {
            return Err(TablesError::Other(path));
        }
        Ok(index)
    }
}
