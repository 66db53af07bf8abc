//! Names of tables: what OpenSearch takes as an index's name, which is a folder's name on any system that we run on.

/// The longest name, bytes.
const BYTES_MAX: usize = 255;
/// What may stand nowhere in a name.
const FORBIDDEN: [char; 11] = ['\\', '/', '*', '?', '"', '<', '>', '|', ' ', ',', '#'];

/// What is wrong with a table's name, if anything is.
pub fn wrong_name(name: &str) -> Option<&'static str> {
    let forbidden = |c: char| FORBIDDEN.contains(&c) || c == ':' || c.is_control();
    match name {
        "" => Some("give at least one character"),
        "." | ".." => Some("it is a folder's own name"),
        _ if name.len() > BYTES_MAX => Some("give at most 255 bytes"),
        _ if name.starts_with(['_', '-', '+']) => Some("it may not begin with _, - or +"),
        _ if name.contains(forbidden) => {
            Some("leave out spaces, control characters and \\ / * ? \" < > | , # :")
        }
        _ if name.chars().any(|c| !c.to_lowercase().eq([c])) => Some("write it in lower case"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::{Component, Path};

    #[test]
    fn names_are_opensearchs() {
        for fine in ["a", "logs-2026.11.22", ".hidden", "0", "größe", "表", "a_b+c", &"x".repeat(255)] {
            assert_eq!(wrong_name(fine), None, "{fine:?}");
        }
        for bad in [
            "",
            ".",
            "..",
            "_a",
            "-a",
            "+a",
            "A",
            "aÄ",
            "a b",
            "a/b",
            "a\\b",
            "a*",
            "a?",
            "a\"",
            "a<",
            "a>",
            "a|",
            "a,b",
            "a#",
            "a:b",
            "a\0",
            "a\n",
            &"x".repeat(256),
            &"é".repeat(128),
        ] {
            assert!(wrong_name(bad).is_some(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_taken_is_one_name_of_a_folder(name in "\\PC{0,8}|[a-zA-Z._/\\\\]{0,6}") {
            if wrong_name(&name).is_none() {
                let parts: Vec<Component<'_>> = Path::new(&name).components().collect();
                prop_assert_eq!(parts, [Component::Normal(name.as_ref())]);
                prop_assert_eq!(name.to_lowercase(), name);
            }
        }
    }
}
