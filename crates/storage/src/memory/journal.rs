//! The changes of a [`Memory`], and what a disk may hold after a power cut between any two of them.
//!
//! The rules are the harshest that POSIX leaves open, after Pillai et al., "All File Systems Are Not Created Equal"
//! (OSDI 2014), and Lucene's `MockDirectoryWrapper.crash()`:
//!
//! - Bytes that were synced stay. Of a file's other bytes any number is there, and each sector of 512 bytes of them by
//!   itself is as written, zero, or torn: partly as written, else zero.
//! - A change of names (a file made, renamed, linked or removed) is durable once every folder that it touches was
//!   synced after it. Of the other changes any subset took place, each of them whole or not at all.
//! - A name that is durable says nothing about the bytes: renaming an unsynced file may leave an empty one.

use super::tree::{Inode, Number, Renaming, Tree};
use super::{Memory, State};
use crate::storage::Kind;
use fastrand::Rng;
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};

const SECTOR: usize = 512;

/// One change.
#[derive(Clone, Debug)]
pub(super) enum Op {
    /// Names that change together, after an inode was made for one of them.
    Names {
        made: Option<Kind>,
        names: Vec<Renaming>,
    },
    Append {
        file: Number,
        bytes: Arc<[u8]>,
    },
    Sync(Number),
    SyncFolder(Number),
    Note(u64),
}

impl Op {
    /// Does it, as it looks while nothing crashes.
    pub(super) fn apply(&self, tree: &mut Tree) {
        self.make(tree);
        if let Op::Names { names, .. } = self {
            tree.apply(names);
        }
    }

    /// Does all of it but the change of names.
    fn make(&self, tree: &mut Tree) {
        match self {
            Op::Names { made: Some(Kind::File), .. } => tree.inodes.push(Inode::File(Arc::default())),
            Op::Names { made: Some(Kind::Folder), .. } => tree.inodes.push(Inode::Folder(BTreeMap::new())),
            Op::Append { file, bytes } => tree.append(*file, bytes),
            Op::Names { made: None, .. } | Op::Sync(_) | Op::SyncFolder(_) | Op::Note(_) => {}
        }
    }
}

/// All changes of a [`Memory`] up to a moment, numbered from 0. Moment n is before change n.
#[derive(Clone, Debug)]
pub struct Journal {
    pub(super) base: Tree,
    pub(super) ops: Vec<Op>,
}

impl Journal {
    /// How many changes there are, which is also the last moment.
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Whether nothing was changed.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// The changes that are syncs, of files or folders: before and after them most is at stake.
    pub fn syncs(&self) -> impl Iterator<Item = usize> {
        let syncs = |op: &Op| matches!(op, Op::Sync(_) | Op::SyncFolder(_));
        self.ops.iter().enumerate().filter(move |(_, op)| syncs(op)).map(|(at, _)| at)
    }

    /// The numbers noted before moment `at`.
    pub fn notes(&self, at: usize) -> impl Iterator<Item = u64> {
        self.ops[..at].iter().filter_map(|op| match op {
            Op::Note(number) => Some(*number),
            _ => None,
        })
    }

    /// What is there if the process, but not the machine, ends at moment `at`: everything, durable or not.
    pub fn killed(&self, at: usize) -> Memory {
        let mut tree = self.base.clone();
        self.ops[..at].iter().for_each(|op| op.apply(&mut tree));
        let state =
            State { tree, base: self.base.clone(), ops: self.ops[..at].to_vec(), locked: HashSet::new() };
        Memory { state: Arc::new(Mutex::new(state)) }
    }

    /// What may be there if the power fails at moment `at`: one of the possible outcomes, drawn by `random`. All that
    /// is there is durable. Its own journal begins empty.
    pub fn image(&self, at: usize, random: &mut Rng) -> Memory {
        let ops = &self.ops[..at];
        let mut tree = self.base.clone();
        let mut synced: Vec<usize> = tree.inodes.iter().map(bytes).collect();
        for op in ops {
            op.make(&mut tree);
            synced.resize(tree.inodes.len(), 0);
            if let Op::Sync(file) = op {
                synced[*file] = bytes(&tree.inodes[*file]);
            }
        }
        // None, all, or any of the changes of names that are still open: the extremes are as likely as all between.
        let mode = random.usize(..4);
        for (names, durable) in changes_of_names(ops) {
            let happened = durable
                || match mode {
                    0 => false,
                    1 => true,
                    _ => random.usize(..2) == 0,
                };
            if happened {
                tree.apply(names);
            }
        }
        for (inode, synced) in tree.inodes.iter_mut().zip(synced) {
            if let Inode::File(bytes) = inode
                && synced < bytes.len()
            {
                tear(Arc::make_mut(bytes), synced, random);
            }
        }
        let state = State { tree: tree.clone(), base: tree, ops: Vec::new(), locked: HashSet::new() };
        Memory { state: Arc::new(Mutex::new(state)) }
    }
}

fn bytes(inode: &Inode) -> usize {
    match inode {
        Inode::File(bytes) => bytes.len(),
        Inode::Folder(_) => 0,
    }
}

/// The changes of names in order, each with whether it is durable.
fn changes_of_names(ops: &[Op]) -> Vec<(&[Renaming], bool)> {
    // Backwards: which folders are synced after.
    let mut synced = HashSet::new();
    let mut changes = Vec::new();
    for op in ops.iter().rev() {
        match op {
            Op::SyncFolder(folder) => drop(synced.insert(*folder)),
            Op::Names { names, .. } => {
                changes.push((&names[..], names.iter().all(|one| synced.contains(&one.folder))));
            }
            Op::Append { .. } | Op::Sync(_) | Op::Note(_) => {}
        }
    }
    changes.reverse();
    changes
}

/// Damages what lies beyond the first `synced` bytes as a power cut may.
fn tear(bytes: &mut Vec<u8>, synced: usize, random: &mut Rng) {
    match random.usize(..4) {
        0 => return bytes.truncate(synced),
        1 => return,
        2 => bytes.truncate(synced + random.usize(..bytes.len() - synced + 1)),
        _ => {}
    }
    let mut at = synced;
    while at < bytes.len() {
        let end = bytes.len().min((at / SECTOR + 1) * SECTOR);
        let cut = at + random.usize(..end - at + 1);
        match random.usize(..4) {
            0 => bytes[at..end].fill(0),
            1 => bytes[at..cut].fill(0),
            2 => bytes[cut..end].fill(0),
            _ => {}
        }
        at = end;
    }
}
