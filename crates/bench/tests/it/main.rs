//! Black-box tests: what is read from files, what becomes of it, and what is measured.

mod atomics;
mod cachegrind;
mod converting;
mod files;
mod hostile;
mod tables;
mod truth;

use lanewise_bench::dataset::{self, DatasetError, Matrix};
use std::path::PathBuf;

/// A `.npy` file with a header of this text.
fn npy(header: &str, elements: &[u8]) -> Vec<u8> {
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(elements);
    file
}

/// The header that NumPy writes.
fn header(descr: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}")
}

/// Rows of the TEXMEX formats.
fn texmex(rows: &[(i32, &[u8])]) -> Vec<u8> {
    rows.iter()
        .flat_map(|(dim, elements)| dim.to_le_bytes().into_iter().chain(elements.iter().copied()))
        .collect()
}

/// A file in a folder of its own, which goes with it.
struct File {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn file(name: &str, contents: &[u8]) -> File {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, contents).unwrap();
    File { _folder: folder, path }
}

fn read(name: &str, contents: &[u8]) -> Result<Matrix, DatasetError> {
    dataset::read(&file(name, contents).path)
}
