//! Writes vector files: whole or not at all, through a temporary file beside the target.

use super::{DatasetError, Elements, Format, Matrix};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// Writes a matrix as the file `path`; the name's end says in which format. An existing file is replaced.
///
/// # Errors
/// If the format has no such elements (`.fvecs` is for floats, `.bvecs` for unsigned bytes, `.ivecs` for integers of
/// 32 bits; `.npy` takes all), or what the system says; then the target is as it was.
///
/// # Panics
/// If the matrix has not `rows * columns` elements.
pub fn write(path: &Path, matrix: &Matrix) -> Result<(), DatasetError> {
    let format = Format::of(path)?;
    let count = match &matrix.elements {
        Elements::F32(x) => x.len(),
        Elements::I8(x) => x.len(),
        Elements::U8(x) | Elements::Bool(x) => x.len(),
        Elements::Int(x) => x.len(),
    };
    assert_eq!(count, matrix.rows * matrix.columns, "a matrix has rows * columns elements");
    let wrong = |what: String| DatasetError::Use { path: path.to_owned(), what };
    match (format, &matrix.elements) {
        (Format::Npy, _) | (Format::Fvecs, Elements::F32(_)) | (Format::Bvecs, Elements::U8(_)) => {}
        (Format::Ivecs, Elements::Int(x)) => {
            if let Some(id) = x.iter().find(|&&id| i32::try_from(id).is_err()) {
                return Err(wrong(format!("id {id} does not fit the 32 bits of .ivecs: write .npy instead")));
            }
        }
        _ => return Err(wrong("the format has no such elements: write .npy instead".to_owned())),
    }
    let fail = |error| DatasetError::Io { path: path.to_owned(), error };
    whole(path, |out| match format {
        Format::Npy => npy(matrix, out),
        Format::Fvecs | Format::Bvecs | Format::Ivecs => texmex(matrix, out),
    })
    .map_err(fail)
}

/// The file `path` with what `write` writes, or, if anything fails, as it was.
///
/// # Errors
/// What `write` or the system says.
pub fn whole<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<NamedTempFile>) -> Result<(), E>,
) -> Result<(), E> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut temporary = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // As any new file: what the process's umask leaves. A temporary file is its owner's alone by default.
        temporary.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let temporary = temporary.prefix(".lanewise-").suffix(".tmp").tempfile_in(folder)?;
    let mut out = BufWriter::new(temporary);
    write(&mut out)?;
    let temporary = out.into_inner().map_err(|e| e.into_error())?;
    temporary.as_file().sync_all()?;
    temporary.persist(path).map_err(|e| e.error)?;
    Ok(())
}

/// Version 1.0, as NumPy itself would write it: the elements start at a multiple of 64.
fn npy(matrix: &Matrix, out: &mut impl Write) -> io::Result<()> {
    let descr = match matrix.elements {
        Elements::F32(_) => "<f4",
        Elements::I8(_) => "|i1",
        Elements::U8(_) => "|u1",
        Elements::Bool(_) => "|b1",
        Elements::Int(_) => "<i8",
    };
    let (rows, columns) = (matrix.rows, matrix.columns);
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    let len = (10 + header.len() + 1).next_multiple_of(64) - 10;
    header.push_str(&" ".repeat(len - header.len() - 1));
    header.push('\n');
    out.write_all(b"\x93NUMPY\x01\x00")?;
    // Two numbers of at most 20 digits each: far below what 16 bits count.
    out.write_all(&(len as u16).to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    match &matrix.elements {
        Elements::F32(x) => x.iter().try_for_each(|e| out.write_all(&e.to_le_bytes())),
        Elements::I8(x) => x.iter().try_for_each(|e| out.write_all(&e.to_le_bytes())),
        Elements::U8(x) | Elements::Bool(x) => out.write_all(x),
        Elements::Int(x) => x.iter().try_for_each(|e| out.write_all(&e.to_le_bytes())),
    }
}

fn texmex(matrix: &Matrix, out: &mut impl Write) -> io::Result<()> {
    let Ok(dim) = i32::try_from(matrix.columns) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "more columns than the format can say"));
    };
    for row in 0..matrix.rows {
        let part = row * matrix.columns..(row + 1) * matrix.columns;
        out.write_all(&dim.to_le_bytes())?;
        match &matrix.elements {
            Elements::F32(x) => x[part].iter().try_for_each(|e| out.write_all(&e.to_le_bytes()))?,
            // The caller checked that they fit.
            Elements::Int(x) => x[part].iter().try_for_each(|&e| out.write_all(&(e as i32).to_le_bytes()))?,
            Elements::U8(x) | Elements::Bool(x) => out.write_all(&x[part])?,
            Elements::I8(x) => x[part].iter().try_for_each(|e| out.write_all(&e.to_le_bytes()))?,
        }
    }
    Ok(())
}
