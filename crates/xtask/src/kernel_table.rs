//! The tables of `docs/kernels.md`, made from the kernel lists in C: which isa serves which kernel, what each isa needs
//! of the CPU, and the levels that `LANEWISE_ISA` takes. The C preprocessor reads the lists, as it does for the library.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::codegen::splice;
use crate::finding::Finding;

/// The document that holds the tables.
pub(crate) const DOCUMENT: &str = "docs/kernels.md";
const LIST: &str = "crates/kernels/c/list.h";

/// Rows of the lists, for all architectures, as `@list column; column; …`.
const ROWS: &str = r#"
#define X(symbol, name, bit) @feature symbol; name
LW_FEATURES(X)
#undef X
#define X(op, type, query, row, result, per, bound) @kernel op; type; query; row; result; bound
LW_KERNELS(X)
#undef X
#define X(op, type, bound) @kernel op; type; uint8_t; uint8_t; uint16_t; bound
LW_SCANS(X)
#undef X
#define X(isa, needs, level) @set isa; needs; level
LW_ISAS_ANY(X) LW_ISAS_X86(X) LW_ISAS_ARM(X)
#undef X
#define X(op, type, isa) @variant op; type; isa
LW_EVERY(X, scalar) LW_VARIANTS_X86(X) LW_VARIANTS_ARM(X)
#undef X
#define X(op, type, isa, quirk) @variant op; type; isa
X(scan, pq4, scalar, 0) LW_SCAN_VARIANTS_X86(X) LW_SCAN_VARIANTS_ARM(X)
"#;

/// How the variants of an isa are tested, as `scripts/test` does it: on CPUs that have them, or under emulation.
fn tested(isa: &str) -> &'static str {
    match isa {
        "scalar" | "sse41" | "avx2" => "run, emulated",
        "neon" | "dotprod" | "fhm" | "bf16" | "i8mm" => "emulated",
        "sve" | "svebf16" | "svei8mm" | "sve2" => "emulated",
        _ => "run where the CPU has it",
    }
}

/// The document with its tables made anew. Fails where a file cannot be read or the list contradicts itself.
pub(crate) fn document(root: &Path) -> Result<String, Finding> {
    let list = KernelList::read(&expanded(root)?)?;
    let mut text = fs::read_to_string(root.join(DOCUMENT))
        .map_err(|e| Finding::new(DOCUMENT, 1, format!("cannot be read ({e})")))?;
    for (section, table) in [("coverage", list.coverage()), ("isas", list.isas()), ("levels", list.levels())]
    {
        text = splice(DOCUMENT, &text, section, &table)?;
    }
    Ok(text)
}

/// The kernels, in the order of their numbers.
pub(crate) fn kernels(root: &Path) -> Result<Vec<Kernel>, Finding> {
    Ok(KernelList::read(&expanded(root)?)?.kernels)
}

/// The lists' rows, by the C preprocessor.
fn expanded(root: &Path) -> Result<String, Finding> {
    let failed = |why: String| Finding::new(LIST, 1, format!("cannot be read by the C preprocessor: {why}"));
    if !root.join(LIST).exists() {
        return Err(failed("it is not there".into()));
    }
    let mut cc = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()))
        .args(["-E", "-P", "-x", "c", "-"])
        .current_dir(root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| failed(e.to_string()))?;
    let source = format!("#include \"{LIST}\"\n{ROWS}");
    let written = cc.stdin.take().map(|mut stdin| stdin.write_all(source.as_bytes()));
    let output = cc.wait_with_output().map_err(|e| failed(e.to_string()))?;
    if !output.status.success() || !matches!(written, Some(Ok(()))) {
        return Err(failed(String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or("").into()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A line of the kernel lists.
pub(crate) struct Kernel {
    pub(crate) op: String,
    pub(crate) kind: String,
    pub(crate) query: String,
    pub(crate) row: String,
    pub(crate) result: String,
    pub(crate) bound: String,
}

struct Isa {
    name: String,
    needs: Vec<String>,
    level: Vec<String>,
}

struct KernelList {
    kernels: Vec<Kernel>,
    isas: Vec<Isa>,
    /// Operation, type, isa.
    variants: Vec<[String; 3]>,
}

impl KernelList {
    fn read(text: &str) -> Result<Self, Finding> {
        let (mut features, mut kernels, mut isas, mut variants) = (vec![], vec![], vec![], vec![]);
        for row in text.split('@').skip(1) {
            let row = row.split_whitespace().collect::<Vec<_>>().join(" ");
            let (list, columns) = row.split_once(' ').unwrap_or((&row, ""));
            let columns: Vec<String> = columns.split(';').map(|c| c.trim().to_string()).collect();
            match (list, columns.as_slice()) {
                ("feature", [symbol, name]) => {
                    features.push((symbol.clone(), name.trim_matches('"').to_string()))
                }
                ("kernel", [op, kind, query, row, result, bound]) => {
                    let [op, kind, query, row, result, bound] =
                        [op, kind, query, row, result, bound].map(Clone::clone);
                    kernels.push(Kernel { op, kind, query, row, result, bound });
                }
                ("set", [name, needs, level]) => isas.push(Isa {
                    name: name.clone(),
                    needs: named(needs, &features)?,
                    level: named(level, &features)?,
                }),
                ("variant", [op, kind, isa]) => variants.push([op.clone(), kind.clone(), isa.clone()]),
                _ => return Err(Finding::new(LIST, 1, format!("cannot read the row `{row}`"))),
            }
        }
        let list = Self { kernels, isas, variants };
        list.check()?;
        Ok(list)
    }

    fn check(&self) -> Result<(), Finding> {
        let wrong = |text: String| Err(Finding::new(LIST, 1, text));
        for (i, [op, kind, isa]) in self.variants.iter().enumerate() {
            if !self.kernels.iter().any(|k| k.op == *op && k.kind == *kind) {
                return wrong(format!("{op} {kind} is no kernel: add it to LW_KERNELS"));
            }
            if !self.isas.iter().any(|known| known.name == *isa) {
                return wrong(format!("{isa} is no instruction set: add it to LW_ISAS_*"));
            }
            if self.variants[..i].contains(&self.variants[i]) {
                return wrong(format!("variant {op} {kind} {isa} is listed twice"));
            }
        }
        for (i, Kernel { op, kind, .. }) in self.kernels.iter().enumerate() {
            if self.kernels[..i].iter().any(|k| k.op == *op && k.kind == *kind) {
                return wrong(format!("kernel {op} {kind} is listed twice"));
            }
            if !self.has(op, kind, "scalar") {
                return wrong(format!("{op} {kind} has no scalar variant: write it first"));
            }
        }
        Ok(())
    }

    fn has(&self, op: &str, kind: &str, isa: &str) -> bool {
        self.variants.iter().any(|v| v[0] == op && v[1] == kind && v[2] == isa)
    }

    fn coverage(&self) -> String {
        let heads = ["kernel", "query × row → result", "exact up to"].into_iter();
        let heads = heads.chain(self.isas.iter().map(|isa| isa.name.as_str()));
        let rows = self.kernels.iter().map(|k| {
            let bound = if k.bound == "LW_ANY" { "–" } else { &k.bound };
            let types = format!("`{}` × `{}` → `{}`", k.query, k.row, k.result);
            let mut cells = vec![format!("`{}` {}", k.op, k.kind), types, bound.to_string()];
            cells.extend(self.isas.iter().map(|isa| {
                let cell = if self.has(&k.op, &k.kind, &isa.name) { mark(&isa.name) } else { "" };
                cell.to_string()
            }));
            cells
        });
        table(heads, rows)
    }

    fn isas(&self) -> String {
        let rows = self.isas.iter();
        let rows = rows.map(|isa| {
            let count = self.variants.iter().filter(|v| v[2] == isa.name).count();
            vec![format!("`{}`", isa.name), isa.needs.join(", "), count.to_string(), tested(&isa.name).into()]
        });
        table(["instruction set", "needs", "kernels", "tested"], rows)
    }

    fn levels(&self) -> String {
        let rows = self.isas.iter();
        table(["level", "features"], rows.map(|l| vec![format!("`{}`", l.name), l.level.join(", ")]))
    }
}

/// How a cell of the coverage table says what `tested` says.
fn mark(isa: &str) -> &'static str {
    match tested(isa) {
        "run, emulated" => "R E",
        "emulated" => "E",
        _ => "R",
    }
}

/// `A | B` as the features' names; `0` is none.
fn named(bits: &str, features: &[(String, String)]) -> Result<Vec<String>, Finding> {
    let mut names = Vec::new();
    for symbol in bits.split(['|', '(', ')', ' ']).filter(|symbol| !symbol.is_empty() && *symbol != "0") {
        let found = features.iter().find(|(known, _)| known == symbol).map(|(_, name)| name.clone());
        let name =
            found.ok_or_else(|| Finding::new(LIST, 1, format!("{symbol} is not in LW_FEATURES: add it")))?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
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
    use crate::kernel_header::HEADER;

    const HEADER_MARKS: &str = "// <!-- generated: numbers -->\n// <!-- end -->\n\
        // <!-- generated: functions -->\n// <!-- end -->\n";
    const TINY: &str = "#define LW_KERNELS(X) X(dot, f32, float, float, float, 1, LW_ANY)\n\
        #define LW_SCANS(X) X(scan, pq4, 257)\n\
        #define LW_EVERY(X, isa) X(dot, f32, isa)\n\
        #define LW_ISAS_ANY(X) X(scalar, 0, 0)\n\
        #define NEEDS (LW_AVX2 | LW_FMA)\n\
        #define LW_ISAS_X86(X) X(avx2, NEEDS, NEEDS)\n\
        #define LW_ISAS_ARM(X) X(neon, LW_NEON, LW_NEON)\n\
        #define LW_VARIANTS_X86(X) \\\n    LW_EVERY(X, avx2)\n\
        #define LW_VARIANTS_ARM(X)\n#define LW_SCAN_VARIANTS_X86(X)\n\
        #define LW_SCAN_VARIANTS_ARM(X) X(scan, pq4, neon, 0)\n\
        #define LW_FEATURES(X) X(LW_AVX2, \"avx2\", 0) X(LW_FMA, \"fma\", 1) X(LW_NEON, \"neon\", 2)\n";
    const PAGE: &str = "# Kernels\n<!-- generated: coverage -->\n<!-- end -->\nby hand\n\
        <!-- generated: isas -->\n<!-- end -->\n<!-- generated: levels -->\n<!-- end -->\n";

    fn tree(list: &str, page: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [(LIST, list), (DOCUMENT, page), (HEADER, HEADER_MARKS)] {
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
            | kernel | query × row → result | exact up to | scalar | avx2 | neon |\n|---|---|---|---|---|---|\n\
            | `dot` f32 | `float` × `float` → `float` | – | R E | R E |  |\n\
            | `scan` pq4 | `uint8_t` × `uint8_t` → `uint16_t` | 257 | R E |  | E |\n\
            <!-- end -->\nby hand\n<!-- generated: isas -->\n\
            | instruction set | needs | kernels | tested |\n|---|---|---|---|\n\
            | `scalar` |  | 2 | run, emulated |\n| `avx2` | avx2, fma | 1 | run, emulated |\n\
            | `neon` | neon | 1 | emulated |\n<!-- end -->\n<!-- generated: levels -->\n\
            | level | features |\n|---|---|\n| `scalar` |  |\n| `avx2` | avx2, fma |\n| `neon` | neon |\n\
            <!-- end -->\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn codegen_writes_stale_files_once() {
        let folder = tree(TINY, PAGE);
        let stale = crate::codegen::check(folder.path()).unwrap();
        assert_eq!(stale.len(), 2, "{stale:?}");
        assert!(stale[0].to_string().starts_with("docs/kernels.md:3: differs"), "{stale:?}");
        assert!(stale[1].to_string().starts_with("crates/kernels/include/"), "{stale:?}");
        assert_eq!(crate::codegen::write(folder.path()).unwrap(), [DOCUMENT, HEADER]);
        assert_eq!(crate::codegen::check(folder.path()).unwrap(), []);
        assert!(crate::codegen::write(folder.path()).unwrap().is_empty());
    }

    #[test]
    fn a_list_that_contradicts_itself_is_refused() {
        let broken = |from: &str, to: &str| {
            assert!(TINY.contains(from));
            document(tree(&TINY.replace(from, to), PAGE).path()).unwrap_err().to_string()
        };
        assert!(broken("X(scan, pq4, neon", "X(sacn, pq4, neon").contains("sacn pq4 is no kernel"));
        assert!(broken("X(scan, pq4, neon", "X(scan, pq4, noen").contains("noen is no instruction set"));
        assert!(broken("NEEDS (LW_AVX2", "NEEDS (LW_AVX").contains("LW_AVX is not in LW_FEATURES"));
        assert!(broken("isa) X(dot, f32, isa)", "isa)").contains("dot f32 has no scalar variant"));
        assert!(broken("LW_EVERY(X, avx2)", "LW_EVERY(X, avx2) LW_EVERY(X, avx2)").contains("listed twice"));
        assert!(broken("X(scalar, 0, 0)", "X(scalar)").contains("cannot be read by the C preprocessor"));
    }

    #[test]
    fn a_missing_file_is_named() {
        let folder = tree(TINY, PAGE);
        fs::remove_file(folder.path().join(DOCUMENT)).unwrap();
        let error = document(folder.path()).unwrap_err().to_string();
        assert!(error.starts_with("docs/kernels.md:1: cannot be read"), "{error}");
        fs::remove_file(folder.path().join(LIST)).unwrap();
        let error = document(folder.path()).unwrap_err().to_string();
        assert!(error.starts_with("crates/kernels/c/list.h:1: cannot be read"), "{error}");
    }
}
