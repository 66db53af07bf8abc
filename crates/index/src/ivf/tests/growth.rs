//! Lists that grow: against a vector of what was put in, and while they are read.

use super::*;
use crate::ivf::lists::List;
use proptest::prelude::*;
use std::sync::atomic::AtomicBool;

/// A code and bias that can be told from the row.
fn code_of(form: Form, row: u32) -> (Vec<u8>, u16) {
    let mut draws = kmeans::Draws(u64::from(row));
    let most = if let Form::Blocks { .. } = form { 16 } else { 256 };
    let code = (0..form.code_bytes()).map(|_| draws.below(most) as u8).collect();
    (code, if let Form::Blocks { .. } = form { row as u16 ^ 0x5a5a } else { 0 })
}

fn forms() -> impl Strategy<Value = Form> {
    prop_oneof![
        (1usize..40).prop_map(|stride| Form::Rows { stride }),
        (1usize..40).prop_map(|runs| Form::Blocks { runs })
    ]
}

fn all(list: &List) -> Vec<(u32, Vec<u8>, u16)> {
    let mut all = Vec::new();
    list.entries(&mut |row, code, bias| all.push((row, code.to_vec(), bias)));
    all
}

proptest! {
    #[test]
    fn a_list_holds_what_was_put_in(
        form in forms(), steps in proptest::collection::vec((any::<bool>(), 0usize..90), 0..12), modulus in 1u32..5,
    ) {
        let list = List::new(form);
        let mut model = Vec::new();
        for (whole, count) in steps {
            let rows = model.len() as u32..(model.len() + count) as u32;
            if whole {
                let first = rows.start;
                list.extend(count, &mut |i, to| {
                    let (code, bias) = code_of(form, first + i as u32);
                    to.copy_from_slice(&code);
                    (first + i as u32, bias)
                }).unwrap();
            } else {
                for row in rows.clone() {
                    let (code, bias) = code_of(form, row);
                    list.push(row, &code, bias).unwrap();
                }
            }
            model.extend(rows.map(|row| { let (code, bias) = code_of(form, row); (row, code, bias) }));
            prop_assert_eq!(list.len(), model.len());
            prop_assert_eq!(&all(&list), &model);
        }
        let kept = list.compacted(&|row| row % modulus == 0).unwrap();
        model.retain(|entry| entry.0 % modulus == 0);
        prop_assert_eq!(all(&kept), model);
    }
}

/// Readers see whole vectors only, in their order, ever more of them, while another thread adds.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test's own threads")]
fn readers_see_whole_vectors() {
    for form in [Form::Blocks { runs: 24 }, Form::Rows { stride: 20 }] {
        let list = List::new(form);
        let done = AtomicBool::new(false);
        let count = 6000;
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut seen = 0;
                    loop {
                        // Acquire: what was added before is to be seen.
                        let last = done.load(Ordering::Acquire);
                        let mut rows = 0;
                        list.entries(&mut |row, code, bias| {
                            assert_eq!(row, rows);
                            assert_eq!((code.to_vec(), bias), code_of(form, row), "row {row}");
                            rows += 1;
                        });
                        assert!(rows >= seen, "{rows} after {seen}");
                        seen = rows;
                        if last {
                            return assert_eq!(seen, count);
                        }
                    }
                });
            }
            for row in 0..count {
                let (code, bias) = code_of(form, row);
                list.push(row, &code, bias).unwrap();
            }
            // Release: as above.
            done.store(true, Ordering::Release);
        });
    }
}

/// A list that grows one by one copies nothing and holds little more than it needs.
#[test]
fn room_is_bounded() {
    let form = Form::Blocks { runs: 32 };
    let list = List::new(form);
    for row in 0..20_000 {
        list.push(row, &[7; 32], 0).unwrap();
        let needed = (row as usize + 1) * (16 + 2 + 4);
        assert!(list.owned_bytes() <= needed * 3 / 2 + 4096, "{} for {needed}", list.owned_bytes());
    }
}
