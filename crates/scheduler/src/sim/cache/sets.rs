//! A set-associative cache, line by line, and two of them one behind the other.
//!
//! With LRU this is cachegrind's cache, way for way: `make sim-cachegrind` replays a trace under both.

use crate::sim::random::Random;
use std::fmt;
use std::str::FromStr;

/// Which line of a full set goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replacement {
    /// That which was not used for the longest.
    #[default]
    Lru,
    /// Any, by a seeded draw.
    Random,
    /// Static re-reference interval prediction with two bits and hit priority (Jaleel et al., ISCA 2010): new lines are
    /// taken for such as will not come again soon, until they do.
    Srrip,
}

impl Replacement {
    /// All.
    pub const ALL: [Replacement; 3] = [Replacement::Lru, Replacement::Random, Replacement::Srrip];

    /// The name that [`FromStr`] reads.
    pub fn name(self) -> &'static str {
        match self {
            Replacement::Lru => "lru",
            Replacement::Random => "random",
            Replacement::Srrip => "srrip",
        }
    }
}

impl fmt::Display for Replacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No replacement has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown replacement {0:?}: use lru, random or srrip")]
pub struct UnknownReplacement(String);

impl FromStr for Replacement {
    type Err = UnknownReplacement;

    fn from_str(name: &str) -> Result<Self, UnknownReplacement> {
        let found = Replacement::ALL.into_iter().find(|replacement| replacement.name() == name);
        found.ok_or_else(|| UnknownReplacement(name.into()))
    }
}

/// What SRRIP gives a new line, and the value at which a line goes.
const LONG: u8 = 2;
const DISTANT: u8 = 3;
const EMPTY: u64 = u64::MAX;

/// One cache.
#[derive(Clone, Debug)]
pub struct Sets {
    ways: usize,
    sets: u64,
    replacement: Replacement,
    /// The lines of each set; with LRU the last used first.
    lines: Vec<u64>,
    /// SRRIP's predictions.
    intervals: Vec<u8>,
    random: Random,
}

impl Sets {
    /// An empty cache of `lines` lines in sets of `ways`; the seed is that of random replacement.
    ///
    /// # Panics
    /// If there is not a whole set.
    pub fn new(lines: u64, ways: usize, replacement: Replacement, seed: u64) -> Self {
        assert!(ways > 0 && lines >= ways as u64, "{lines} lines are no set of {ways} ways");
        let sets = lines / ways as u64;
        let count = sets as usize * ways;
        let intervals = if replacement == Replacement::Srrip { vec![DISTANT; count] } else { Vec::new() };
        Sets { ways, sets, replacement, lines: vec![EMPTY; count], intervals, random: Random::new(seed) }
    }

    /// Touches a line, by its number (address / 64): whether it was there.
    pub fn touch(&mut self, line: u64) -> bool {
        let start = (line % self.sets) as usize * self.ways;
        let ways = &mut self.lines[start..start + self.ways];
        let found = ways.iter().position(|&held| held == line);
        match self.replacement {
            Replacement::Lru => {
                let from = found.unwrap_or(ways.len() - 1);
                ways[..=from].rotate_right(1);
                ways[0] = line;
            }
            Replacement::Random if found.is_none() => {
                let empty = ways.iter().position(|&held| held == EMPTY);
                let victim = empty.unwrap_or_else(|| self.random.below(ways.len() as u64) as usize);
                ways[victim] = line;
            }
            Replacement::Random => {}
            Replacement::Srrip => {
                let intervals = &mut self.intervals[start..start + ways.len()];
                match found {
                    Some(at) => intervals[at] = 0,
                    None => {
                        let oldest = *intervals.iter().max().expect("a set has ways");
                        intervals.iter_mut().for_each(|interval| *interval += DISTANT - oldest);
                        let victim = intervals.iter().position(|&interval| interval == DISTANT);
                        let victim = victim.expect("the oldest has just become distant");
                        ways[victim] = line;
                        intervals[victim] = LONG;
                    }
                }
            }
        }
        found.is_some()
    }
}

/// A first cache, and a last one that sees what misses there.
#[derive(Clone, Debug)]
pub struct Levels {
    /// Next to the core.
    pub first: Sets,
    /// Next to memory.
    pub last: Sets,
}

impl Levels {
    /// Touches a line: whether it missed in the first cache, and whether in both.
    pub fn touch(&mut self, line: u64) -> (bool, bool) {
        let missed = !self.first.touch(line);
        (missed, missed && !self.last.touch(line))
    }
}
