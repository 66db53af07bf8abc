//! Tables of an engine that are made of snapshots.

use crate::check::{Model, differs, random_write, resources, schema};
use lanewise_engine::table::Repository;
use lanewise_engine::{Engine, EngineError, Limits, RestoreError};
use lanewise_storage::{Memory, Rng, Storage};
use std::ops::ControlFlow;
use std::sync::Arc;

fn engine(storage: &Memory) -> Engine {
    Engine::open(Arc::new(storage.clone()), resources(), Limits::default()).unwrap()
}

fn names(engine: &Engine) -> Vec<String> {
    engine.names().iter().map(|name| name.to_string()).collect()
}

/// Crashes at every sync of a restore: the table is there as a whole, or not at all; a name that is taken stays what it is.
#[test]
fn a_restored_table_is_there_as_a_whole_or_not_at_all() {
    let backup: Arc<dyn Storage> = Arc::new(Memory::new());
    let repository = Repository::new(backup);
    let memory = Memory::new();
    let mut go_on = |_, _| ControlFlow::Continue(());
    let own = engine(&memory);
    let table = own.create("a", schema()).unwrap();
    let mut model = Model::new();
    let mut random = Rng::with_seed(5);
    for step in 0..30 {
        table.write(vec![random_write(&mut random, &mut model)]).remove(0).unwrap();
        if step == 15 {
            table.flush().unwrap();
        }
    }
    table.snapshot(&repository, "s", 0, &mut go_on).unwrap();
    assert!(matches!(
        own.restore("a", &repository, "s", &mut go_on),
        Err(RestoreError::Engine(EngineError::Exists { .. }))
    ));
    let missing = own.restore("b", &repository, "none", &mut go_on).unwrap_err();
    assert!(matches!(missing, RestoreError::Snapshot(_)), "{missing}");
    let mut left = 3;
    let stopped = own.restore("b", &repository, "s", &mut |_, _| {
        left -= 1;
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(stopped.is_err());
    assert_eq!(names(&own), ["a"]);
    let before = memory.journal().len();
    let restored = own.restore("b", &repository, "s", &mut go_on).unwrap();
    assert_eq!(differs(&restored, &model), None);
    let journal = memory.journal();
    let after = journal.len();
    drop((restored, table, own));
    let (mut there, mut crashes) = (0, 0);
    for at in journal.syncs().filter(|at| *at >= before).flat_map(|at| [at, at + 1]).chain([after]) {
        for _ in 0..3 {
            let image =
                if at == after { journal.image(after, &mut random) } else { journal.image(at, &mut random) };
            let engine = engine(&image);
            crashes += 1;
            if names(&engine).contains(&"b".to_owned()) {
                assert_eq!(differs(&engine.table("b").unwrap(), &model), None, "crash at {at}");
                there += 1;
            } else {
                assert!(at < after, "it was acknowledged");
            }
            assert_eq!(differs(&engine.table("a").unwrap(), &model), None, "crash at {at}");
        }
    }
    assert!(there > 0 && there < crashes && crashes > 20, "{there} of {crashes}");
}
