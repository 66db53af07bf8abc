//! Which segments are merged: tiers, as in Lucene's `TieredMergePolicy` (and document 003's settings of that name).
//!
//! Sizes count live rows only. Segments form tiers, each `segments_per_tier` times as large as the one below; when there
//! are more segments than the tiers hold, the cheapest and most even merge is chosen, one that drops dead rows before
//! others. Pure: who merges, and when, is decided elsewhere.

use super::segment::SegmentId;
use serde::{Deserialize, Serialize};

/// When segments are merged. The names are those of OpenSearch's settings `index.merge.policy.*`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MergePolicy {
    /// Segments smaller than so many bytes count as that large, so that tiny ones do not pile up.
    pub floor_segment: u64,
    /// Segments of about the same size that there may be, 2 or more.
    pub segments_per_tier: usize,
    /// Segments merged at once at most, 2 or more.
    pub max_merge_at_once: usize,
    /// No merge makes a larger segment, bytes. [`Table::force_merge`](super::Table::force_merge) does.
    pub max_merged_segment: u64,
    /// Dead rows, of all, from which on segments are merged only to be rid of them; 0 to 1.
    pub deletes_allowed: f64,
}

impl Default for MergePolicy {
    /// 16 MiB, 10, 10, 5 GiB, 0.2.
    fn default() -> Self {
        MergePolicy {
            floor_segment: 16 << 20,
            segments_per_tier: 10,
            max_merge_at_once: 10,
            max_merged_segment: 5 << 30,
            deletes_allowed: 0.2,
        }
    }
}

/// A segment that may be merged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Its number.
    pub segment: SegmentId,
    /// Bytes of its files.
    pub bytes: u64,
    /// Rows that are alive, of all; 0 to 1.
    pub live: f64,
}

impl Candidate {
    /// What it would take without dead rows.
    fn live_bytes(&self) -> u64 {
        (self.bytes as f64 * self.live.clamp(0.0, 1.0)) as u64
    }
}

impl MergePolicy {
    /// Segments that should be one, two or more, or one that would lose its dead rows; `None`: all is well.
    pub fn choose(&self, segments: &[Candidate]) -> Option<Vec<SegmentId>> {
        self.choose_where(segments, |_| true)
    }

    /// As [`choose`](Self::choose), of what `fits`: the best is asked about first.
    pub fn choose_where(
        &self,
        segments: &[Candidate],
        fits: impl Fn(&[SegmentId]) -> bool,
    ) -> Option<Vec<SegmentId>> {
        let at_once = self.max_merge_at_once.max(2);
        let mut sorted = segments.to_vec();
        sorted.sort_by_key(|one| (std::cmp::Reverse(one.live_bytes()), one.segment));
        let (bytes, live) = (sum(&sorted, |one| one.bytes), sum(&sorted, Candidate::live_bytes));
        let too_dead = bytes > 0 && (bytes - live) as f64 > self.deletes_allowed * bytes as f64;
        // What is half as large as may be is done, unless it is what is dead.
        sorted.retain(|one| {
            one.live_bytes() <= self.max_merged_segment / 2
                || (too_dead && 1.0 - one.live > self.deletes_allowed)
        });
        if !too_dead && sorted.len() <= self.allowed(&sorted) {
            return None;
        }
        let merges = (0..sorted.len()).filter_map(|first| {
            let mut taken: Vec<Candidate> = Vec::new();
            let mut total = 0;
            for one in &sorted[first..] {
                let fits = total + one.live_bytes() <= self.max_merged_segment || taken.is_empty();
                if taken.len() < at_once && fits {
                    total += one.live_bytes();
                    taken.push(*one);
                }
            }
            let gains =
                taken.len() > 1 || taken.iter().any(|one| too_dead && 1.0 - one.live > self.deletes_allowed);
            let segments = || taken.iter().map(|one| one.segment).collect::<Vec<_>>();
            gains.then(|| (self.score(&taken, at_once), segments()))
        });
        let mut merges: Vec<_> = merges.collect();
        merges.sort_by(|a, b| a.0.total_cmp(&b.0));
        merges.into_iter().map(|(_, segments)| segments).find(|segments| fits(segments))
    }

    /// How many segments the tiers hold.
    fn allowed(&self, segments: &[Candidate]) -> usize {
        let per_tier = self.segments_per_tier.max(2);
        let floor = self.floor_segment.max(1);
        let smallest = segments.iter().map(Candidate::live_bytes).min().unwrap_or(0);
        let mut left = sum(segments, |one| one.live_bytes().max(floor));
        let (mut size, mut allowed) = (smallest.max(floor), 0);
        loop {
            let on_tier = left.div_ceil(size) as usize;
            if on_tier <= per_tier || size >= self.max_merged_segment {
                return allowed + on_tier;
            }
            allowed += per_tier;
            left -= per_tier as u64 * size;
            size = size
                .saturating_mul(self.max_merge_at_once.max(2) as u64)
                .min(self.max_merged_segment.max(floor));
        }
    }

    /// The smaller the better: even merges cost least for what they save; of these the small ones, and those that drop much.
    fn score(&self, taken: &[Candidate], at_once: usize) -> f64 {
        let floored = |one: &Candidate| one.live_bytes().max(self.floor_segment.max(1));
        let all = sum(taken, floored) as f64;
        let full = taken.len() == at_once && sum(taken, Candidate::live_bytes) >= self.max_merged_segment;
        let skew = if full { 1.0 / at_once as f64 } else { taken.first().map_or(0, floored) as f64 / all };
        let (bytes, live) = (sum(taken, |one| one.bytes) as f64, sum(taken, Candidate::live_bytes) as f64);
        skew * live.max(1.0).powf(0.05) * (live / bytes.max(1.0)).powi(2)
    }
}

fn sum(segments: &[Candidate], of: impl Fn(&Candidate) -> u64) -> u64 {
    segments.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn candidates() -> impl Strategy<Value = Vec<Candidate>> {
        let one = (0u64..1 << 20, 0u32..=10).prop_map(|(bytes, live)| (bytes, f64::from(live) / 10.0));
        prop::collection::vec(one, 0..60).prop_map(|all| {
            let number = |(i, (bytes, live))| Candidate { segment: SegmentId(i), bytes, live };
            (0..).zip(all).map(number).collect()
        })
    }

    proptest! {
        /// Merging goes on until nothing is to be done, never makes what is too large, and writes each byte a few times.
        #[test]
        fn merging_ends(mut segments in candidates(), per_tier in 2usize..12, at_once in 2usize..12) {
            let policy = MergePolicy {
                floor_segment: 1 << 10,
                segments_per_tier: per_tier,
                max_merge_at_once: at_once,
                max_merged_segment: 1 << 21,
                ..MergePolicy::default()
            };
            let (mut next, mut merges) = (1000, 0);
            while let Some(chosen) = policy.choose(&segments) {
                let taken: Vec<Candidate> =
                    segments.iter().filter(|one| chosen.contains(&one.segment)).copied().collect();
                prop_assert_eq!(taken.len(), chosen.len());
                let live = sum(&taken, Candidate::live_bytes);
                prop_assert!(taken.len() <= at_once && (live <= 1 << 21 || taken.len() == 1));
                prop_assert!(taken.len() > 1 || taken[0].live < 1.0 - policy.deletes_allowed);
                segments.retain(|one| !chosen.contains(&one.segment));
                segments.push(Candidate { segment: SegmentId(next), bytes: live, live: 1.0 });
                next += 1;
                merges += 1;
                prop_assert!(merges < 200, "{segments:?}");
            }
            let small = segments.iter().filter(|one| one.live_bytes() <= 1 << 20).count();
            // Twelve tiers are more than there are between floor and largest; of the last there may be any number.
            let last_tier = sum(&segments, Candidate::live_bytes) as usize >> 20;
            prop_assert!(small <= 12 * per_tier + last_tier + 1, "{} segments left", small);
        }
    }

    #[test]
    fn a_tier_is_merged_when_it_is_full_and_dead_rows_before_others() {
        let policy = MergePolicy {
            segments_per_tier: 3,
            max_merge_at_once: 3,
            floor_segment: 1,
            ..MergePolicy::default()
        };
        let segment = |number, bytes, live| Candidate { segment: SegmentId(number), bytes, live };
        let three = [segment(1, 100, 1.0), segment(2, 100, 1.0), segment(3, 100, 1.0)];
        assert_eq!(policy.choose(&three), None);
        // Five are more than three of this size and one three times as large.
        let five = [three.to_vec(), vec![segment(4, 100, 1.0), segment(5, 100, 1.0)]].concat();
        assert_eq!(policy.choose(&five[..4]), None);
        assert_eq!(policy.choose(&five).map(|chosen| chosen.len()), Some(3));
        assert_eq!(policy.choose(&[segment(1, 100, 0.5)]), Some(vec![SegmentId(1)]));
        assert_eq!(policy.choose(&[]), None);
    }
}
