//! What victims leave of snapshots: one whose end was heard of is there, one that was cut off is there as a whole or not at
//! all, and none changes any more.

use crate::oracle::Oracle;
use crate::token::{self, Found};
use crate::victim::resources;
use crate::{BACKUP, all_ids, alone};
use lanewise_engine::table::{Repository, Table, When, Write};
use lanewise_storage::{Disk, Rng};
use std::collections::BTreeMap;
use std::error::Error;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// Snapshots that are kept, at most.
const KEPT: usize = 4;

/// The snapshots of a table.
#[derive(Default)]
pub(crate) struct Snapshots {
    /// What is in them.
    kept: BTreeMap<String, BTreeMap<String, Found>>,
}

impl Snapshots {
    /// Restores the new ones and one of the others. Says how many.
    pub(crate) fn look(
        &mut self,
        folder: &Path,
        oracle: &mut Oracle,
        random: &mut Rng,
    ) -> Result<usize, Box<dyn Error>> {
        let repository = Repository::new(Arc::new(Disk::new(&folder.join(BACKUP))?));
        let restored = |name: &str, random: &mut Rng| {
            restored(&repository, name, random).map_err(|what| format!("snapshot {name}: {what}"))
        };
        let mut count = 0;
        if let Some(name) = random.choice(self.kept.keys()) {
            let (_, found) = restored(name, random)?;
            if found != self.kept[name] {
                return Err(format!("snapshot {name} was {:?}, is {found:?}", self.kept[name]).into());
            }
            count += 1;
        }
        let mut listed = Vec::new();
        for (name, read) in repository.list()? {
            read.map_err(|error| format!("snapshot {name}: {error}"))?;
            listed.push(name);
        }
        for saved in oracle.snapshots() {
            let name = &saved.name;
            if listed.contains(name) {
                let (last, found) = restored(name, random)?;
                oracle.look_at(&saved, last, &found).map_err(|what| format!("snapshot {name}: {what}"))?;
                self.kept.insert(name.clone(), found);
                count += 1;
            } else if saved.done {
                return Err(format!("snapshot {name} is lost").into());
            }
        }
        if !listed.iter().eq(self.kept.keys()) {
            return Err(format!("snapshots {listed:?}, expected {:?}", self.kept.keys()).into());
        }
        while self.kept.len() > KEPT {
            let name = random.choice(self.kept.keys()).expect("there are some").clone();
            repository.delete(&name)?;
            self.kept.remove(&name);
        }
        Ok(count)
    }
}

/// The last number of a snapshot, and what is in it.
fn restored(
    repository: &Repository,
    name: &str,
    random: &mut Rng,
) -> Result<(u64, BTreeMap<String, Found>), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let disk = Disk::new(folder.path())?;
    repository.restore(name, &disk, &mut |_, _| ControlFlow::Continue(()))?;
    let table = Table::open(Arc::new(disk), resources(random))?;
    let found = token::contents(&table, all_ids())?;
    // It goes on counting where the snapshot ended.
    let document = token::document(1);
    let put = Write::Put { id: Some(alone(0)), document, vectors: Vec::new(), when: When::Always };
    let next = table.write(vec![put]).remove(0)?.seq;
    Ok((next - 1, found))
}
