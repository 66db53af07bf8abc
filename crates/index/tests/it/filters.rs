//! Searches among some of the vectors: contract and recall, whatever share passes and wherever it lies.

use crate::data::{Data, Random, SPACES, build, go_on, params, search};
use lanewise_index::{Dtype, Filter, Index, Inline, Kind, Metric, Neighbors, Params, Plan, Scratch, Search};
use lanewise_index::{SearchError, Vectors};

fn among(index: &Index, queries: &Data, how: &Search<'_>) -> Vec<Neighbors> {
    index.search(queries.vectors(), how, &mut Scratch::default()).unwrap().0
}

fn ids(all: &[Neighbors]) -> Vec<Vec<i64>> {
    all.iter().map(|one| one.ids.clone()).collect()
}

/// Every kind: never what fails, min(k, matches) results; from the exact search the nearest.
#[test]
fn results_pass_and_are_as_many_as_can_be() {
    let mut random = Random(201);
    for (dtype, metric) in SPACES {
        let data = Data::clustered(dtype, 24, 900, 202);
        let queries = Data::clustered(dtype, 24, 20, 203);
        let flat = build(params(dtype, metric, 24, Kind::Flat), &data);
        let graph = build(params(dtype, metric, 24, Kind::Hnsw), &data);
        let lists = build(params(dtype, metric, 24, Kind::Ivf), &data);
        let all = ids(&search(&flat, &queries, 900, 1));
        for matches in [0, 1, 5, 60, 500, 900] {
            let mut passes = vec![false; 900];
            let mut left = matches;
            while left > 0 {
                let row = random.below(900);
                left -= usize::from(!std::mem::replace(&mut passes[row], true));
            }
            let choose = |id: i64| passes[id as usize];
            let expected: Vec<Vec<i64>> = (all.iter())
                .map(|ids| ids.iter().copied().filter(|&id| choose(id)).take(7).collect())
                .collect();
            for index in [&flat, &graph, &lists] {
                let filter = index.reader().filter(choose);
                assert_eq!(filter.matches(), matches);
                let found = ids(&among(index, &queries, &Search::new(7).ef(20).filter(&filter)));
                for (found, expected) in found.iter().zip(&expected) {
                    assert_eq!(found.len(), 7.min(matches), "{dtype:?} {metric:?}");
                    assert!(found.iter().all(|&id| choose(id)), "{dtype:?} {metric:?}");
                    // All four lists are scanned.
                    if index.params().kind != Kind::Hnsw {
                        assert_eq!(found, expected, "{dtype:?} {metric:?} {matches} matches");
                    }
                }
            }
        }
    }
}

struct Case {
    name: &'static str,
    plan: Plan,
    passes: Box<dyn Fn(i64) -> bool>,
}

/// Graphs: every plan reaches its recall, also where what passes lies together, near the queries or far from them.
#[test]
fn recall_whatever_passes() {
    const N: usize = 30_000;
    let data = Data::clustered(Dtype::F32, 16, N, 204);
    let Data::F32(floats) = &data else { unreachable!() };
    let queries = Data::clustered(Dtype::F32, 16, 100, 205);
    let first = queries.vectors().slice(16, 0..1);
    let usual = Params { m: 16, ef_construction: 100, ..params(Dtype::F32, Metric::L2, 16, Kind::Hnsw) };
    let graph = build(usual, &data);
    let flat = build(Params { kind: Kind::Flat, ..usual }, &data);
    // The vectors in the order of their distance from the first query.
    let order: Vec<i64> =
        flat.search(first, &Search::new(N), &mut Scratch::default()).unwrap().0[0].ids.clone();
    let mut rank = vec![0; N];
    order.iter().enumerate().for_each(|(place, &id)| rank[id as usize] = place);
    let far = rank.clone();
    let near = rank;
    let bit = |id: i64, share: u64| Random(id as u64).next() % 1000 < share;
    let positive = floats.chunks(16).map(|v| v[0] > 0.3).collect::<Vec<_>>();
    let cases = [
        Case { name: "0.1 %", plan: Plan::Exact, passes: Box::new(move |id| bit(id, 1)) },
        Case { name: "1 %", plan: Plan::Exact, passes: Box::new(move |id| bit(id, 10)) },
        Case { name: "10 %", plan: Plan::FilteredGraph, passes: Box::new(move |id| bit(id, 100)) },
        Case { name: "40 %", plan: Plan::FilteredGraph, passes: Box::new(move |id| bit(id, 400)) },
        Case { name: "50 %", plan: Plan::Graph, passes: Box::new(move |id| bit(id, 500)) },
        Case { name: "60 %", plan: Plan::Graph, passes: Box::new(move |id| bit(id, 600)) },
        Case { name: "90 %", plan: Plan::Graph, passes: Box::new(move |id| bit(id, 900)) },
        Case {
            name: "the nearest 15 %",
            plan: Plan::FilteredGraph,
            passes: Box::new(move |id| near[id as usize] < N * 15 / 100),
        },
        Case {
            name: "the farthest 15 %",
            plan: Plan::FilteredGraph,
            passes: Box::new(move |id| far[id as usize] > N * 85 / 100),
        },
        Case {
            name: "one side",
            plan: Plan::FilteredGraph,
            passes: Box::new(move |id| positive[id as usize]),
        },
    ];
    for Case { name, plan, passes } in cases {
        let how = |filter| Search::new(10).ef(60).filter(filter);
        let (filter, exact) = (graph.reader().filter(&passes), flat.reader().filter(&passes));
        assert_eq!(graph.reader().plan(&how(&filter)), plan, "{name}: {} matches", filter.matches());
        let expected = ids(&among(&flat, &queries, &how(&exact)));
        let (found, counts) =
            graph.search(queries.vectors(), &how(&filter), &mut Scratch::default()).unwrap();
        let hits: usize = ids(&found)
            .iter()
            .zip(&expected)
            .map(|(f, e)| f.iter().filter(|id| e.contains(id)).count())
            .sum();
        let each = counts.distances / 100;
        println!(
            "{name}: {} matches, recall {}, {each} distances, {counts:?}",
            filter.matches(),
            hits as f64 / 1e3
        );
        assert!(hits >= 900, "{name}: {hits} of 1000");
        assert!(found.iter().all(|one| one.ids.len() == 10 && one.ids.iter().all(|&id| passes(id))));
        assert!(each <= filter.matches() as u64 * 2 + 100, "{name}: {each} distances");
    }
}

#[test]
fn a_filter_of_another_state_is_refused() {
    let index = Index::new(params(Dtype::F32, Metric::L2, 1, Kind::Flat)).unwrap();
    index.add(Vectors::F32(&[1.0, 2.0]), None, &Inline, &mut go_on).unwrap();
    let filter: Filter = index.reader().filter(|id| id == 1);
    let how = Search::new(1).filter(&filter);
    let mut scratch = Scratch::default();
    assert_eq!(index.search(Vectors::F32(&[0.0]), &how, &mut scratch).unwrap().0[0].ids, [1]);
    index.add(Vectors::F32(&[3.0]), None, &Inline, &mut go_on).unwrap();
    assert_eq!(index.search(Vectors::F32(&[0.0]), &how, &mut scratch), Err(SearchError::Filter));
}
