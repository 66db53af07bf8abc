//! Lists as a file keeps them, and back: what training learnt (see `parameters`); lengths; codes, biases and rows, each of
//! one list after the other. What is opened is read in place, in one sealed chunk a list; bf16 rows and i8 codes of the centroids are
//! made anew.
//!
//! Nothing of a file is believed: sizes have to fit together, numbers to be finite, and every row to be in one list.

use super::{Form, Ivf, Lists, ParameterError, Params};
use crate::ivf::lists::{List, Place};
use crate::memory::FileBytes;
use lanewise_kernels::Kernels;
use std::ops::Range;

/// What a file has of lists beside the memory that they lie in.
pub(crate) struct Packed {
    parameters: Vec<u8>,
    /// Vectors of each list.
    lengths: Vec<u32>,
    /// Codes of the lists whose chunks do not lie as a file has them.
    codes: Vec<Option<Vec<u8>>>,
}

/// Where a file's sections are, in bytes.
pub(crate) struct Sections {
    pub(crate) parameters: Range<usize>,
    pub(crate) lengths: Range<usize>,
    pub(crate) codes: Range<usize>,
    pub(crate) biases: Range<usize>,
    pub(crate) rows: Range<usize>,
}

fn bytes<T: Copy>(numbers: &[T]) -> &[u8] {
    // SAFETY: only used with integers and floats, which have no padding.
    unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), size_of_val(numbers)) }
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.as_chunks::<4>().0.iter().map(|&word| u32::from_le_bytes(word))
}

impl Ivf {
    /// Bytes of what a file keeps of lists of `count` vectors.
    pub(crate) fn bytes(&self, count: usize) -> usize {
        let form = self.lists.form();
        let codes = match form {
            Form::Rows { .. } => form.stored_bytes(count),
            Form::Blocks { .. } => self.lists.iter().map(|list| form.stored_bytes(list.len())).sum(),
        };
        let biases = if let Form::Blocks { .. } = form { 2 * count } else { 0 };
        let centroids = 4 * (self.centroids.vectors().len() + self.centroids.dim() + self.lists.len());
        codes.unwrap_or(0) + biases + centroids + 4 * count
    }

    /// Gets ready to be written; nobody may add until it has been.
    pub(crate) fn packed(&self) -> Packed {
        Packed {
            parameters: self.parameters(),
            lengths: self.lists.iter().map(|list| list.len() as u32).collect(),
            codes: self.lists.iter().map(List::packed).collect(),
        }
    }

    /// The five sections, each in pieces.
    pub(crate) fn pieces<'a>(&'a self, packed: &'a Packed) -> [Vec<&'a [u8]>; 5] {
        let lists = || self.lists.iter();
        let codes = lists().zip(&packed.codes).flat_map(|(list, packed)| match packed {
            Some(codes) => vec![&codes[..]],
            None => list.codes().collect(),
        });
        [
            vec![&packed.parameters[..]],
            vec![bytes(&packed.lengths)],
            codes.collect(),
            lists().flat_map(List::biases).map(bytes).collect(),
            lists().flat_map(List::rows).map(bytes).collect(),
        ]
    }

    /// The lists of `count` vectors in the sections of `file`.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn stored(
        params: Params,
        kernels: Kernels,
        file: &FileBytes,
        sections: Sections,
        count: usize,
    ) -> Result<Ivf, &'static str> {
        let all: &[u8] = (**file).as_ref();
        let lengths = &all[sections.lengths.clone()];
        if lengths.len() != 4 * params.nlist {
            return Err("the lists' number is not that of their lengths");
        }
        let empty = Ivf::from_parameters(params, kernels, &all[sections.parameters]);
        let empty = empty.map_err(|error| match error {
            ParameterError::Length { .. } => "the lists' parameters are not those of their number",
            ParameterError::Value { what } => what,
            ParameterError::Memory(_) => "more centroids than there is memory for",
        })?;
        let form = empty.lists.form();
        if sections.rows.len() != 4 * count || numbers(lengths).map(u64::from).sum::<u64>() != count as u64 {
            return Err("the lists' lengths are not the number of vectors");
        }
        let mut seen = vec![false; count];
        for row in numbers(&all[sections.rows.clone()]) {
            match seen.get_mut(row as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err("a row of a list is no vector, or in another one too"),
            }
        }
        let mut at = (sections.codes.start, sections.biases.start, sections.rows.start);
        let mut lists = Vec::with_capacity(params.nlist);
        for length in numbers(lengths).map(|length| length as usize) {
            let biases = if let Form::Blocks { .. } = form { 2 * length } else { 0 };
            let codes = form.stored_bytes(length).and_then(|bytes| at.0.checked_add(bytes));
            let end = (codes.ok_or("too many codes")?, at.1 + biases, at.2 + 4 * length);
            if end.0 > sections.codes.end || end.1 > sections.biases.end {
                return Err("the codes of lists are not as many as the vectors");
            }
            let place = Place { codes: at.0..end.0, biases: at.1..end.1, rows: at.2..end.2 };
            lists.push(List::stored(form, file, place).ok_or("the lists are not aligned in memory")?);
            at = end;
        }
        if (at.0, at.1) != (sections.codes.end, sections.biases.end) {
            return Err("the codes of lists are not as many as the vectors");
        }
        Ok(Ivf { lists: Lists::of(form, lists.into_iter()), ..empty })
    }
}
