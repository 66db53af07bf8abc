//! Which indexes an expression names: `logs-*,-logs-old,products`, of indexes and aliases.

use super::{Alias, Cluster};
use crate::call::{Call, Params};
use crate::error::ApiError;
use axum::http::StatusCode;
use std::collections::BTreeMap;

/// The parameters that say what is to be done with names that lead nowhere.
pub(crate) const PARAMS: [&str; 3] = ["ignore_unavailable", "allow_no_indices", "expand_wildcards"];

/// What is to be done with names that lead nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    pub(crate) ignore_unavailable: bool,
    pub(crate) allow_no_indices: bool,
    pub(crate) open: bool,
    pub(crate) closed: bool,
}

/// An index that was named, and by which aliases.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Target {
    pub(crate) index: String,
    /// If it was named by aliases alone, theirs: a document need pass one of them only.
    pub(crate) filters: Vec<serde_json::Value>,
}

impl Default for Names {
    fn default() -> Self {
        Names { ignore_unavailable: false, allow_no_indices: true, open: true, closed: false }
    }
}

impl Names {
    /// As the parameters say.
    ///
    /// # Errors
    /// If one of them says what cannot be.
    pub(crate) fn of(params: &Params) -> Result<Names, ApiError> {
        let usual = Names::default();
        let (mut open, mut closed) = (usual.open, usual.closed);
        if let Some(states) = params.list("expand_wildcards") {
            (open, closed) = (false, false);
            for state in states {
                match state {
                    "all" => (open, closed) = (true, true),
                    "open" => open = true,
                    "closed" => closed = true,
                    // There are no hidden ones.
                    "hidden" | "none" => {}
                    other => {
                        let known = "all, open, closed, hidden, none";
                        return Err(ApiError::argument(format!(
                            "expand_wildcards: no valid wildcard value [{other}]: give {known}"
                        )));
                    }
                }
            }
        }
        Ok(Names {
            ignore_unavailable: params.flag("ignore_unavailable", usual.ignore_unavailable)?,
            allow_no_indices: params.flag("allow_no_indices", usual.allow_no_indices)?,
            open,
            closed,
        })
    }

    /// The indexes that a request's path names, as its parameters say.
    ///
    /// # Errors
    /// As [`of`](Self::of) and [`resolve`](Self::resolve).
    pub(crate) fn targets(cluster: &Cluster, call: &Call) -> Result<Vec<Target>, ApiError> {
        Names::of(&call.params)?.resolve(cluster, call.name("index").unwrap_or_default())
    }

    /// The indexes that `expression` names, each once, by ascending name; nothing, `_all` and `*` name all of them.
    ///
    /// # Errors
    /// If a name without `*` leads nowhere, or no name leads anywhere, and that is not allowed.
    pub(crate) fn resolve(&self, cluster: &Cluster, expression: &str) -> Result<Vec<Target>, ApiError> {
        let whole = if matches!(expression, "" | "_all") { "*" } else { expression };
        // By index: whether it was named itself, and the aliases that it was named by.
        let mut found: BTreeMap<&str, (bool, Vec<&Alias>)> = BTreeMap::new();
        let mut some_wildcard = false;
        for part in whole.split(',').filter(|part| !part.is_empty()) {
            if let Some(without) = part.strip_prefix('-').filter(|_| some_wildcard) {
                found.retain(|name, _| !matches(without, name));
                continue;
            }
            let wildcard = part.contains('*');
            some_wildcard |= wildcard;
            let mut any = false;
            for (name, index) in &cluster.indices {
                if wildcard && !(if index.closed { self.closed } else { self.open }) {
                    continue;
                }
                let itself = matches(part, name);
                let by: Vec<&Alias> = index
                    .aliases
                    .iter()
                    .filter(|(alias, _)| matches(part, alias))
                    .map(|(_, alias)| alias)
                    .collect();
                if !itself && by.is_empty() {
                    continue;
                }
                any = true;
                let (named, aliases) = found.entry(name).or_default();
                *named |= itself;
                aliases.extend(by);
            }
            if !any && !wildcard && !self.ignore_unavailable {
                return Err(ApiError::no_index(part));
            }
        }
        if found.is_empty() && !self.allow_no_indices {
            return Err(ApiError::no_index(expression));
        }
        let target = |(name, (named, aliases)): (&str, (bool, Vec<&Alias>))| {
            let filters: Option<Vec<_>> = aliases.iter().map(|alias| alias.filter.clone()).collect();
            // Without a filter in one of its names, all of it was named.
            let filters = filters.filter(|_| !named).unwrap_or_default();
            Target { index: name.to_owned(), filters }
        };
        Ok(found.into_iter().map(target).collect())
    }
}

impl Cluster {
    /// The index that a write to `name` goes to: an index itself, or an alias of one, or the one of several that is marked.
    /// `None` if nothing has the name.
    ///
    /// # Errors
    /// If the alias has several indexes and none of them is to be written to.
    pub(crate) fn write_index(&self, name: &str) -> Result<Option<&str>, ApiError> {
        if let Some((name, _)) = self.indices.get_key_value(name) {
            return Ok(Some(name));
        }
        let all: Vec<(&str, &Alias)> = self.with_alias(name).collect();
        let marked = |(_, alias): &&(&str, &Alias)| alias.is_write_index == Some(true);
        match (&all[..], all.iter().find(marked)) {
            ([], _) => Ok(None),
            (_, Some((index, _))) => Ok(Some(*index)),
            ([(index, alias)], _) if alias.is_write_index != Some(false) => Ok(Some(*index)),
            _ => Err(ApiError::new(
                StatusCode::BAD_REQUEST,
                "illegal_argument_exception",
                format!(
                    "no write index is defined for alias [{name}]. The write index may be explicitly disabled using \
                     is_write_index=false or the alias points to multiple indices without one being designated as a \
                     write index"
                ),
            )),
        }
    }
}

/// Whether `name` has the form of `pattern`, in which `*` stands for any characters.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::super::Index;
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn cluster(indices: &[(&str, &[(&str, Alias)])]) -> Cluster {
        let index = |aliases: &[(&str, Alias)]| Index {
            aliases: aliases.iter().map(|(name, alias)| ((*name).to_owned(), alias.clone())).collect(),
            ..Index::default()
        };
        let named = |(name, aliases): &(&str, &[(&str, Alias)])| ((*name).to_owned(), index(aliases));
        Cluster { indices: indices.iter().map(named).collect(), ..Cluster::default() }
    }

    fn named(cluster: &Cluster, expression: &str) -> Vec<String> {
        let targets = Names::default().resolve(cluster, expression).unwrap();
        targets.into_iter().map(|target| target.index).collect()
    }

    #[test]
    fn names_wildcards_and_exclusions_lead_to_indexes() {
        let all =
            cluster(&[("a-1", &[("a", Alias::default())]), ("a-2", &[("a", Alias::default())]), ("b", &[])]);
        assert_eq!(named(&all, ""), ["a-1", "a-2", "b"]);
        assert_eq!(named(&all, "_all"), ["a-1", "a-2", "b"]);
        assert_eq!(named(&all, "a"), ["a-1", "a-2"]);
        assert_eq!(named(&all, "b,a-1,b"), ["a-1", "b"]);
        assert_eq!(named(&all, "*,-a-*"), ["b"]);
        assert_eq!(named(&all, "c*"), [""; 0]);
        assert!(Names::default().resolve(&all, "b,c").is_err());
        let lenient = Names::of(&Params::parse("ignore_unavailable&allow_no_indices=false")).unwrap();
        assert_eq!(lenient.resolve(&all, "b,c").unwrap().len(), 1);
        assert!(lenient.resolve(&all, "c").is_err());
    }

    #[test]
    fn a_filter_holds_where_its_alias_alone_names_the_index() {
        let red = Alias { filter: Some(json!({"term": {"color": "red"}})), ..Alias::default() };
        let all = cluster(&[("a", &[("reds", red), ("plain", Alias::default())])]);
        let filters = |expression| Names::default().resolve(&all, expression).unwrap()[0].filters.len();
        assert_eq!((filters("reds"), filters("reds,a"), filters("reds,plain"), filters("a")), (1, 0, 0, 0));
    }

    #[test]
    fn writes_go_to_one_index() {
        let (is, not) = (
            Alias { is_write_index: Some(true), ..Alias::default() },
            Alias { is_write_index: Some(false), ..Alias::default() },
        );
        let all = cluster(&[
            ("a", &[("one", Alias::default()), ("two", Alias::default()), ("marked", Alias::default())]),
            ("b", &[("two", Alias::default()), ("marked", is), ("no", not)]),
        ]);
        assert_eq!(all.write_index("a").unwrap(), Some("a"));
        assert_eq!(all.write_index("one").unwrap(), Some("a"));
        assert_eq!(all.write_index("marked").unwrap(), Some("b"));
        assert_eq!(all.write_index("none").unwrap(), None);
        assert!(all.write_index("two").is_err() && all.write_index("no").is_err());
    }

    proptest! {
        #[test]
        fn a_pattern_matches_as_a_slow_one_does(pattern in "[ab*]{0,6}", name in "[ab]{0,8}") {
            fn slow(pattern: &[u8], name: &[u8]) -> bool {
                match pattern.split_first() {
                    None => name.is_empty(),
                    Some((b'*', rest)) => (0..=name.len()).any(|at| slow(rest, &name[at..])),
                    Some((byte, rest)) => name.first() == Some(byte) && slow(rest, &name[1..]),
                }
            }
            prop_assert_eq!(matches(&pattern, &name), slow(pattern.as_bytes(), name.as_bytes()));
        }
    }
}
