//! Arguments that several commands share.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use lanewise_bench::dataset::Elements;
use lanewise_engine::Threads;
use lanewise_engine::index::{Code, Dtype, Kind, Metric, Params};
use std::num::NonZeroUsize;

/// What kind of index to make.
#[derive(clap::Args)]
pub(crate) struct IndexArguments {
    /// How distances are measured [default: l2; hamming for bits]
    #[arg(long, value_parser = one_of(&Metric::ALL, Metric::name))]
    metric: Option<Metric>,
    /// Element type of the stored vectors [default: what the file holds; f32 for unsigned bytes]
    #[arg(long, value_parser = one_of(&Dtype::ALL, Dtype::name))]
    dtype: Option<Dtype>,
    /// How near vectors are found
    #[arg(long, value_parser = one_of(&Kind::ALL, Kind::name), default_value = Kind::Hnsw.name())]
    kind: Kind,
    /// What searches walk on, smaller than the vectors, from which results are then ordered
    #[arg(long, value_parser = one_of(&Code::ALL, Code::name), default_value = Code::None.name())]
    code: Code,
    /// HNSW: links of a vector
    #[arg(long, value_parser = clap::value_parser!(u16).range(2..=512), default_value = "16")]
    m: u16,
    /// HNSW: candidates kept while a vector is inserted
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=65_536), default_value = "200")]
    ef_construction: u32,
    /// IVF: lists; 0: by the number of vectors
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=65_536), default_value = "0")]
    nlist: u32,
    /// Of the index's layers, lists and codes, and of the vectors that `bench` holds out
    #[arg(long, default_value = "0")]
    pub(crate) seed: u64,
}

impl IndexArguments {
    /// Metric and element type for the elements of a file, where the user left them open.
    pub(crate) fn space(&self, elements: &Elements) -> (Metric, Dtype) {
        let dtype = self.dtype.unwrap_or(match (self.metric, elements) {
            (Some(Metric::Hamming | Metric::Jaccard), _) | (None, Elements::Bool(_)) => Dtype::Bits,
            (_, Elements::I8(_)) => Dtype::I8,
            _ => Dtype::F32,
        });
        let metric = self.metric.unwrap_or(if dtype == Dtype::Bits { Metric::Hamming } else { Metric::L2 });
        (metric, dtype)
    }

    /// The index's parameters for vectors of `dim` dimensions.
    pub(crate) fn params(&self, dim: usize, metric: Metric, dtype: Dtype) -> Params {
        Params {
            dim,
            metric,
            dtype,
            kind: self.kind,
            code: self.code,
            m: self.m.into(),
            ef_construction: self.ef_construction as usize,
            nlist: self.nlist as usize,
            seed: self.seed,
        }
    }
}

/// How many threads to use.
#[derive(clap::Args)]
pub(crate) struct ThreadsArgument {
    /// Threads to use [default: what CPU affinity and container allow]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

impl ThreadsArgument {
    pub(crate) fn threads(&self) -> Threads {
        Threads::new(self.threads.and_then(|n| NonZeroUsize::new(n.into())))
    }
}

/// Neighbours per query: more than that is no search.
pub(crate) fn k_range() -> impl TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(1..=10_000)
}

/// Lists of a search.
pub(crate) fn nprobe_range() -> impl TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(1..=65_536)
}

/// Candidates of a search.
pub(crate) fn ef_range() -> impl TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(1..=65_536)
}

/// A size: a number of bytes, or with a unit, of 1000 (kB, MB, GB) or 1024 (KiB, MiB, GiB).
pub(crate) fn bytes(given: &str) -> Result<usize, String> {
    let split = given.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(given.len());
    let (number, unit) = given.split_at(split);
    let unit = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "kib" => f64::from(1 << 10),
        "mib" => f64::from(1 << 20),
        "gib" => f64::from(1 << 30),
        _ => return Err("not a size: write bytes, or 500MB, or 2GiB".to_owned()),
    };
    let number: f64 = number.parse().map_err(|_| "not a size: write bytes, or 500MB, or 2GiB".to_owned())?;
    Ok((number * unit) as usize)
}

/// One of a closed set, by its name.
fn one_of<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let names = PossibleValuesParser::new(all.iter().map(|&value| name(value)));
    names.map(move |given| {
        let found = all.iter().copied().find(|&value| name(value) == given);
        found.expect("the parser lets only names of the set through")
    })
}
