//! The manifest, cut off at every moment.

use super::Checked;
use super::logs::moments;
use crate::require;
use lanewise_storage::manifest::{self, ReadError};
use lanewise_storage::{Faulty, Memory, Rng, remove_temporaries};
use std::path::Path;
use std::sync::Arc;

fn path() -> &'static Path {
    Path::new("manifest")
}

fn contents(generation: u64) -> Vec<u8> {
    (0..generation * 397 % 1500).map(|at| (at ^ generation) as u8).collect()
}

/// Replaces the manifest after the generation `from`, notes each.
fn run(memory: &Memory, from: u64) -> Result<u64, String> {
    let storage = Faulty::new(Arc::new(memory.clone()));
    let mut generation = from;
    for _ in 0..5 {
        generation = manifest::replace(&storage, path(), generation, &contents(generation + 1))
            .map_err(|error| error.to_string())?;
        memory.note(generation);
    }
    Ok(generation)
}

/// What is there after a crash: a whole manifest, no older than what was acknowledged.
fn found(memory: &Memory, acknowledged: u64, newest: u64) -> Result<u64, String> {
    let generation = match manifest::read(memory, path()) {
        Ok(found) => {
            require!(found.contents == contents(found.generation), "wrong contents");
            found.generation
        }
        Err(ReadError::Missing) => 0,
        Err(error) => return Err(error.to_string()),
    };
    require!(
        (acknowledged..=newest).contains(&generation),
        "generation {generation}, {acknowledged} was acknowledged, {newest} the last"
    );
    Ok(generation)
}

/// Says how many images were looked at.
pub(crate) fn crashes(seed: u64) -> Checked {
    let random = &mut Rng::with_seed(seed);
    let memory = Memory::new();
    run(&memory, 0)?;
    let journal = memory.journal();
    let mut images = 0;
    for at in moments(&journal, random) {
        let acknowledged = journal.notes(at).last().unwrap_or(0);
        let image = journal.image(at, random);
        let generation = found(&image, acknowledged, acknowledged + 1)?;
        remove_temporaries(&image, Path::new("")).map_err(|error| error.to_string())?;
        run(&image, generation)?;
        let second = image.journal();
        let at = random.usize(..second.len() + 1);
        let acknowledged = second.notes(at).last().unwrap_or(generation);
        found(&second.image(at, random), acknowledged, acknowledged + 1)?;
        images += 2;
    }
    Ok(images)
}
