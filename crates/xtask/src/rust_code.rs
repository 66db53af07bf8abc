//! Rust source with everything that is not code blanked out, so that a word in a comment or a string is not mistaken
//! for the keyword.

/// The text with comments, strings and character literals turned into spaces; lines stay where they are.
pub(crate) fn code_only(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = at + non_code_len(text, at);
        if end == at {
            let next = text[at..].chars().next().expect("`at` is a character's start inside the text");
            code.push(next);
            at += next.len_utf8();
        } else {
            code.extend(text[at..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    code
}

/// Bytes of the comment or literal that starts at `at`; 0 where code stands there.
fn non_code_len(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    if rest.starts_with("//") {
        rest.find('\n').unwrap_or(rest.len())
    } else if rest.starts_with("/*") {
        block_comment_len(rest)
    } else if rest.starts_with('"') {
        quoted_len(rest, b'"')
    } else if rest.starts_with('\'') {
        char_len(rest)
    } else if !follows_identifier(text, at) {
        raw_string_len(rest)
    } else {
        0
    }
}

/// Rust's block comments nest; one left open runs to the end.
fn block_comment_len(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let (mut depth, mut at) = (0, 0);
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// A literal between two `quote`s with backslash escapes.
fn quoted_len(rest: &str, quote: u8) -> usize {
    let bytes = rest.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// A character literal, or 0 for a lifetime or label, which has no closing quote right after one character.
fn char_len(rest: &str) -> usize {
    let mut inside = rest[1..].chars();
    match inside.next() {
        Some('\\') => quoted_len(rest, b'\''),
        Some(c) if inside.next() == Some('\'') => 1 + c.len_utf8() + 1,
        _ => 0,
    }
}

/// `r"…"`, `r#"…"#`, and the byte and C kinds; 0 where none starts, raw identifiers (`r#type`) included.
fn raw_string_len(rest: &str) -> usize {
    let Some(prefix) = ["r", "br", "cr"].iter().find(|prefix| rest.starts_with(**prefix)) else { return 0 };
    let after = &rest[prefix.len()..];
    let hashes = after.len() - after.trim_start_matches('#').len();
    if !after[hashes..].starts_with('"') {
        return 0;
    }
    let start = prefix.len() + hashes + 1;
    let close = format!("\"{}", "#".repeat(hashes));
    rest[start..].find(&close).map_or(rest.len(), |at| start + at + close.len())
}

fn follows_identifier(text: &str, at: usize) -> bool {
    text[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left, without the blanks.
    fn left(text: &str) -> String {
        let code = code_only(text);
        assert_eq!(code.lines().count(), text.lines().count(), "{text:?}");
        code.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn code_stays() {
        let code = "fn f<'a>(x: &'a str) -> r#type { 'out: loop { break 'out; } let fr = 1 / 2; }";
        assert_eq!(code_only(code), code);
        assert_eq!(code_only("let größe = \"x\";"), "let größe =    ;");
    }

    #[test]
    fn comments_and_literals_go() {
        assert_eq!(left("a // word\nb"), "a b");
        assert_eq!(left("a /* word /* word */ word */ b"), "a b");
        assert_eq!(left("a \"word \\\" word\" b"), "a b");
        assert_eq!(left("a r\"word\\\" b"), "a b");
        assert_eq!(left("a r#\"word \" word\"# b br##\"x\"# y\"## c"), "a b c");
        assert_eq!(left("a '\"' b '\\'' c 'é' d '\\u{1F600}' e"), "a b c d e");
        assert_eq!(left("a \"two\nlines\" b"), "a b");
    }

    #[test]
    fn what_is_left_open_runs_to_the_end() {
        for open in ["a /* b", "a /*/", "a \"b", "a \"b\\", "a r#\"b\"", "a '\\", "a // b"] {
            assert_eq!(left(open), "a", "{open:?}");
        }
    }
}
