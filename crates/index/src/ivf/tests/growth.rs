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
        let kept = list.renumbered(&|row| (row % modulus == 0).then_some(row / modulus)).unwrap();
        model.retain(|entry| entry.0 % modulus == 0);
        model.iter_mut().for_each(|entry| entry.0 /= modulus);
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

/// The newest vector is whole as soon as it is seen: short lists, whose end is looked at again and again.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test's own threads")]
fn the_newest_vector_is_whole() {
    for form in [Form::Blocks { runs: 200 }, Form::Rows { stride: 400 }] {
        let codes: Vec<(Vec<u8>, u16)> = (0..40).map(|row| code_of(form, row)).collect();
        for _ in 0..400 {
            let (list, started, done) = (List::new(form), AtomicBool::new(false), AtomicBool::new(false));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut words = Vec::new();
                    started.store(true, Ordering::Release);
                    while !done.load(Ordering::Acquire) {
                        list.visit(&mut words, &mut |part| {
                            let i = part.rows.len() - 1;
                            let row = part.rows[i];
                            let (code, bias) = &codes[row as usize];
                            match form {
                                Form::Rows { stride } => {
                                    assert_eq!(&part.codes[i * stride..], code, "row {row}")
                                }
                                Form::Blocks { runs } => {
                                    let block = &part.codes[i / 32 * 16 * runs..];
                                    let last = block[16 * (runs - 1) + i % 16] >> (4 * (i % 32 / 16)) & 15;
                                    assert_eq!((last, part.biases[i]), (code[runs - 1], *bias), "row {row}");
                                }
                            }
                        });
                    }
                });
                while !started.load(Ordering::Acquire) {
                    std::hint::spin_loop();
                }
                for (row, (code, bias)) in codes.iter().enumerate() {
                    list.push(row as u32, code, *bias).unwrap();
                }
                done.store(true, Ordering::Release);
            });
        }
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
