//! The log, cut off at every moment that matters, and cut off again while it recovers.

use super::Checked;
use super::history::{Running, payload};
use crate::require;
use lanewise_storage::{Call, Failure, Journal, Rng};

/// Runs a random history, cuts the power before and after each sync (and at some moments between), recovers, goes on, and
/// cuts the power there too. Says how many images were recovered.
pub(crate) fn crashes(seed: u64) -> Checked {
    let random = &mut Rng::with_seed(seed);
    let mut running = Running::begin();
    for _ in 0..24 {
        running = running.step(random)?;
    }
    let journal = running.memory.journal();
    let mut images = 0;
    for at in moments(&journal, random) {
        let model = running.model.at(journal.notes(at));
        // Numbers that the model's later life has dropped or reached do not matter: contents go by number.
        let memory = journal.image(at, random);
        let mut again = Running::recover(memory, &model).map_err(|why| format!("at {at}: {why}"))?;
        images += 1;
        let before = again.model.clone();
        for _ in 0..random.usize(..3) {
            again.append(payload(random)).map_err(|error| error.to_string())?;
        }
        require!(again.sync(), "at {at}: a sync failed");
        let second = again.memory.journal();
        // One of its moments for each of the first's; what was recovered counts as acknowledged once it is noted.
        let at_second = random.usize(..second.len() + 1);
        let mut model_second = again.model.at(second.notes(at_second));
        model_second.from = model.from;
        model_second.acknowledged = model_second.acknowledged.max(model.acknowledged);
        // Until recovery made them durable, what was read may be lost as far as it was not acknowledged.
        model_second.appended.extend(before.appended);
        let memory = second.image(at_second, random);
        Running::recover(memory, &model_second)
            .map_err(|why| format!("at {at}, then at {at_second}: {why}"))?;
        images += 1;
    }
    Ok(images)
}

/// Before and after each sync, and one moment in eight of the others.
pub(crate) fn moments(journal: &Journal, random: &mut Rng) -> Vec<usize> {
    let mut moments: Vec<usize> = journal.syncs().flat_map(|at| [at, at + 1]).collect();
    moments.extend((0..=journal.len()).filter(|_| random.usize(..8) == 0));
    moments.sort_unstable();
    moments.dedup();
    moments
}

/// After a failed sync nothing more is taken or acknowledged, whatever the disk says then.
pub(crate) fn poison() -> Checked {
    let mut running = Running::begin();
    running.append(vec![1; 10]).map_err(|error| error.to_string())?;
    require!(running.sync(), "a sync failed");
    running.append(vec![2; 10]).map_err(|error| error.to_string())?;
    running.storage.fail(&[Call::Sync], 0, true, Failure::Broken);
    require!(!running.sync(), "a failed sync was acknowledged");
    require!(!running.sync(), "a sync after a failed one was acknowledged");
    require!(running.append(vec![3; 10]).is_err(), "an append after a failed sync was taken");
    require!(running.log.rotate().is_err(), "a file was begun after a failed sync");
    require!(running.log.durable() == 1, "{} records are said to be durable", running.log.durable());
    let why = running.log.sync_all().unwrap_err().to_string();
    require!(why.contains(&std::io::Error::from_raw_os_error(5).to_string()), "{why:?} does not say why");
    Ok(1)
}
