//! A log beside a model of it: what was appended under which number, and what was acknowledged.

use super::Checked;
use crate::require;
use lanewise_storage::log::{AppendError, Log, ReplayError, Replayed};
use lanewise_storage::{Call, Failure, Faulty, Memory, Rng, Storage};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

pub(crate) const IDENTITY: u64 = 0x1D;
const DIR: &str = "log";

/// Marks in a memory's journal: an acknowledged number, or with this bit the first number that is still wanted.
const WANTED: u64 = 1 << 63;

pub(crate) fn dir() -> &'static Path {
    Path::new(DIR)
}

/// What may be found under each number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    /// What was appended last under it.
    pub(crate) appended: BTreeMap<u64, Vec<u8>>,
    /// What was refused under it, before or after.
    pub(crate) refused: BTreeMap<u64, Vec<Vec<u8>>>,
    pub(crate) acknowledged: u64,
    /// The first number that is still wanted.
    pub(crate) from: u64,
}

impl Model {
    pub(crate) fn new() -> Model {
        Model { from: 1, ..Model::default() }
    }

    /// This model as it was when a memory's notes were these.
    pub(crate) fn at(&self, notes: impl Iterator<Item = u64>) -> Model {
        let mut then = Model { acknowledged: 0, from: 1, ..self.clone() };
        for note in notes {
            match note & WANTED {
                0 => then.acknowledged = then.acknowledged.max(note),
                _ => then.from = note & !WANTED,
            }
        }
        then
    }

    /// Whether a log may hold these records.
    pub(crate) fn admits(&self, records: &BTreeMap<u64, Vec<u8>>, replayed: &Replayed) -> Checked {
        require!(
            replayed.next > self.acknowledged,
            "{} was acknowledged, {} comes next",
            self.acknowledged,
            replayed.next
        );
        require!(
            records.keys().copied().eq(self.from..replayed.next),
            "records {:?} from {} to {} are not one by one",
            records.keys(),
            self.from,
            replayed.next
        );
        for (number, payload) in records {
            let appended = self.appended.get(number) == Some(payload);
            let refused = self.refused.get(number).is_some_and(|all| all.contains(payload));
            require!(
                appended || (refused && *number > self.acknowledged),
                "record {number} is not what was appended"
            );
        }
        Ok(records.len())
    }
}

/// A log that was opened, and its records.
pub(crate) type Opened = (Log, Replayed, BTreeMap<u64, Vec<u8>>);

/// Opens a log, and gives its records.
pub(crate) fn open(storage: Arc<dyn Storage>, from: u64) -> Result<Opened, ReplayError> {
    let mut records = BTreeMap::new();
    let mut each = |number: u64, payload: &[u8]| {
        assert!(records.insert(number, payload.to_vec()).is_none(), "record {number} twice");
        ControlFlow::Continue(())
    };
    let (log, replayed) = Log::open(storage, dir(), IDENTITY, from, &mut each)?;
    Ok((log, replayed, records))
}

/// A log that runs beside its model on a memory, whose journal is told what was acknowledged.
pub(crate) struct Running {
    pub(crate) memory: Memory,
    pub(crate) storage: Faulty,
    pub(crate) model: Model,
    pub(crate) log: Log,
}

impl Running {
    /// A new log in a new memory.
    pub(crate) fn begin() -> Running {
        let memory = Memory::new();
        memory.create_dir(dir()).unwrap();
        memory.sync_dir(Path::new("")).unwrap();
        // From here on the folder is there.
        let memory = memory.journal().image(memory.journal().len(), &mut Rng::with_seed(0));
        Running::recover(memory, &Model::new()).expect("an empty folder is a log")
    }

    /// The log that is in a memory, which must be as the model admits.
    pub(crate) fn recover(memory: Memory, model: &Model) -> Result<Running, String> {
        let storage = Faulty::new(Arc::new(memory.clone()));
        Running::attach(memory, storage, model)
    }

    /// The same through a storage that may fail, which is an error too.
    pub(crate) fn attach(memory: Memory, storage: Faulty, model: &Model) -> Result<Running, String> {
        let opened = open(Arc::new(storage.clone()), model.from);
        let (log, replayed, records) = opened.map_err(|error| error.to_string())?;
        model.admits(&records, &replayed)?;
        // What was found is durable from here on.
        let acknowledged = replayed.next - 1;
        memory.note(model.from | WANTED);
        memory.note(acknowledged);
        let mut model = Model { acknowledged, ..model.clone() };
        model.appended.split_off(&replayed.next);
        model.appended.extend(records);
        Ok(Running { memory, storage, model, log })
    }

    pub(crate) fn append(&mut self, payload: Vec<u8>) -> Result<(), AppendError> {
        let number = self.log.last() + 1;
        match self.log.append(&payload) {
            Ok(position) => {
                assert_eq!(position.sequence(), number);
                self.model.appended.insert(number, payload);
                Ok(())
            }
            Err(error) => {
                self.model.refused.entry(number).or_default().push(payload);
                Err(error)
            }
        }
    }

    pub(crate) fn sync(&mut self) -> bool {
        let Ok(number) = self.log.sync_all() else { return false };
        self.model.acknowledged = self.model.acknowledged.max(number);
        self.memory.note(number);
        true
    }

    /// Up to `number`, records are kept elsewhere.
    pub(crate) fn drop_through(&mut self, number: u64) -> std::io::Result<usize> {
        self.model.from = self.model.from.max(number + 1);
        self.memory.note(self.model.from | WANTED);
        self.log.drop_through(number)
    }

    /// One thing that a user may do, drawn by chance.
    pub(crate) fn step(self, random: &mut Rng) -> Result<Running, String> {
        let mut this = self;
        match random.usize(..17) {
            0..8 => this.append(payload(random)).map_err(|error| error.to_string())?,
            8..12 => require!(this.sync(), "a sync failed"),
            12 => this.log.rotate().map_err(|error| error.to_string())?,
            13 => {
                let span = this.model.acknowledged + 1 - this.model.from;
                let number = this.model.from + random.usize(..span as usize + 1) as u64 - 1;
                this.drop_through(number).map_err(|error| error.to_string())?;
            }
            14 => {
                // The disk is full, or broken, for a write or two.
                let failure = [Failure::Full, Failure::Broken, Failure::Handles][random.usize(..3)];
                this.storage.fail(&Call::WRITES, random.usize(..3) as u64, random.usize(..2) == 0, failure);
                for _ in 0..3 {
                    let answer = this.append(payload(random));
                    require!(
                        matches!(answer, Ok(()) | Err(AppendError::Refused(_))),
                        "a failed write ended the log"
                    );
                }
                this.storage.heal();
            }
            15 => {
                // The process ends, the machine goes on: all that was appended is there.
                let Running { memory, model, log, .. } = this;
                drop(log);
                let appended = model.appended.keys().last().map_or(0, |&last| last);
                this = Running::recover(memory, &model)?;
                let found = this.log.last().max(this.model.from - 1);
                require!(found >= appended, "a killed process lost records from {found} to {appended}");
            }
            _ => {
                let Running { memory, mut model, log, .. } = this;
                model.acknowledged = log.last();
                log.close().map_err(|error| error.to_string())?;
                memory.note(model.acknowledged);
                this = Running::recover(memory, &model)?;
            }
        }
        Ok(this)
    }
}

/// Mostly short, sometimes over several sectors, sometimes empty, sometimes zeros.
pub(crate) fn payload(random: &mut Rng) -> Vec<u8> {
    let most = [1, 40, 300, 2000][random.usize(..4)];
    let byte = if random.usize(..8) == 0 { 0 } else { random.u64(..) as u8 };
    let length = random.usize(..most);
    (0..length).map(|at| byte.wrapping_mul(at as u8 | 1)).collect()
}
