//! Searches through a pool: the same results as without, refusals, and what stops them.

use crate::{floats, threads};
use lanewise_engine::index::{Code, Filter, Index, Kind, Params, Plan, Reader, Scratch, Search, Vectors};
use lanewise_engine::scheduler::{self, Failure, Layout, MappingId, Options, Policy, Workers};
use lanewise_engine::{Pool, Refused, TableId, search};
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

const DIM: usize = 16;
const TABLE: TableId = TableId(3);

fn reader(kind: Kind, code: Code) -> Reader {
    let index = Index::new(Params { kind, code, ..Params::new(DIM) }).unwrap();
    let data = floats(3000 * DIM, 1);
    index.add(Vectors::F32(&data), None, &threads(2), &mut |_| ControlFlow::Continue(())).unwrap();
    index.reader()
}

fn pool(policy: Policy, workers: &[usize], queue_capacity: usize) -> Pool {
    let workers = Workers::Unbound(Layout::new(workers));
    Pool::start(Options { policy, workers, queue_capacity, ..Options::default() }).unwrap()
}

#[test]
fn a_pool_finds_what_a_search_finds() {
    let queries = floats(20 * DIM, 2);
    for (kind, code) in
        [(Kind::Hnsw, Code::I8), (Kind::Ivf, Code::I8), (Kind::Ivf, Code::None), (Kind::Flat, Code::None)]
    {
        let reader = reader(kind, code);
        let even: Filter = reader.filter(|id| id % 2 == 0);
        for policy in Policy::ALL {
            let pool = pool(policy, &[2, 1], 256);
            pool.place(TABLE, &reader);
            for how in
                [Search::new(10), Search::new(10).filter(&even), Search { exact: true, ..Search::new(3) }]
            {
                let pending: Vec<_> = queries
                    .chunks(DIM)
                    .map(|query| pool.search(TABLE, &reader, Vectors::F32(query), &how, None).unwrap())
                    .collect();
                for (pending, query) in pending.into_iter().zip(queries.chunks(DIM)) {
                    let found = pending.wait().unwrap();
                    let (expected, counts) = search(&reader, Vectors::F32(query), &how, threads(1)).unwrap();
                    assert_eq!([found.neighbors], expected[..], "{kind:?} {policy}");
                    // The parts of a query do not know the others' bounds, so that they rescore no less.
                    assert!(found.counts.bytes >= counts.bytes && found.trip.bytes == found.counts.bytes);
                }
            }
        }
    }
}

#[test]
fn lists_are_a_task_each_and_have_homes_of_their_own() {
    let reader = reader(Kind::Ivf, Code::None);
    let pool = pool(Policy::Chiplet, &[2, 1], 256);
    pool.place(TABLE, &reader);
    let query = floats(DIM, 2);
    let how = Search::new(10).nprobe(8);
    assert_eq!(reader.plan(&how), Plan::Lists);
    let found = pool.search(TABLE, &reader, Vectors::F32(&query), &how, None).unwrap().wait().unwrap();
    assert_eq!(pool.stats().total().tasks, 8);
    assert_eq!(found.counts.lists, 1);
    assert!(MappingId::list(3, 7).is_of(TABLE.0) && !MappingId::list(4, 7).is_of(TABLE.0));
    pool.forget(TABLE);
}

#[test]
fn what_is_wrong_is_refused_and_what_is_late_is_not_run() {
    let reader = reader(Kind::Hnsw, Code::None);
    let pool = pool(Policy::Chiplet, &[2, 1], 256);
    let query = floats(2 * DIM, 2);
    let one = Vectors::F32(&query[..DIM]);
    let refused = |query, how| pool.search(TABLE, &reader, query, &how, None).map(drop).unwrap_err();
    assert!(matches!(refused(one, Search::new(0)), Refused::Wrong(error) if error.to_string().contains('k')));
    assert!(matches!(refused(Vectors::F32(&query), Search::new(1)), Refused::Wrong(_)));
    assert!(matches!(refused(Vectors::U8(&[0; DIM]), Search::new(1)), Refused::Wrong(_)));
    let late = pool.search(TABLE, &reader, one, &Search::new(1), Some(Duration::ZERO)).unwrap();
    assert_eq!(late.wait().unwrap_err(), Failure::DeadlineExceeded);
}

#[test]
fn a_full_pool_says_so_and_a_search_that_runs_can_be_cancelled() {
    let reader = reader(Kind::Hnsw, Code::None);
    let pool = pool(Policy::Chiplet, &[1], 2);
    // Nobody gets at the worker.
    let (open, gate) = mpsc::channel::<()>();
    let (begun, begins) = mpsc::channel();
    let wait = move |_: &mut Scratch, _: &scheduler::Context<'_>| {
        begun.send(()).unwrap();
        (gate.recv().is_err(), 0)
    };
    let gate = pool.scheduler().submit(MappingId::table(0), None, wait).unwrap();
    begins.recv().unwrap();
    let query = floats(DIM, 2);
    let ask = || pool.search(TABLE, &reader, Vectors::F32(&query), &Search::new(1), None);
    let mut waiting = Vec::new();
    let busy = loop {
        match ask() {
            Ok(pending) => waiting.push(pending),
            Err(refused) => break refused,
        }
    };
    assert!(matches!(busy, Refused::Busy(full) if full.queued == waiting.len()), "{busy}");
    waiting[0].cancel();
    drop(open);
    assert!(gate.wait().unwrap().value);
    let mut outcomes =
        waiting.into_iter().map(|pending| pending.wait().map(|found| found.neighbors.ids.len()));
    assert_eq!(outcomes.next(), Some(Err(Failure::Cancelled)));
    assert!(outcomes.all(|outcome| outcome == Ok(1)));
}

#[test]
fn a_search_can_be_awaited() {
    struct Bell(mpsc::Sender<()>);
    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.send(()).unwrap();
        }
    }
    let reader = reader(Kind::Ivf, Code::Bits);
    let pool = pool(Policy::Chiplet, &[2, 1], 256);
    let query = floats(DIM, 2);
    let mut pending = pin!(pool.search(TABLE, &reader, Vectors::F32(&query), &Search::new(5), None).unwrap());
    let (bell, rings) = mpsc::channel();
    let waker = Waker::from(Arc::new(Bell(bell)));
    let found = loop {
        match pending.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(found) => break found.unwrap(),
            Poll::Pending => rings.recv().unwrap(),
        }
    };
    assert_eq!(found.neighbors.ids.len(), 5);
}
