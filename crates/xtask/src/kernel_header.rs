//! The generated sections of the installed C header: the numbers of the kernels and a prototype for each form of each,
//! made from the kernel lists in C. The library's own sources include the header, so the compiler compares the
//! prototypes with what they declare.

use std::fs;
use std::path::Path;

use crate::codegen::splice;
use crate::finding::Finding;
use crate::kernel_table::{Kernel, kernels};

/// The installed header.
pub(crate) const HEADER: &str = "crates/kernels/include/lanewise/kernels.h";

/// Longest line of C, as in `.clang-format`.
const COLUMNS: usize = 110;

/// The header with its sections made anew. Fails where a file cannot be read or the list contradicts itself.
pub(crate) fn header(root: &Path) -> Result<String, Finding> {
    let kernels = kernels(root)?;
    let text = fs::read_to_string(root.join(HEADER))
        .map_err(|e| Finding::new(HEADER, 1, format!("cannot be read ({e})")))?;
    let text = splice(HEADER, &text, "numbers", &numbers(&kernels))?;
    let functions: Vec<String> = kernels.iter().map(functions).collect();
    splice(HEADER, &text, "functions", &functions.join("\n"))
}

fn numbers(kernels: &[Kernel]) -> String {
    let names = kernels.iter().map(|k| format!("    LW_{}_{},\n", k.op, k.kind));
    format!("enum lw_kernel {{\n{}    LW_KERNEL_COUNT\n}};\n", names.collect::<String>())
}

/// The comment and the prototypes of one kernel.
fn functions(kernel: &Kernel) -> String {
    let Kernel { op, kind, query, row, result, bound } = kernel;
    let name = format!("lw_{op}_{kind}");
    if op == "scan" {
        return format!(
            "/* Sums of {kind} codes by table. A block of 32 vectors has 16 bytes for each of `m` sub-quantizers, at \
             most {bound}:\n * byte i holds the code of vector i in its low half and of vector 16 + i in its high \
             half. tables: 16 bytes a\n * sub-quantizer. out: 32 sums a block. */\n{}",
            prototype(
                "void",
                &name,
                &[
                    format!("const {query} *tables"),
                    format!("const {row} *codes"),
                    "size_t blocks".into(),
                    "size_t m".into(),
                    format!("{result} *out"),
                ]
            )
        );
    }
    let count = |name: &str| format!("size_t {name}");
    let (q, base, out) =
        (format!("const {query} *q"), format!("const {row} *base"), format!("{result} *out"));
    let one = [format!("const {query} *a"), format!("const {row} *b"), count("n")];
    let rows = [q.clone(), base.clone(), count("stride"), count("count"), count("n"), out.clone()];
    let ids = [
        q.clone(),
        base.clone(),
        count("stride"),
        "const uint32_t *ids".into(),
        count("count"),
        count("n"),
        out.clone(),
    ];
    let tile = [
        q,
        count("q_stride"),
        count("queries"),
        base,
        count("stride"),
        count("count"),
        count("n"),
        out,
        count("out_stride"),
    ];
    format!(
        "/* {op}, {kind}{}. */\n{}{}{}{}",
        if bound == "LW_ANY" { String::new() } else { format!(": n up to {bound}") },
        prototype(result, &name, &one),
        prototype("void", &format!("{name}_rows"), &rows),
        prototype("void", &format!("{name}_ids"), &ids),
        prototype("void", &format!("{name}_tile"), &tile),
    )
}

/// A declaration, its parameters broken over lines below each other.
fn prototype(result: &str, name: &str, parameters: &[String]) -> String {
    let mut text = format!("LW_API {result} {name}(");
    let indent = text.len();
    let mut at = indent;
    for (i, parameter) in parameters.iter().enumerate() {
        let last = i + 1 == parameters.len();
        let end = if last { ");\n" } else { "," };
        if i > 0 && at + 1 + parameter.len() + end.trim_end().len() > COLUMNS {
            text.push('\n');
            text.push_str(&" ".repeat(indent));
            at = indent;
        } else if i > 0 {
            text.push(' ');
            at += 1;
        }
        text.push_str(parameter);
        text.push_str(end);
        at += parameter.len() + 1;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(op: &str, bound: &str) -> Kernel {
        let [query, row, result] = ["float", "int8_t", "int32_t"].map(String::from);
        Kernel { op: op.into(), kind: "f32i8".into(), query, row, result, bound: bound.into() }
    }

    #[test]
    fn every_form_has_its_prototype_and_the_bound_is_said() {
        let text = functions(&kernel("dot", "7"));
        assert!(text.starts_with(
            "/* dot, f32i8: n up to 7. */\n\
             LW_API int32_t lw_dot_f32i8(const float *a, const int8_t *b, size_t n);\n\
             LW_API void lw_dot_f32i8_rows(const float *q, const int8_t *base, size_t stride, size_t count, size_t n,\n"
        ), "{text}");
        for form in ["(", "_rows(", "_ids(", "_tile("] {
            assert_eq!(text.matches(&format!(" lw_dot_f32i8{form}")).count(), 1, "{text}");
        }
        assert!(functions(&kernel("dot", "LW_ANY")).starts_with("/* dot, f32i8. */\n"));
        assert_eq!(functions(&kernel("scan", "7")).matches("LW_API").count(), 1);
        assert_eq!(
            numbers(&[kernel("dot", "7")]),
            "enum lw_kernel {\n    LW_dot_f32i8,\n    LW_KERNEL_COUNT\n};\n"
        );
    }

    #[test]
    fn lines_stay_within_their_columns() {
        let parameters = vec!["size_t a_long_parameter_name".to_string(); 9];
        let text = prototype("void", "lw_f", &parameters);
        assert!(text.lines().all(|line| line.len() <= COLUMNS), "{text}");
        assert_eq!(text.matches("a_long_parameter_name").count(), 9);
        assert!(text.lines().count() > 2 && text.ends_with(");\n"), "{text}");
    }
}
