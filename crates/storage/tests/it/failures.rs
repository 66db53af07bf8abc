//! Each call of a history fails, one after the other, once or from then on, in three ways: what was acknowledged stays.

use crate::check::blobs::{data, write};
use crate::check::history::{Model, Running, dir, open};
use lanewise_storage::blob::Blob;
use lanewise_storage::log::AppendError;
use lanewise_storage::manifest::{self, ReadError, ReplaceError};
use lanewise_storage::{Call, Failure, Faulty, Memory, Rng, Storage, remove_temporaries};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A history of everything, and what of it was acknowledged.
struct History {
    memory: Memory,
    storage: Faulty,
    model: Model,
    generation: u64,
    /// The last generation that may be there.
    newest: u64,
    blobs: usize,
    /// Operations that said that they failed.
    refused: usize,
}

const BLOBS: [&str; 2] = ["one", "two"];

impl History {
    fn new() -> History {
        let memory = Memory::new();
        memory.create_dir(dir()).unwrap();
        memory.sync_dir(Path::new("")).unwrap();
        let storage = Faulty::new(Arc::new(memory.clone()));
        History { memory, storage, model: Model::new(), generation: 0, newest: 0, blobs: 0, refused: 0 }
    }

    fn run(&mut self) {
        for round in 0..3u8 {
            match Running::attach(self.memory.clone(), self.storage.clone(), &self.model) {
                Ok(running) => self.model = self.log(running, round),
                Err(why) => {
                    assert!(!why.contains("damaged") && !why.contains("acknowledged"), "{why}");
                    self.refused += 1;
                }
            }
            self.manifest();
            if round < 2 {
                self.blob();
            }
        }
    }

    fn log(&mut self, mut running: Running, round: u8) -> Model {
        for number in 0..5u8 {
            let appended = running.append(vec![round * 16 + number; 100 * usize::from(number)]);
            self.refused += usize::from(appended.is_err());
            if number % 2 == 0 {
                self.refused += usize::from(!running.sync());
            }
            if number == 2 {
                self.refused += usize::from(running.log.rotate().is_err());
            }
        }
        if round == 1 && running.model.acknowledged > 2 {
            let dropped = running.drop_through(running.model.acknowledged - 2);
            self.refused += usize::from(dropped.is_err());
        }
        let Running { log, mut model, .. } = running;
        let last = log.last();
        match log.close() {
            Ok(()) => model.acknowledged = last,
            Err(_) => self.refused += 1,
        }
        model
    }

    fn manifest(&mut self) {
        let contents = [self.newest as u8; 40];
        match manifest::replace(&self.storage, Path::new("manifest"), self.generation, &contents) {
            Ok(generation) => (self.generation, self.newest) = (generation, generation),
            Err(error) => {
                self.refused += 1;
                if matches!(error, ReplaceError::Unsure(_)) {
                    // As a caller has to: what is there is found out.
                    self.newest = self.generation + 1;
                    self.generation = self.newest - 1;
                }
            }
        }
    }

    fn blob(&mut self) {
        let made = write(&self.storage, Path::new(BLOBS[self.blobs]), &data(70_000));
        let made = made.and_then(|_| self.storage.sync_dir(Path::new("")));
        match made {
            Ok(()) => self.blobs += 1,
            Err(_) => {
                self.refused += 1;
                let _ = self.storage.remove(Path::new(BLOBS[self.blobs]));
            }
        }
    }

    /// What is found must be what was acknowledged, and one can go on.
    fn check(&self, memory: Memory) -> Result<(), String> {
        let mut running = Running::recover(memory.clone(), &self.model)?;
        running.append(vec![9; 9]).map_err(|error| error.to_string())?;
        if !running.sync() {
            return Err("a sync failed after all was well".into());
        }
        remove_temporaries(&memory, Path::new("")).map_err(|error| error.to_string())?;
        let generation = match manifest::read(&memory, Path::new("manifest")) {
            Ok(found) => found.generation,
            Err(ReadError::Missing) => 0,
            Err(error) => return Err(error.to_string()),
        };
        if !(self.generation..=self.newest).contains(&generation) {
            return Err(format!("generation {generation}, {} was acknowledged", self.generation));
        }
        for name in &BLOBS[..self.blobs] {
            let file = memory.open(Path::new(name)).map_err(|error| error.to_string())?;
            Blob::open(file).and_then(|blob| blob.verify()).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

#[test]
fn no_failing_call_costs_what_was_acknowledged() {
    let random = &mut Rng::with_seed(3);
    let mut runs = 0;
    for failure in [Failure::Broken, Failure::Full, Failure::Handles] {
        for once in [true, false] {
            for n in 0.. {
                let mut history = History::new();
                history.storage.fail(&Call::ALL, n, once, failure);
                history.run();
                if history.storage.failed() == 0 {
                    assert!(n > 100, "only {n} calls");
                    assert_eq!(history.refused, 0, "refused though nothing failed");
                    break;
                }
                let journal = history.memory.journal();
                let killed = [journal.killed(journal.len())];
                let images = (0..3).map(|_| journal.image(journal.len(), random));
                for memory in killed.into_iter().chain(images) {
                    let checked = history.check(memory);
                    checked.unwrap_or_else(|why| panic!("call {n}, {failure:?}, once {once}: {why}"));
                }
                runs += 1;
            }
        }
    }
    println!("{runs} failing calls");
}

#[test]
fn a_full_disk_refuses_writes_lets_syncs_and_reads_pass_and_takes_writes_again() {
    for n in 0..6 {
        let mut running = Running::begin();
        running.append(vec![1; 700]).unwrap();
        running.append(vec![2; 700]).unwrap();
        running.storage.fail(&Call::WRITES, n, false, Failure::Full);
        let mut refused = 0;
        for number in 3..12 {
            match running.append(vec![number; 700]) {
                Ok(()) => assert_eq!(refused, 0, "taken while the disk is full"),
                Err(error) => {
                    refused += 1;
                    assert!(
                        error.to_string().contains(&io::Error::from_raw_os_error(28).to_string()),
                        "{error}"
                    );
                }
            }
        }
        assert!(refused > 2);
        assert!(running.sync(), "what was taken before can be synced");
        assert!(running.storage.open(Path::new("log/log-0000000000000001")).is_ok());
        running.storage.heal();
        running.append(vec![100; 700]).expect("there is room again");
        assert!(running.sync());
        let Running { memory, model, .. } = running;
        Running::recover(memory.journal().image(memory.journal().len(), &mut Rng::with_seed(n)), &model)
            .unwrap();
    }
}

#[test]
fn a_failed_sync_ends_the_log() {
    crate::check::logs::poison().unwrap();
}

#[test]
fn a_failed_sync_of_the_folder_ends_the_log_too() {
    let mut running = Running::begin();
    running.append(vec![1; 9]).unwrap();
    running.storage.fail(&[Call::SyncDir], 0, true, Failure::Broken);
    assert!(matches!(running.log.rotate(), Err(AppendError::Poisoned(_))));
    assert!(matches!(running.log.append(b"more"), Err(AppendError::Poisoned(_))));
    assert_eq!(running.log.durable(), 1, "the old file was synced before");
}

#[test]
fn files_that_could_not_be_dropped_are_dropped_later() {
    let mut running = Running::begin();
    for number in 0..4 {
        running.append(vec![number; 9]).unwrap();
        running.log.rotate().unwrap();
        running.log.rotate().unwrap();
    }
    let files = |running: &Running| running.memory.list(dir()).unwrap().len();
    assert_eq!(files(&running), 5, "an empty file is not rotated");
    running.storage.fail(&[Call::Remove], 1, true, Failure::Broken);
    assert!(running.drop_through(4).is_err());
    assert_eq!(files(&running), 4);
    assert_eq!(running.drop_through(4).unwrap(), 3);
    assert_eq!(files(&running), 1);
}

#[test]
fn a_refused_record_is_void_once_the_log_is_closed_or_goes_on() {
    for close in [true, false] {
        let mut running = Running::begin();
        running.append(vec![1; 16]).unwrap();
        // The disk takes all of the record, and says that it failed.
        running.storage.fail(&[Call::Append], 0, true, Failure::Broken);
        assert!(running.append(b"refused".to_vec()).is_err());
        let Running { memory, log, .. } = running;
        // A process that ends now leaves what nobody can tell from a record that was taken.
        let killed = memory.journal().killed(memory.journal().len());
        assert_eq!(open(Arc::new(killed), 1).unwrap().2[&2], b"refused");
        if close {
            log.close().unwrap();
        } else {
            let position = log.append(b"taken").unwrap();
            log.sync(position).unwrap();
        }
        let (_, replayed, records) = open(Arc::new(memory), 1).unwrap();
        assert_eq!(replayed.next, if close { 2 } else { 3 });
        assert_eq!(records.get(&2).map(|payload| &payload[..]), (!close).then_some(&b"taken"[..]));
    }
}
