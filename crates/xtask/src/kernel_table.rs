//! The tables of `docs/kernels.md`, made from the kernel list in C: which isa serves which kernel, what each variant
//! needs of the CPU, and the levels that `LANEWISE_ISA` takes.

use std::fs;
use std::path::Path;

use crate::codegen::splice;
use crate::finding::Finding;
use crate::x_macro::{List, Row, lists};

/// The document that holds the tables.
pub(crate) const DOCUMENT: &str = "docs/kernels.md";
const LIST: &str = "crates/kernels/c/list.h";

/// The document with its tables made anew. Fails where a file cannot be read or the list contradicts itself.
pub(crate) fn document(root: &Path) -> Result<String, Finding> {
    let read = |path: &str| {
        fs::read_to_string(root.join(path))
            .map_err(|e| Finding::new(path, 1, format!("cannot be read ({e})")))
    };
    let list = KernelList::read(&read(LIST)?)?;
    let mut text = read(DOCUMENT)?;
    for (section, table) in
        [("coverage", list.coverage()), ("variants", list.variants()), ("levels", list.levels())]
    {
        text = splice(DOCUMENT, &text, section, &table)?;
    }
    Ok(text)
}

#[derive(Debug)]
struct Kernel {
    op: String,
    kind: String,
    element: String,
    result: String,
    bound: String,
}

#[derive(Debug)]
struct Variant {
    op: String,
    kind: String,
    isa: String,
    /// CPU features by the name people know.
    needs: Vec<String>,
}

#[derive(Debug)]
struct Level {
    name: String,
    features: Vec<String>,
}

#[derive(Debug)]
struct KernelList {
    kernels: Vec<Kernel>,
    variants: Vec<Variant>,
    levels: Vec<Level>,
}

impl KernelList {
    fn read(text: &str) -> Result<Self, Finding> {
        let lists = lists(LIST, text)?;
        let mut features = Vec::new();
        for row in rows(&lists, "LW_FEATURES") {
            let [symbol, name, _bit] = columns(row)?;
            features.push((symbol, name.trim_matches('"')));
        }
        let mut kernels: Vec<Kernel> = Vec::new();
        for row in rows(&lists, "LW_KERNELS") {
            let [op, kind, element, result, bound] = columns(row)?.map(String::from);
            if kernels.iter().any(|k| k.op == op && k.kind == kind) {
                return Err(Finding::new(LIST, row.line, format!("kernel {op} {kind} is listed twice")));
            }
            kernels.push(Kernel { op, kind, element, result, bound });
        }
        let mut variants: Vec<Variant> = Vec::new();
        for row in rows(&lists, "LW_VARIANTS_") {
            let [op, kind, isa, needs] = columns(row)?;
            if !kernels.iter().any(|k| k.op == op && k.kind == kind) {
                let text = format!("{op} {kind} is no kernel: add it to LW_KERNELS");
                return Err(Finding::new(LIST, row.line, text));
            }
            if variants.iter().any(|v| v.op == op && v.kind == kind && v.isa == isa) {
                return Err(Finding::new(
                    LIST,
                    row.line,
                    format!("variant {op} {kind} {isa} is listed twice"),
                ));
            }
            let needs = named(needs, &features, row)?;
            variants.push(Variant { op: op.into(), kind: kind.into(), isa: isa.into(), needs });
        }
        for Kernel { op, kind, .. } in &kernels {
            if !variants.iter().any(|v| v.op == *op && v.kind == *kind && v.isa == "scalar") {
                return Err(Finding::new(
                    LIST,
                    1,
                    format!("{op} {kind} has no scalar variant: write it first"),
                ));
            }
        }
        let mut levels = Vec::new();
        for row in rows(&lists, "LW_LEVELS_") {
            let [name, bits] = columns(row)?;
            levels.push(Level { name: name.into(), features: named(bits, &features, row)? });
        }
        if kernels.is_empty() || levels.is_empty() {
            return Err(Finding::new(LIST, 1, "has no LW_KERNELS or no LW_LEVELS_ list: see its heading"));
        }
        Ok(Self { kernels, variants, levels })
    }

    fn coverage(&self) -> String {
        let mut isas: Vec<&str> = Vec::new();
        for variant in &self.variants {
            if !isas.contains(&variant.isa.as_str()) {
                isas.push(&variant.isa);
            }
        }
        let heads =
            ["kernel", "element", "result", "exact up to (elements)"].into_iter().chain(isas.iter().copied());
        let rows = self.kernels.iter().map(|kernel| {
            let bound = if kernel.bound == "LW_ANY" { "–" } else { &kernel.bound };
            let mut cells = vec![
                format!("`{}` {}", kernel.op, kernel.kind),
                format!("`{}`", kernel.element),
                format!("`{}`", kernel.result),
                bound.to_string(),
            ];
            cells.extend(isas.iter().map(|isa| {
                let has =
                    self.variants.iter().any(|v| v.op == kernel.op && v.kind == kernel.kind && v.isa == *isa);
                if has { "✓".to_string() } else { String::new() }
            }));
            cells
        });
        table(heads, rows)
    }

    fn variants(&self) -> String {
        let rows = self.variants.iter().filter(|v| v.isa != "scalar");
        let rows = rows.map(|v| vec![format!("`lw_{}_{}_{}`", v.op, v.kind, v.isa), v.needs.join(", ")]);
        table(["variant", "needs"], rows)
    }

    fn levels(&self) -> String {
        let rows = self.levels.iter();
        table(["level", "features"], rows.map(|l| vec![format!("`{}`", l.name), l.features.join(", ")]))
    }
}

/// The rows of every list whose name starts so.
fn rows<'a>(lists: &'a [List], name: &str) -> impl Iterator<Item = &'a Row> {
    lists.iter().filter(move |list| list.name.starts_with(name)).flat_map(|list| &list.rows)
}

fn columns<const N: usize>(row: &Row) -> Result<[&str; N], Finding> {
    let columns: Vec<&str> = row.arguments.iter().map(String::as_str).collect();
    columns.try_into().map_err(|columns: Vec<&str>| {
        Finding::new(LIST, row.line, format!("{} columns, not {N}: see the heading", columns.len()))
    })
}

/// `A | B` as the features' names; `0` is none.
fn named(bits: &str, features: &[(&str, &str)], row: &Row) -> Result<Vec<String>, Finding> {
    if bits == "0" {
        return Ok(Vec::new());
    }
    let name = |symbol: &str| {
        let found = features.iter().find(|(known, _)| *known == symbol).map(|(_, name)| (*name).to_string());
        found.ok_or_else(|| Finding::new(LIST, row.line, format!("{symbol} is not in LW_FEATURES: add it")))
    };
    bits.split('|').map(|symbol| name(symbol.trim())).collect()
}

fn table<'a>(heads: impl IntoIterator<Item = &'a str>, rows: impl Iterator<Item = Vec<String>>) -> String {
    let heads: Vec<&str> = heads.into_iter().collect();
    let mut text = format!("| {} |\n|{}\n", heads.join(" | "), "---|".repeat(heads.len()));
    for row in rows {
        text.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TINY: &str = "#define LW_KERNELS(X) X(dot, f32, float, float, LW_ANY) X(dot, i8, int8_t, int32_t, 9)\n\
        #define LW_VARIANTS_ANY(X) X(dot, f32, scalar, 0) X(dot, i8, scalar, 0)\n\
        #define LW_VARIANTS_X86(X) \\\n    X(dot, f32, avx2, LW_AVX2 | LW_FMA)\n\
        #define LW_LEVELS_ANY(X) X(scalar, 0)\n#define LW_LEVELS_X86(X) X(avx2, LW_AVX2 | LW_FMA)\n\
        #define LW_FEATURES(X) X(LW_AVX2, \"avx2\", 0) X(LW_FMA, \"fma\", 1)\n";
    const PAGE: &str = "# Kernels\n<!-- generated: coverage -->\n<!-- end -->\nby hand\n\
        <!-- generated: variants -->\n<!-- end -->\n<!-- generated: levels -->\n<!-- end -->\n";

    fn tree(list: &str, page: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [(LIST, list), (DOCUMENT, page)] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn the_tables_hold_what_the_list_says() {
        let text = document(tree(TINY, PAGE).path()).unwrap();
        let expected = "# Kernels\n<!-- generated: coverage -->\n\
            | kernel | element | result | exact up to (elements) | scalar | avx2 |\n|---|---|---|---|---|---|\n\
            | `dot` f32 | `float` | `float` | – | ✓ | ✓ |\n| `dot` i8 | `int8_t` | `int32_t` | 9 | ✓ |  |\n\
            <!-- end -->\nby hand\n<!-- generated: variants -->\n| variant | needs |\n|---|---|\n\
            | `lw_dot_f32_avx2` | avx2, fma |\n<!-- end -->\n<!-- generated: levels -->\n\
            | level | features |\n|---|---|\n| `scalar` |  |\n| `avx2` | avx2, fma |\n<!-- end -->\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn codegen_writes_a_stale_document_once() {
        let folder = tree(TINY, PAGE);
        let stale = crate::codegen::check(folder.path()).unwrap();
        assert_eq!(stale.len(), 1, "{stale:?}");
        assert!(stale[0].to_string().starts_with("docs/kernels.md:3: differs"), "{stale:?}");
        assert_eq!(crate::codegen::write(folder.path()).unwrap(), [DOCUMENT]);
        assert_eq!(crate::codegen::check(folder.path()).unwrap(), []);
        assert!(crate::codegen::write(folder.path()).unwrap().is_empty());
    }

    #[test]
    fn a_list_that_contradicts_itself_is_found_at_its_line() {
        let broken = |from: &str, to: &str| {
            assert!(TINY.contains(from));
            document(tree(&TINY.replace(from, to), PAGE).path()).unwrap_err().to_string()
        };
        let at = |line: usize, text: &str| format!("{LIST}:{line}: {text}");
        assert!(broken("X(dot, f32, avx2", "X(dto, f32, avx2").starts_with(&at(4, "dto f32 is no kernel")));
        assert!(
            broken("avx2, LW_AVX2 | LW_FMA)\n#define LW_L", "avx2, LW_AVX)\n#define LW_L")
                .starts_with(&at(4, "LW_AVX is not"))
        );
        assert!(broken("X(dot, i8, scalar, 0)", "").starts_with(&at(1, "dot i8 has no scalar variant")));
        assert!(
            broken("X(dot, i8, scalar, 0)", "X(dot, f32, scalar, 0)")
                .starts_with(&at(2, "variant dot f32 scalar is"))
        );
        assert!(
            broken("X(dot, i8, int8_t", "X(dot, f32, int8_t")
                .starts_with(&at(1, "kernel dot f32 is listed twice"))
        );
        assert!(broken("X(scalar, 0)", "X(scalar)").starts_with(&at(5, "1 columns, not 2")));
        assert!(broken("LW_KERNELS", "LW_KERNEL").contains("is no kernel"));
        assert_eq!(document(tree("", PAGE).path()).unwrap_err().line, 1);
    }

    #[test]
    fn a_missing_file_is_named() {
        let folder = tree(TINY, PAGE);
        fs::remove_file(folder.path().join(DOCUMENT)).unwrap();
        assert!(
            document(folder.path()).unwrap_err().to_string().starts_with("docs/kernels.md:1: cannot be read")
        );
        fs::remove_file(folder.path().join(LIST)).unwrap();
        assert!(
            document(folder.path())
                .unwrap_err()
                .to_string()
                .starts_with("crates/kernels/c/list.h:1: cannot be")
        );
    }
}
