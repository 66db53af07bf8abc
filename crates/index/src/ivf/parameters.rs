//! What training learnt, as bytes for a file, and back. Bytes come from anywhere, so each is checked: what is accepted
//! can be searched without harm, whatever it finds.
//!
//! Little-endian words of four bytes: the origin (`dim` floats), the centroids (`nlist × dim` floats), and for 4-bit
//! codes the bounds of the runs (`runs + 1` integers), the prototypes (`dim × 16` floats), the least bias and its unit
//! (two floats). Nothing says how long anything is but the index's own parameters.

use super::centroids::Centroids;
use super::lists::{Form, Lists};
use super::pq::{Codebook, K};
use super::{Ivf, ListCode, Params};
use crate::memory::OutOfMemory;
use lanewise_kernels::Kernels;
use std::sync::Arc;

/// Why bytes are not the parameters of lists.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum ParameterError {
    #[error("the lists' parameters have {got} bytes, but their nlist, dim and code need {expected}")]
    Length { got: usize, expected: usize },
    #[error("the lists' parameters hold {what}")]
    Value { what: &'static str },
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
}

/// Above what a vector has, whose squared norm `f32` holds; the difference of two has up to twice that.
const LARGE: f32 = 1.85e19;

/// Words that are there, by their length.
struct Words<'a>(&'a [[u8; 4]]);

impl Words<'_> {
    fn integers(&mut self, count: usize) -> Vec<u32> {
        let (first, rest) = self.0.split_at(count);
        self.0 = rest;
        first.iter().map(|&word| u32::from_le_bytes(word)).collect()
    }

    /// Floats of a size below `limit`.
    fn floats(&mut self, count: usize, limit: f32) -> Result<Vec<f32>, ParameterError> {
        let floats: Vec<f32> = self.integers(count).into_iter().map(f32::from_bits).collect();
        // A NaN is not below.
        let fit = floats.iter().all(|x| x.abs() < limit);
        fit.then_some(floats)
            .ok_or(ParameterError::Value { what: "a number that is not finite or too large" })
    }
}

impl Ivf {
    /// What training learnt.
    pub(crate) fn parameters(&self) -> Vec<u8> {
        let mut words: Vec<u32> = Vec::new();
        let floats = |words: &mut Vec<u32>, floats: &[f32]| words.extend(floats.iter().map(|x| x.to_bits()));
        floats(&mut words, self.centroids.origin());
        floats(&mut words, self.centroids.vectors());
        if let Some(book) = &self.book {
            words.extend(&book.bounds);
            floats(&mut words, book.prototypes.as_flattened());
            floats(&mut words, &[book.least, book.unit]);
        }
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Lists with what an earlier training learnt, and nothing in them yet.
    pub(crate) fn from_parameters(
        params: Params,
        kernels: Kernels,
        bytes: &[u8],
    ) -> Result<Ivf, ParameterError> {
        let Params { metric, dim, nlist, code, .. } = params;
        let (form, runs) = match code {
            ListCode::Rows { stride } => (Form::Rows { stride }, None),
            ListCode::Pq4 { runs } => (Form::Blocks { runs }, Some(runs)),
        };
        if dim == 0
            || nlist == 0
            || runs.is_some_and(|runs| runs == 0 || runs > dim.min(kernels.scan_pq4.bound()))
        {
            return Err(ParameterError::Value { what: "no lists, no dimensions, or runs of none" });
        }
        let book = runs.map_or(0, |runs| runs + 3 + K * dim);
        let expected = nlist.saturating_add(1).saturating_mul(dim).saturating_add(book).saturating_mul(4);
        if bytes.len() != expected {
            return Err(ParameterError::Length { got: bytes.len(), expected });
        }
        let mut words = Words(bytes.as_chunks::<4>().0);
        let origin = words.floats(dim, LARGE)?;
        let centroids = Centroids::new(metric, words.floats(nlist * dim, LARGE)?, origin, kernels)?;
        let book = match runs {
            None => None,
            Some(runs) => {
                let bounds = words.integers(runs + 1);
                if bounds[0] != 0 || bounds[runs] as usize != dim || bounds.windows(2).any(|w| w[0] >= w[1]) {
                    return Err(ParameterError::Value { what: "runs that do not divide the dimensions" });
                }
                let prototypes = words.floats(K * dim, 2.0 * LARGE)?.as_chunks::<K>().0.to_vec();
                // As large as squares.
                let biases = words.floats(2, f32::INFINITY)?;
                if biases[1] < 0.0 {
                    return Err(ParameterError::Value { what: "a negative unit of biases" });
                }
                Some(Arc::new(Codebook { metric, bounds, prototypes, least: biases[0], unit: biases[1] }))
            }
        };
        Ok(Ivf { kernels, centroids: Arc::new(centroids), book, lists: Lists::new(form, nlist) })
    }
}
