//! The tables of the scheduler's evaluation: planned to a budget, built once, kept.

use lanewise_bench::generate::mixture;
use lanewise_bench::recall::recall;
use lanewise_bench::tables::{DIMS, ROWS_MIN, Table, TablesError, tables};
use lanewise_bench::truth::Truth;
use lanewise_engine::index::{AddError, Index, Kind, Search, Vectors};
use lanewise_engine::{Threads, search};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

fn one() -> Threads {
    Threads::new(Some(NonZeroUsize::MIN))
}

/// A budget for tables of a few thousand rows.
const BUDGET: usize = 256 << 20;

#[test]
fn tables_fill_the_budget_and_differ_as_the_papers_do() {
    for (kind, count, ratio) in [(Kind::Hnsw, 60, 10.0), (Kind::Ivf, 15, 1500.0)] {
        let all = tables(kind, BUDGET, 1).unwrap();
        assert_eq!(all.len(), count);
        assert!(all.is_sorted_by(|a, b| a.rows >= b.rows) && all[count - 1].rows >= ROWS_MIN);
        let last = all[0].rows as f64 / ratio;
        if last > ROWS_MIN as f64 {
            assert!((all[count - 1].rows as f64 / last - 1.0).abs() < 0.01, "{:?}", all[count - 1]);
        }
        let held =
            |table: &Table| Index::new(table.params).unwrap().predict(table.rows, false, 1).unwrap().held;
        let held: usize = all.iter().map(held).sum();
        assert!(held <= BUDGET && held > BUDGET / 10 * 9, "{held}");
        let dims: BTreeSet<usize> = all.iter().map(|table| table.params.dim).collect();
        assert!(dims.iter().all(|dim| DIMS.contains(dim)) && dims.len() > 2, "{dims:?}");
        assert!(all.iter().all(|table| table.params.kind == kind));
        let names: BTreeSet<String> = all.iter().map(Table::file_name).collect();
        assert_eq!(names.len(), count);
        assert_eq!(all, tables(kind, BUDGET, 1).unwrap());
        assert!(names.is_disjoint(&tables(kind, BUDGET, 2).unwrap().iter().map(Table::file_name).collect()));
    }
}

#[test]
fn what_cannot_be_planned_is_said() {
    let Err(TablesError::Budget { needs, .. }) = tables(Kind::Hnsw, 1 << 20, 1) else { panic!() };
    assert!(tables(Kind::Hnsw, needs, 1).unwrap().iter().all(|table| table.rows >= ROWS_MIN));
    let error = tables(Kind::Hnsw, needs - 1, 1).unwrap_err().to_string();
    assert!(error.starts_with("budget: ") && error.ends_with("raise it"), "{error}");
    assert!(matches!(tables(Kind::Flat, BUDGET, 1), Err(TablesError::Kind("flat"))));
}

/// The smallest table of a kind.
fn smallest(kind: Kind) -> Table {
    tables(kind, BUDGET / 4, 5).unwrap().pop().unwrap()
}

#[test]
fn a_table_is_built_once_and_finds_what_is_near() {
    for kind in [Kind::Hnsw, Kind::Ivf] {
        let (table, folder) = (smallest(kind), tempfile::tempdir().unwrap());
        let folder = folder.path().join("cache");
        let mut heard = 0;
        let mut proceed = |_| {
            heard += 1;
            ControlFlow::Continue(())
        };
        let built = table.index(&folder, one(), &mut proceed).unwrap();
        let after = heard;
        assert!(after > 0);
        let kept = table.index(&folder, one(), &mut |_| panic!("built again")).unwrap();

        let queries = table.queries(50);
        let queries = Vectors::F32(&queries);
        let how = Search::new(10).ef(100).nprobe((table.params.nlist / 4).max(1));
        let (found, counts) = search(&kept.reader(), queries, &how, one()).unwrap();
        assert_eq!(found, search(&built.reader(), queries, &how, one()).unwrap().0);
        let truth = {
            let (vectors, _) = mixture(table.params.dim, table.rows, 0, table.params.seed);
            Truth::compute(table.params, Vectors::F32(&vectors), queries, 10, one()).unwrap()
        };
        let recall = recall(&found, &truth, 10).unwrap();
        assert!(recall > 0.9, "{kind:?}: {recall}");
        assert!((counts.distances as usize) < 50 * table.rows, "{counts:?}");
    }
}

#[test]
fn a_stopped_build_leaves_nothing_and_a_damaged_file_is_named() {
    let (table, folder) = (smallest(Kind::Hnsw), tempfile::tempdir().unwrap());
    let stopped = table.index(folder.path(), one(), &mut |_| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(TablesError::Add(AddError::Cancelled { .. }))));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

    let path = folder.path().join(table.file_name());
    std::fs::write(&path, b"something else").unwrap();
    let mut never = |_| panic!("built over a file");
    let error = table.index(folder.path(), one(), &mut never).err().unwrap().to_string();
    assert!(error.contains(&table.file_name()) && error.contains("delete the file"), "{error}");

    let other = Table { rows: table.rows + 1, ..table.clone() };
    std::fs::remove_file(&path).unwrap();
    other.index(folder.path(), one(), &mut |_| ControlFlow::Continue(())).unwrap();
    std::fs::rename(folder.path().join(other.file_name()), path).unwrap();
    assert!(matches!(table.index(folder.path(), one(), &mut never), Err(TablesError::Other(_))));
}
