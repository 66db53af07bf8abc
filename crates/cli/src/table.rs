//! Markdown tables with aligned columns, which read well as plain text too.

use std::io::{self, Write};

/// Writes a table; numbers go to the right, the first column to the left.
pub(crate) fn write(out: &mut dyn Write, head: &[String], rows: &[Vec<String>]) -> io::Result<()> {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| &row[column]).chain([&head[column]]);
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0).max(3)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut line = |cells: &[String]| {
        for (column, (cell, &width)) in cells.iter().zip(&widths).enumerate() {
            match column {
                0 => write!(out, "| {cell:<width$} |")?,
                _ => write!(out, " {cell:>width$} |")?,
            }
        }
        writeln!(out)
    };
    line(head)?;
    let rule = |(column, &width): (usize, &usize)| match column {
        0 => "-".repeat(width),
        _ => "-".repeat(width - 1) + ":",
    };
    line(&widths.iter().enumerate().map(rule).collect::<Vec<_>>())?;
    rows.iter().try_for_each(|row| line(row))
}
