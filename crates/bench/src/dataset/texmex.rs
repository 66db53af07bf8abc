//! `.fvecs`, `.bvecs`, `.ivecs`: each row is its dimension (little-endian `i32`) and then its elements.

use super::source::Source;
use super::{DIM_MAX, DatasetError, Elements, Matrix};

/// Reads all rows of elements of `W` bytes.
pub(super) fn read<const W: usize, T>(
    source: &mut Source,
    value: impl Fn([u8; W]) -> T,
    elements: impl FnOnce(Vec<T>) -> Elements,
) -> Result<Matrix, DatasetError> {
    if source.len() == 0 {
        return Err(source.malformed_here("empty: there must be at least one row"));
    }
    let columns = dimension(source)?;
    let record = 4 + (columns * W) as u64;
    // Rounded down: what remains is an error, but the first row that differs is the better place to name.
    let rows = source.len() / record;
    if rows == 0 {
        let what = format!(
            "dimension {columns} needs a row of {record} bytes, the file has {}: cut short, or of another format",
            source.len()
        );
        return Err(source.malformed(0, what));
    }
    let rows =
        usize::try_from(rows).map_err(|_| source.malformed(0, "more rows than this machine can address"))?;
    // Fits: the elements take less than the file's length, and `room` asks for memory fallibly.
    let mut all = source.room(rows.saturating_mul(columns))?;
    for row in 0..rows {
        if row > 0 {
            let start = source.len() - source.left();
            let other = dimension(source)?;
            if other != columns {
                let what =
                    format!("row {row} has dimension {other}, the first has {columns}: all must be equal");
                return Err(source.malformed(start, what));
            }
        }
        source.decode(columns, &mut all, |bytes| Ok(value(bytes)))?;
    }
    if source.left() > 0 {
        let what = format!(
            "{} bytes after the last whole row of {record} bytes: cut short, or of another format",
            source.left()
        );
        return Err(source.malformed_here(what));
    }
    Ok(Matrix { rows, columns, elements: elements(all), rounded: false })
}

fn dimension(source: &mut Source) -> Result<usize, DatasetError> {
    let at = source.len() - source.left();
    let mut bytes = [0; 4];
    source.fill(&mut bytes)?;
    let claimed = i32::from_le_bytes(bytes);
    match usize::try_from(claimed) {
        Ok(columns @ 1..=DIM_MAX) => Ok(columns),
        _ => {
            let what =
                format!("dimension {claimed} is not between 1 and {DIM_MAX}: damaged, or of another format");
            Err(source.malformed(at, what))
        }
    }
}
