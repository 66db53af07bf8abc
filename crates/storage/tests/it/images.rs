//! The rules of crash images: what must be there is always there, what may be is sometimes.

use lanewise_storage::{Memory, Rng, Storage};
use std::collections::HashSet;
use std::path::Path;

fn path(name: &str) -> &Path {
    Path::new(name)
}

/// What `look` sees in many images of the moment now.
fn seen<T: Eq + std::hash::Hash>(memory: &Memory, look: impl Fn(&Memory) -> T) -> HashSet<T> {
    let journal = memory.journal();
    (0..400).map(|seed| look(&journal.image(journal.len(), &mut Rng::with_seed(seed)))).collect()
}

fn there(memory: &Memory, name: &str) -> bool {
    memory.open(path(name)).is_ok()
}

fn contents(memory: &Memory, name: &str) -> Vec<u8> {
    (*memory.open(path(name)).unwrap()).as_ref().to_vec()
}

#[test]
fn synced_bytes_stay_and_sectors_of_others_are_there_lost_or_torn() {
    let memory = Memory::new();
    let file = memory.create(path("file")).unwrap();
    memory.sync_dir(path("")).unwrap();
    file.append(&[1; 700]).unwrap();
    file.sync().unwrap();
    assert_eq!(seen(&memory, |image| contents(image, "file")), HashSet::from([vec![1; 700]]));
    file.append(&[2; 1000]).unwrap();
    let all = seen(&memory, |image| contents(image, "file"));
    assert!(all.iter().all(|bytes| bytes[..700] == [1; 700] && bytes.len() <= 1700));
    assert!(all.contains(&vec![1; 700]), "nothing was written");
    assert!(all.contains(&[vec![1; 700], vec![2; 1000]].concat()), "all was written");
    assert!(all.iter().any(|bytes| (701..1700).contains(&bytes.len())), "the length lies between");
    // The sector from 1024 to 1536, where the file goes on behind it.
    let sector = |bytes: &Vec<u8>| bytes.get(1024..1536).map(<[u8]>::to_vec);
    let sectors: HashSet<Vec<u8>> =
        all.iter().filter(|bytes| bytes.len() == 1700).filter_map(sector).collect();
    assert!(sectors.contains(&vec![0; 512]) && sectors.contains(&vec![2; 512]), "lost, or there");
    assert!(sectors.iter().any(|sector| sector[0] == 2 && sector[511] == 0), "its front is there");
    assert!(sectors.iter().any(|sector| sector[0] == 0 && sector[511] == 2), "its end is there");
    let later =
        |bytes: &Vec<u8>| bytes.len() == 1700 && bytes[1024..1536] == [0; 512] && bytes[1536..] == [2; 164];
    assert!(all.iter().any(later), "a later sector is there, an earlier one is not");
}

#[test]
fn of_names_that_were_not_synced_any_are_there() {
    let memory = Memory::new();
    for name in ["a", "b"] {
        memory.create(path(name)).unwrap();
    }
    let names = |image: &Memory| (there(image, "a"), there(image, "b"));
    let all = HashSet::from([(false, false), (false, true), (true, false), (true, true)]);
    assert_eq!(seen(&memory, names), all);
    memory.sync_dir(path("")).unwrap();
    assert_eq!(seen(&memory, names), HashSet::from([(true, true)]));
    memory.remove(path("a")).unwrap();
    assert_eq!(seen(&memory, names), HashSet::from([(true, true), (false, true)]));
}

#[test]
fn a_rename_is_whole_and_durable_once_both_folders_are_synced() {
    let memory = Memory::new();
    for folder in ["d", "e"] {
        memory.create_dir(path(folder)).unwrap();
    }
    let file = memory.create(path("d/file")).unwrap();
    file.append(b"new").unwrap();
    memory.create(path("e/file")).unwrap().sync().unwrap();
    for folder in ["", "d", "e"] {
        memory.sync_dir(path(folder)).unwrap();
    }
    memory.rename(path("d/file"), path("e/file")).unwrap();
    let look = |image: &Memory| (there(image, "d/file"), contents(image, "e/file").is_empty());
    for folder in ["d", "e"] {
        let found = seen(&memory, look);
        assert!(found.contains(&(true, true)), "it did not happen");
        assert!(found.contains(&(false, false)), "it did");
        // The bytes were never synced: the name leads to an empty file.
        assert!(found.contains(&(false, true)));
        memory.sync_dir(path(folder)).unwrap();
    }
    assert_eq!(seen(&memory, look), HashSet::from([(false, true), (false, false)]));
    file.sync().unwrap();
    assert_eq!(seen(&memory, look), HashSet::from([(false, false)]));
}

#[test]
fn a_killed_process_leaves_all_and_an_image_is_durable() {
    let memory = Memory::new();
    memory.create(path("file")).unwrap().append(b"unsynced").unwrap();
    memory.note(3);
    memory.note(4);
    let journal = memory.journal();
    let killed = journal.killed(journal.len());
    assert_eq!(contents(&killed, "file"), b"unsynced");
    assert_eq!(seen(&killed, |image| there(image, "file")), HashSet::from([true, false]));
    assert!(!there(&journal.killed(0), "file"));
    assert_eq!(journal.notes(journal.len()).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(journal.notes(journal.len() - 1).collect::<Vec<_>>(), [3]);
    // Of equal seeds come equal images, and nothing of an image is lost by a second crash.
    let bytes = |seed| {
        let image = journal.image(journal.len(), &mut Rng::with_seed(seed));
        assert!(image.journal().is_empty());
        let found = there(&image, "file").then(|| contents(&image, "file"));
        assert_eq!(seen(&image, |again| there(again, "file").then(|| contents(again, "file"))).len(), 1);
        found
    };
    for seed in 0..20 {
        assert_eq!(bytes(seed), bytes(seed));
    }
}
