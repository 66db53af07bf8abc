//! Power cuts. `LANEWISE_CRASHES=n` looks at no fewer than n images of the log; a failure prints its seed.

use crate::check::{Checked, blobs, logs, manifests};

/// Seed after seed until enough images were looked at.
#[expect(clippy::print_stdout, reason = "counts are for whoever runs it long")]
fn until(images: usize, check: fn(u64) -> Checked) {
    let mut done = 0;
    for seed in 1.. {
        done += check(seed).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        if done >= images {
            println!("{done} images of {seed} histories");
            return;
        }
    }
}

#[test]
fn what_the_log_acknowledged_is_there_after_any_crash_and_a_second_one() {
    let images = std::env::var("LANEWISE_CRASHES").map_or(100_000, |n| n.parse().expect("a number"));
    until(images, logs::crashes);
}

#[test]
fn a_manifest_is_the_old_or_the_new_one_after_any_crash() {
    until(4_000, manifests::crashes);
}

#[test]
fn a_blob_whose_name_was_synced_is_whole_after_any_crash() {
    until(2_000, blobs::crashes);
}
