//! `.npy`, versions 1.0 to 3.0: a magic number, a header that is a Python dictionary, the elements.
//!
//! Source: NumPy, `numpy/lib/format.py`. The header is read by a small parser for just the dictionary that NumPy
//! writes; nothing is evaluated.

use super::source::Source;
use super::{DIM_MAX, DatasetError, Elements, Matrix, Shape};
use std::cell::Cell;

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// NumPy itself writes some hundred bytes for plain arrays, and refuses more than 10,000.
const HEADER_MAX: usize = 10_000;

/// The header's three entries.
#[derive(Debug, PartialEq)]
struct Header {
    descr: String,
    fortran_order: bool,
    shape: Vec<usize>,
}

pub(super) fn read(source: &mut Source, matrix_shape: Shape) -> Result<Matrix, DatasetError> {
    let header = read_header(source)?;
    let (rows, columns) = matrix_shape(&header.shape)
        .map_err(|remedy| source.malformed(0, format!("shape {}: {remedy}", shown(&header.shape))))?;
    if header.fortran_order && columns > 1 {
        return Err(source.malformed(0, "in Fortran order: save numpy.ascontiguousarray(x) instead"));
    }
    if rows == 0 || columns == 0 {
        return Err(source.malformed(0, format!("shape {}: there is nothing in it", shown(&header.shape))));
    }
    if columns > DIM_MAX {
        return Err(source.malformed(0, format!("{columns} dimensions are more than {DIM_MAX}")));
    }
    let Some(width) = width(&header.descr) else {
        let what = format!("elements of type {:?}: {}", header.descr, remedy(&header.descr));
        return Err(source.malformed(0, what));
    };
    // By division, so that no claimed shape can overflow.
    let expected = (rows as u64).checked_mul(columns as u64).and_then(|count| count.checked_mul(width));
    if expected != Some(source.left()) {
        let what = format!(
            "shape {} of {width} bytes each needs {} bytes, {} are there: cut short, or grown",
            shown(&header.shape),
            expected.map_or("more than 2^64".to_owned(), |bytes| bytes.to_string()),
            source.left()
        );
        return Err(source.malformed_here(what));
    }
    let count = rows * columns;
    let rounded = Cell::new(false);
    let elements = match header.descr.as_str() {
        "<f4" => Elements::F32(all(source, count, |b| Ok(f32::from_le_bytes(b)))?),
        "<f2" => Elements::F32(all(source, count, |b| Ok(half(u16::from_le_bytes(b))))?),
        "<f8" => Elements::F32(all(source, count, |b| single(f64::from_le_bytes(b), &rounded))?),
        "|i1" => Elements::I8(all(source, count, |b| Ok(i8::from_le_bytes(b)))?),
        "|u1" => Elements::U8(all(source, count, |[b]| Ok(b))?),
        "|b1" => Elements::Bool(all(source, count, |[b]| {
            if b <= 1 { Ok(b) } else { Err(format!("{b} is no truth value: damaged")) }
        })?),
        "<i4" => Elements::Int(all(source, count, |b| Ok(i32::from_le_bytes(b).into()))?),
        "<u4" => Elements::Int(all(source, count, |b| Ok(u32::from_le_bytes(b).into()))?),
        "<i8" => Elements::Int(all(source, count, |b| Ok(i64::from_le_bytes(b)))?),
        "<u8" => Elements::Int(all(source, count, |b| {
            let id = u64::from_le_bytes(b);
            i64::try_from(id).map_err(|_| format!("{id} is more than an id can be (2^63 - 1)"))
        })?),
        other => unreachable!("`width` knows {other}"),
    };
    Ok(Matrix { rows, columns, elements, rounded: rounded.get() })
}

fn all<const W: usize, T>(
    source: &mut Source,
    count: usize,
    value: impl Fn([u8; W]) -> Result<T, String>,
) -> Result<Vec<T>, DatasetError> {
    let mut all = source.room(count)?;
    source.decode(count, &mut all, value)?;
    Ok(all)
}

/// Bytes of an element of the types that are read.
fn width(descr: &str) -> Option<u64> {
    match descr {
        "|i1" | "|u1" | "|b1" => Some(1),
        "<f2" => Some(2),
        "<f4" | "<i4" | "<u4" => Some(4),
        "<f8" | "<i8" | "<u8" => Some(8),
        _ => None,
    }
}

fn remedy(descr: &str) -> &'static str {
    if descr.starts_with('>') {
        "big-endian; save x.astype(x.dtype.newbyteorder('<')) instead"
    } else {
        "save x.astype('float32'), or int8, uint8, bool, float16, float64; int32 or int64 for ids"
    }
}

/// A shape as Python writes it.
fn shown(shape: &[usize]) -> String {
    match shape {
        [one] => format!("({one},)"),
        _ => format!("({})", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}

fn read_header(source: &mut Source) -> Result<Header, DatasetError> {
    let mut magic = [0; 8];
    if source.len() < magic.len() as u64 {
        return Err(source.malformed(0, "too short to be a .npy file"));
    }
    source.fill(&mut magic)?;
    if magic[..6] != *MAGIC {
        return Err(source.malformed(0, "not a .npy file: it does not start with \\x93NUMPY"));
    }
    let len = match (magic[6], magic[7]) {
        (1, 0) => {
            let mut len = [0; 2];
            source.fill(&mut len)?;
            u16::from_le_bytes(len).into()
        }
        (2 | 3, 0) => {
            let mut len = [0; 4];
            source.fill(&mut len)?;
            u32::from_le_bytes(len)
        }
        (major, minor) => {
            return Err(
                source.malformed(6, format!("version {major}.{minor} of the format; 1.0 to 3.0 are known"))
            );
        }
    };
    let start = source.len() - source.left();
    let len = len as usize;
    if len > HEADER_MAX {
        return Err(
            source.malformed(8, format!("a header of {len} bytes is longer than {HEADER_MAX}: damaged"))
        );
    }
    let mut text = vec![0; len];
    source.fill(&mut text)?;
    parse(&text).map_err(|(at, what)| source.malformed(start + at as u64, format!("in the header: {what}")))
}

/// Parses the header, or says where and what is wrong.
fn parse(text: &[u8]) -> Result<Header, (usize, String)> {
    let mut p = Parser { text, at: 0 };
    let (mut descr, mut fortran_order, mut shape) = (None, None, None);
    p.expect(b'{')?;
    while !p.accept(b'}') {
        let key = p.string()?;
        p.expect(b':')?;
        match key.as_str() {
            "descr" if p.peek() == Some(b'[') => {
                return Err(p.error("structured elements: save one plain array instead"));
            }
            "descr" => descr = Some(p.string()?),
            "fortran_order" => fortran_order = Some(p.truth()?),
            "shape" => shape = Some(p.shape()?),
            _ => return Err(p.error(format!("unknown entry {key:?}"))),
        }
        if !p.accept(b',') {
            p.expect(b'}')?;
            break;
        }
    }
    if p.peek().is_some() {
        return Err(p.error("something follows the dictionary"));
    }
    match (descr, fortran_order, shape) {
        (Some(descr), Some(fortran_order), Some(shape)) => Ok(Header { descr, fortran_order, shape }),
        _ => Err(p.error("descr, fortran_order and shape must all be there")),
    }
}

/// The place in the header. Every method skips white space first.
struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn error(&self, what: impl Into<String>) -> (usize, String) {
        (self.at, what.into())
    }

    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn accept(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, byte: u8) -> Result<(), (usize, String)> {
        if self.accept(byte) { Ok(()) } else { Err(self.error(format!("expected {:?}", byte as char))) }
    }

    /// The bytes from here on that `belongs` holds for.
    fn run(&mut self, belongs: fn(&u8) -> bool) -> &str {
        let rest = &self.text[self.at..];
        let len = rest.iter().position(|b| !belongs(b)).unwrap_or(rest.len());
        self.at += len;
        // What `belongs` lets through is ASCII.
        std::str::from_utf8(&rest[..len]).unwrap_or_default()
    }

    fn string(&mut self) -> Result<String, (usize, String)> {
        let quote = self
            .peek()
            .filter(|b| matches!(b, b'\'' | b'"'))
            .ok_or_else(|| self.error("expected a string"))?;
        self.at += 1;
        let text = self.run(|b| b.is_ascii_graphic() && !matches!(b, b'\'' | b'"' | b'\\')).to_owned();
        self.expect(quote)?;
        Ok(text)
    }

    fn truth(&mut self) -> Result<bool, (usize, String)> {
        self.peek();
        match self.run(u8::is_ascii_alphabetic) {
            "True" => Ok(true),
            "False" => Ok(false),
            _ => Err(self.error("expected True or False")),
        }
    }

    fn shape(&mut self) -> Result<Vec<usize>, (usize, String)> {
        let mut shape = Vec::new();
        self.expect(b'(')?;
        while !self.accept(b')') {
            self.peek();
            let number = self.run(u8::is_ascii_digit).parse();
            shape.push(number.map_err(|_| self.error("expected a length that this machine can address"))?);
            if !self.accept(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Ok(shape)
    }
}

/// A float64 as float32, noting whether it was rounded.
fn single(value: f64, rounded: &Cell<bool>) -> Result<f32, String> {
    let single = value as f32;
    if value.is_finite() && !single.is_finite() {
        return Err(format!("{value:e} is more than float32 holds: scale the vectors down"));
    }
    // NaN differs from itself; it is refused later, by its place.
    if f64::from(single) != value && !value.is_nan() {
        rounded.set(true);
    }
    Ok(single)
}

/// An IEEE 754 binary16 as the float32 of the same value.
fn half(bits: u16) -> f32 {
    let sign = u32::from(bits >> 15) << 31;
    let (exponent, fraction) = (u32::from(bits >> 10) & 31, u32::from(bits) & 1023);
    match exponent {
        // Zeros and subnormals count in units of 2^-24.
        0 => f32::from_bits((fraction as f32 * (1.0 / 16_777_216.0)).to_bits() | sign),
        31 => f32::from_bits(sign | 0x7f80_0000 | fraction << 13),
        // The exponents' biases are 15 and 127.
        _ => f32::from_bits(sign | (exponent + 112) << 23 | fraction << 13),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_floats_have_their_values() {
        let known = [
            (0x0000, 0.0),
            (0x8000, -0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0001, 2f32.powi(-24)),
            (0x83ff, -1023.0 * 2f32.powi(-24)),
            (0x0400, 2f32.powi(-14)),
            (0x3555, 0.333_251_95),
            (0x7c00, f32::INFINITY),
            (0xfc00, f32::NEG_INFINITY),
        ];
        for (bits, value) in known {
            assert_eq!(half(bits).to_bits(), value.to_bits(), "{bits:#06x}");
        }
        assert!(half(0x7e01).is_nan());
    }

    #[test]
    fn the_header_may_be_written_in_any_order_and_spacing() {
        let expected = Header { descr: "<f4".into(), fortran_order: false, shape: vec![2, 3] };
        for text in [
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n",
            "{\"shape\":(2,3),\"fortran_order\":False,\"descr\":\"<f4\"}",
        ] {
            assert_eq!(parse(text.as_bytes()).as_ref(), Ok(&expected), "{text}");
        }
    }

    #[test]
    fn a_wrong_header_is_refused_at_its_place() {
        for (text, at, what) in [
            ("", 0, "expected '{'"),
            ("{'descr': [('a', '<f4')]}", 10, "structured"),
            ("{'descr': '<f4'} x", 17, "follows"),
            ("{'shape': (-1, 2)}", 11, "expected a length"),
            ("{'shape': (99999999999999999999,)}", 31, "expected a length"),
            ("{'fortran_order': None}", 22, "True or False"),
            ("{'descr': '<f4', 'shape': (1,)}", 31, "must all be there"),
            ("{'descr': '<f4", 14, "expected '\\''"),
            ("{'other': 1}", 9, "unknown entry"),
        ] {
            let (place, message) = parse(text.as_bytes()).expect_err(text);
            assert_eq!(place, at, "{text}: {message}");
            assert!(message.contains(what), "{text}: {message}");
        }
    }
}
