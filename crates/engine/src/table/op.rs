//! What a write is, and its record in the log.
//!
//! ```text
//! kind u8 (1 put, 2 delete, 3 load) | version u64 | id length u32, id
//! put: source length u32, source (JSON, without vectors) | vectors u16, each: field u16, length u32, its numbers
//! ```
//! Numbers are little-endian. Records are checked by the log; what is decoded is checked again all the same, since another
//! schema may have written it.

use crate::documents::{Mapping, Parsed};
use lanewise_index::{Dtype, OwnedVectors, Vectors};
use lanewise_storage::log::{AppendError, RECORD_BYTES_MAX};
use serde_json::{Map, Value};

/// A record that is no write of this table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the log holds a record that is no write of this table: {what}")]
pub struct RecordError {
    pub(super) what: String,
}

/// A write as it is replayed.
pub(super) enum Record {
    Put {
        id: String,
        version: u64,
        parsed: Parsed,
    },
    Delete {
        id: String,
        version: u64,
    },
    /// Documents were loaded, with the record's number: they are in a segment, or were not acknowledged.
    Load,
}

const PUT: u8 = 1;
const DELETE: u8 = 2;
const LOAD: u8 = 3;

/// Bytes of a write's record.
pub(super) fn bytes(id: &str, put: Option<&Parsed>) -> usize {
    let width = |vector: &OwnedVectors| if vector.as_vectors().dtype() == Dtype::F32 { 4 } else { 1 };
    let vector = |vector: &OwnedVectors| 6 + width(vector) * vector.as_vectors().elements();
    let vectors = |parsed: &Parsed| parsed.vectors.iter().flatten().map(vector).sum::<usize>();
    let put = put.map_or(0, |parsed| 6 + parsed.source.len() + vectors(parsed));
    13 + id.len() + put
}

/// Whether a write's record fits the log.
pub(super) fn check(id: &str, put: Option<&Parsed>) -> Result<(), AppendError> {
    let bytes = bytes(id, put);
    if bytes > RECORD_BYTES_MAX { Err(AppendError::TooLong { bytes }) } else { Ok(()) }
}

/// The record of a write; `None` deletes.
pub(super) fn encode(id: &str, version: u64, put: Option<&Parsed>) -> Vec<u8> {
    let mut record = Vec::with_capacity(bytes(id, put));
    record.push(if put.is_some() { PUT } else { DELETE });
    record.extend(version.to_le_bytes());
    piece(&mut record, id.as_bytes());
    let Some(parsed) = put else { return record };
    piece(&mut record, &parsed.source);
    let given =
        || (0u16..).zip(&parsed.vectors).filter_map(|(field, vector)| Some((field, vector.as_ref()?)));
    record.extend((given().count() as u16).to_le_bytes());
    for (field, vector) in given() {
        record.extend(field.to_le_bytes());
        match vector.as_vectors() {
            Vectors::F32(all) => {
                let bytes: Vec<u8> = all.iter().flat_map(|x| x.to_le_bytes()).collect();
                piece(&mut record, &bytes);
            }
            Vectors::I8(all) => piece(&mut record, &all.iter().map(|&x| x as u8).collect::<Vec<u8>>()),
            Vectors::U8(all) | Vectors::Bits(all) => piece(&mut record, all),
        }
    }
    debug_assert_eq!(record.len(), bytes(id, put));
    record
}

/// The record of a load.
pub(super) fn encode_load() -> Vec<u8> {
    let mut record = vec![LOAD];
    record.extend(0u64.to_le_bytes());
    piece(&mut record, &[]);
    record
}

fn piece(record: &mut Vec<u8>, bytes: &[u8]) {
    record.extend((bytes.len() as u32).to_le_bytes());
    record.extend(bytes);
}

/// Bytes that are read from the front.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn number<const N: usize>(&mut self) -> Option<u64> {
        let bytes = self.take(N)?;
        Some(bytes.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte)))
    }

    fn piece(&mut self) -> Option<&'a [u8]> {
        let bytes = self.number::<4>()? as usize;
        self.take(bytes)
    }
}

pub(super) fn decode(mapping: &Mapping, record: &[u8]) -> Result<Record, RecordError> {
    let fail = |what: &str| RecordError { what: what.to_owned() };
    let short = || fail("it is cut short");
    let mut rest = Rest(record);
    let kind = rest.number::<1>().ok_or_else(short)? as u8;
    let version = rest.number::<8>().ok_or_else(short)?;
    let id = std::str::from_utf8(rest.piece().ok_or_else(short)?).map_err(|_| fail("its id is not UTF-8"))?;
    let id = id.to_owned();
    let record = match kind {
        DELETE => Record::Delete { id, version },
        LOAD => Record::Load,
        PUT => {
            let source: Map<String, Value> = serde_json::from_slice(rest.piece().ok_or_else(short)?)
                .map_err(|error| fail(&format!("its document: {error}")))?;
            let mut beside = Vec::new();
            for _ in 0..rest.number::<2>().ok_or_else(short)? {
                let field = rest.number::<2>().ok_or_else(short)? as usize;
                let bytes = rest.piece().ok_or_else(short)?;
                let (name, params) =
                    mapping.schema().vectors().nth(field).ok_or_else(|| fail("a vector of no field"))?;
                let vector = match params.dtype.brought() {
                    Dtype::I8 => OwnedVectors::I8(bytes.iter().map(|&x| x as i8).collect()),
                    Dtype::U8 => OwnedVectors::U8(bytes.to_vec()),
                    Dtype::Bits => OwnedVectors::Bits(bytes.to_vec()),
                    _ => {
                        let (floats, rest) = bytes.as_chunks::<4>();
                        if !rest.is_empty() {
                            return Err(fail("a vector of no whole floats"));
                        }
                        OwnedVectors::F32(floats.iter().map(|x| f32::from_le_bytes(*x)).collect())
                    }
                };
                beside.push((name.to_owned(), vector));
            }
            let parsed =
                mapping.parse_again(&id, &source, beside).map_err(|error| fail(&error.to_string()))?;
            Record::Put { id, version, parsed }
        }
        _ => return Err(fail("it is of no known kind")),
    };
    if rest.0.is_empty() { Ok(record) } else { Err(fail("it is too long")) }
}
