//! The trace file: `docs/formats/trace.md` gives every byte.
//!
//! It is written in one pass, query by query, and read from bytes that nobody vouches for: nothing is allocated by a count
//! that has not been met by as many bytes, and every number is checked against what it refers to.

use super::{Access, Builder, Record};
use crc_fast::{CrcAlgorithm, Digest, checksum};
use std::io::{self, Write};

const MAGIC: [u8; 8] = *b"LANETRAC";
const VERSION: u32 = 1;
const SYNTHETIC: u32 = 1;
/// Most bytes of a text.
const TEXT: usize = 1024;
/// Most bytes of all tables together: addresses are added up.
const BYTES: u64 = 1 << 50;
/// Longest time of a task: an hour.
const COMPUTE_NS: u64 = 3_600_000_000_000;

const END: u8 = 0;
const TABLE: u8 = 1;
const QUERY: u8 = 2;

/// Why bytes are not a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum TraceError {
    #[error("not a trace: it does not start with {:?}", "LANETRAC")]
    Magic,
    #[error("version {found} of the trace format, this program reads {VERSION}: use a newer Lanewise")]
    Version { found: u32 },
    #[error("damaged: it does not have its checksum; record it anew")]
    Checksum,
    #[error("cut short or made to mislead: {what} at byte {at}; record it anew")]
    Invalid { what: &'static str, at: usize },
    #[error("it touches more memory than can be simulated (2²⁶ pieces): record fewer queries")]
    Large,
}

/// Writes a trace file. [`TraceWriter::finish`] must be called; what was dropped before is no trace.
pub struct TraceWriter<W: Write> {
    out: W,
    digest: Digest,
    /// The query that tasks are added to: its beginning, its tasks, and how many.
    head: Vec<u8>,
    tasks: Vec<u8>,
    count: u64,
}

impl<W: Write> TraceWriter<W> {
    /// Begins a trace of what `source` says (cut to 1024 bytes), made up or not.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(out: W, source: &str, synthetic: bool) -> io::Result<Self> {
        let digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
        let mut writer = TraceWriter { out, digest, head: Vec::new(), tasks: Vec::new(), count: 0 };
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((if synthetic { SYNTHETIC } else { 0 }).to_le_bytes());
        text(&mut bytes, source);
        writer.put(&bytes)?;
        Ok(writer)
    }

    /// Ends the file; what it was written to.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush_query()?;
        self.put(&[END])?;
        let sum = self.digest.finalize() as u32;
        self.out.write_all(&sum.to_le_bytes())?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.digest.update(bytes);
        self.out.write_all(bytes)
    }

    fn flush_query(&mut self) -> io::Result<()> {
        if self.head.is_empty() {
            return Ok(());
        }
        let (mut head, mut tasks) = (std::mem::take(&mut self.head), std::mem::take(&mut self.tasks));
        number(&mut head, self.count);
        self.put(&head)?;
        self.put(&tasks)?;
        head.clear();
        tasks.clear();
        // Their memory serves the next query.
        (self.head, self.tasks, self.count) = (head, tasks, 0);
        Ok(())
    }
}

impl<W: Write> Record for TraceWriter<W> {
    fn table(&mut self, name: &str, access: Access, bytes: u64) -> io::Result<()> {
        self.flush_query()?;
        let mut record = vec![TABLE];
        text(&mut record, name);
        record.push(match access {
            Access::Gathered => 0,
            Access::Streamed => 1,
        });
        number(&mut record, bytes);
        self.put(&record)
    }

    fn query(&mut self, table: u32, leads: bool) -> io::Result<()> {
        self.flush_query()?;
        self.head.push(QUERY);
        number(&mut self.head, table.into());
        self.head.push(leads.into());
        Ok(())
    }

    fn task(&mut self, list: Option<u32>, compute_ns: u64, touched: &[(u64, u32)]) -> io::Result<()> {
        assert!(!self.head.is_empty(), "a task belongs to a query");
        self.count += 1;
        number(&mut self.tasks, list.map_or(0, |list| u64::from(list) + 1));
        number(&mut self.tasks, compute_ns);
        number(&mut self.tasks, touched.len() as u64);
        let mut last = 0;
        for &(offset, length) in touched {
            let step = offset.wrapping_sub(last) as i64;
            // Small steps either way are small numbers.
            number(&mut self.tasks, ((step << 1) ^ (step >> 63)) as u64);
            number(&mut self.tasks, length.into());
            last = offset + u64::from(length);
        }
        Ok(())
    }
}

/// Seven bits a byte, the lowest first; the highest bit says that more follow.
fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn text(out: &mut Vec<u8>, text: &str) {
    let text = &text[..text.floor_char_boundary(TEXT)];
    number(out, text.len() as u64);
    out.extend(text.as_bytes());
}

/// Reads trace files into one trace; tables are numbered on from file to file.
///
/// # Errors
/// If the bytes are not what [`TraceWriter`] writes; the number of the file in question.
pub fn read<'a>(files: impl IntoIterator<Item = &'a [u8]>) -> Result<super::Trace, (usize, TraceError)> {
    let (mut builder, mut count) = (Builder::default(), 0);
    for (i, bytes) in files.into_iter().enumerate() {
        Reader::open(bytes).and_then(|mut reader| reader.read(&mut builder)).map_err(|error| (i, error))?;
        count += 1;
    }
    builder.finish().ok_or((usize::max(count, 1) - 1, TraceError::Large))
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn open(bytes: &'a [u8]) -> Result<Self, TraceError> {
        if !bytes.starts_with(&MAGIC) {
            return Err(TraceError::Magic);
        }
        let mut reader = Reader { bytes, at: MAGIC.len() };
        let version = reader.u32()?;
        if version != VERSION {
            return Err(TraceError::Version { found: version });
        }
        let (body, sum) = bytes.split_last_chunk::<4>().ok_or(TraceError::Checksum)?;
        if checksum(CrcAlgorithm::Crc32Iscsi, body) as u32 != u32::from_le_bytes(*sum) {
            return Err(TraceError::Checksum);
        }
        reader.bytes = body;
        Ok(reader)
    }

    fn read(&mut self, builder: &mut Builder) -> Result<(), TraceError> {
        let flags = self.u32()?;
        if flags & !SYNTHETIC != 0 {
            return self.invalid("unknown flags");
        }
        let source = self.text()?;
        let trace = &mut builder.trace;
        trace.synthetic |= flags & SYNTHETIC != 0;
        if !trace.source.is_empty() {
            trace.source.push_str("; ");
        }
        trace.source.push_str(source);
        let first = trace.tables.len();
        let mut touched = Vec::new();
        loop {
            match self.byte()? {
                END if self.at == self.bytes.len() => return Ok(()),
                TABLE => self.table(builder)?,
                QUERY => self.query(builder, first, &mut touched)?,
                _ => return self.invalid("no record"),
            }
        }
    }

    fn table(&mut self, builder: &mut Builder) -> Result<(), TraceError> {
        let name = self.text()?;
        let access = match self.byte()? {
            0 => Access::Gathered,
            1 => Access::Streamed,
            _ => return self.invalid("an unknown kind of table"),
        };
        let bytes = self.number()?;
        if bytes > BYTES - builder.bytes {
            return self.invalid("a table too large");
        }
        builder.table(name, access, bytes).expect("memory takes it");
        Ok(())
    }

    fn query(
        &mut self,
        builder: &mut Builder,
        first: usize,
        touched: &mut Vec<(u64, u32)>,
    ) -> Result<(), TraceError> {
        let table = self.number()?;
        if table >= (builder.trace.tables.len() - first) as u64 {
            return self.invalid("a query of no table");
        }
        let table = first + table as usize;
        let bytes = builder.trace.tables[table].bytes;
        let leads = match self.byte()? {
            0 => false,
            1 => true,
            _ => return self.invalid("neither yes nor no"),
        };
        let count = self.number()?;
        if count == 0 {
            return self.invalid("a query without tasks");
        }
        builder.query(table as u32, leads).expect("memory takes it");
        for _ in 0..count {
            let list = self.number()?;
            if list > u64::from(u32::MAX) {
                return self.invalid("a list's number too large");
            }
            let compute_ns = self.number()?;
            if compute_ns > COMPUTE_NS {
                return self.invalid("a time too long");
            }
            touched.clear();
            let mut last = 0u64;
            for _ in 0..self.number()? {
                let step = self.number()?;
                let step = (step >> 1) as i64 ^ -((step & 1) as i64);
                let length = self.number()?;
                let offset = last.checked_add_signed(step);
                let end = offset.and_then(|offset| offset.checked_add(length));
                let (Some(offset), Some(end), Ok(length)) = (offset, end, u32::try_from(length)) else {
                    return self.invalid("a range out of bounds");
                };
                if end > bytes {
                    return self.invalid("a range beyond its table");
                }
                touched.push((offset, length));
                last = end;
            }
            builder
                .task(list.checked_sub(1).map(|list| list as u32), compute_ns, touched)
                .expect("memory takes it");
        }
        Ok(())
    }

    fn invalid<T>(&self, what: &'static str) -> Result<T, TraceError> {
        Err(TraceError::Invalid { what, at: self.at })
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], TraceError> {
        match self.bytes[self.at..].get(..count) {
            Some(taken) => {
                self.at += count;
                Ok(taken)
            }
            None => self.invalid("no more bytes"),
        }
    }

    fn byte(&mut self) -> Result<u8, TraceError> {
        Ok(self.take(1)?[0])
    }

    fn u32(&mut self) -> Result<u32, TraceError> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().expect("four bytes")))
    }

    fn number(&mut self) -> Result<u64, TraceError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if bits << shift >> shift != bits {
                return self.invalid("a number too large");
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        self.invalid("a number too long")
    }

    fn text(&mut self) -> Result<&'a str, TraceError> {
        let length = self.number()?;
        if length > TEXT as u64 {
            return self.invalid("a text too long");
        }
        let bytes = self.take(length as usize)?;
        std::str::from_utf8(bytes).or_else(|_| self.invalid("a text that is not UTF-8"))
    }
}
