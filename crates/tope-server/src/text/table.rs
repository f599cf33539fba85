//! Columns of text that stand under each other.

use std::io::{self, Write};

/// A table: a letter a column, `l` for left and `r` for right; leading spaces indent it.
#[derive(Debug)]
pub(crate) struct Table {
    indent: usize,
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

#[derive(Debug)]
struct Column {
    right: bool,
    width: usize,
}

impl Table {
    /// A table of such columns: `"  lrr"`.
    pub(crate) fn new(columns: &str) -> Self {
        let letters = columns.trim_start();
        let columns_of = letters.chars().map(|letter| Column { right: letter == 'r', width: 0 }).collect();
        Self { indent: columns.len() - letters.len(), columns: columns_of, rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl Into<Vec<String>>) {
        let cells = cells.into();
        for (column, cell) in self.columns.iter_mut().zip(&cells) {
            column.width = column.width.max(cell.chars().count());
        }
        self.rows.push(cells);
    }

    /// Whether there are no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes it, without spaces at the ends of lines.
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        for row in &self.rows {
            let mut line = " ".repeat(self.indent);
            for (i, (column, cell)) in self.columns.iter().zip(row).enumerate() {
                let gap = if i == 0 { "" } else { "  " };
                let pad = " ".repeat(column.width - cell.chars().count());
                let (before, after) = if column.right { (pad.as_str(), "") } else { ("", pad.as_str()) };
                line.extend([gap, before, cell, after]);
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
