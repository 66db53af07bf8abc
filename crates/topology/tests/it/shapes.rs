//! Machines made up from their shape, and the shape of machines.

use lanewise_topology::{ChipletId, FakeError, MAX_CPUS, Machine};
use proptest::prelude::*;

use crate::fixture::{genoa, layout};

fn fake(shape: &str) -> Machine {
    Machine::fake(shape).unwrap()
}

#[test]
fn the_papers_machine() {
    let machine = fake("12x8x32M");
    assert_eq!(machine.chiplets.len(), 12);
    assert!(machine.chiplets.iter().all(|c| c.cores.len() == 8));
    assert!(machine.chiplets.iter().all(|c| c.shared_cache().unwrap().bytes == Some(32 << 20)));
    assert_eq!((machine.packages_len(), machine.nodes_len(), machine.threads().get()), (1, 1, 96));
    assert_eq!(machine.chiplet_of(95), Some(ChipletId(11)));
    assert_eq!(machine.online.to_string(), "0-95");
    assert_eq!(machine.cpu_model.as_deref(), Some("fake 12x8x32M"));
}

#[test]
fn all_parts_of_a_shape() {
    let machine = fake("2p:1x2x96M+1x1x512K@2");
    assert_eq!(layout(&machine), ["0-1,6-7", "2,8", "3-4,9-10", "5,11"]);
    assert_eq!(machine.chiplets[2].cores[1].cpus, [4, 10]);
    let last = |c: usize| machine.chiplets[c].shared_cache().map(|cache| (cache.bytes, cache.cpus_len));
    assert_eq!(last(2), Some((Some(96 << 20), Some(4))));
    assert_eq!(last(3), Some((Some(512 << 10), Some(2))));
    let places: Vec<_> = machine.chiplets.iter().map(|c| (c.package, c.node)).collect();
    assert_eq!(places, [(0, 0), (0, 0), (1, 1), (1, 1)]);
    let unknown = fake("1x64");
    assert_eq!((layout(&unknown), unknown.chiplets[0].shared_cache()), (vec!["0-63".to_owned()], None));
}

#[test]
fn a_fake_is_what_is_read_of_the_machine_it_follows() {
    let (read, fake) = (genoa().read(0..32), fake("2p:2x4x32M@2"));
    assert_eq!(read.shape(), "2p:2x4x32M@2");
    for (read, fake) in read.chiplets.iter().zip(&fake.chiplets) {
        assert_eq!((&read.cores, read.package, read.node), (&fake.cores, fake.package, fake.node));
        assert_eq!(read.shared_cache(), fake.shared_cache());
    }
}

#[test]
fn shapes_are_written_the_short_way() {
    for (long, short) in [
        (" 1p:12x8x32768K@1\n", "12x8x32M"),
        ("1x8x32M+1x8x32M+2x4x32M", "2x8x32M+2x4x32M"),
        ("1x1x1024M", "1x1x1G"),
        ("1x1x1536K", "1x1x1536K"),
        ("1x2+1x2x1M", "1x2+1x2x1M"),
    ] {
        assert_eq!(fake(long).shape(), short);
    }
}

#[test]
fn errors_name_the_part_and_the_remedy() {
    let error = |shape: &str| Machine::fake(shape).unwrap_err();
    for shape in ["", "12", "12x8x32Mx1", "1x8x1M+", "+", "2p:"] {
        assert!(matches!(error(shape), FakeError::Chiplets(_)), "{shape}: {:?}", error(shape));
    }
    for (shape, what, found) in [
        ("0x8x1M", "chiplets", "0"),
        ("2p:1x-8x1M", "cores of a chiplet", "-8"),
        ("p:1x1", "packages", ""),
        ("1x1@", "threads of a core", ""),
        ("1x1@2@2", "threads of a core", "2@2"),
        ("1048577x1", "chiplets", "1048577"),
        ("1x99999999999999999999", "cores of a chiplet", "99999999999999999999"),
        ("1x٣", "cores of a chiplet", "٣"),
    ] {
        assert_eq!(error(shape), FakeError::Count { what, found: found.into() }, "{shape}");
    }
    for size in ["", "32", "0M", "M", "32m", "32MiB", "-1M", "1.5M", "17179869184G"] {
        assert_eq!(error(&format!("1x1x{size}")), FakeError::CacheSize(size.into()));
    }
    assert_eq!(
        error("12x8x32").to_string(),
        "machine shape: `32` is no cache size; write a whole number and K, M or G (binary), as in `32M`"
    );
    assert_eq!(
        error("1024p:1024x1x1M@2").to_string(),
        "machine shape: 2097152 CPUs are too many; packages x chiplets x cores x threads may be 1048576"
    );
    assert_eq!(error("1048576p:1048576x1048576+1x1@1048576"), FakeError::TooManyCpus(usize::MAX));
    let hostile = error(&format!("\x1b[31m{}", "x".repeat(1 << 20))).to_string();
    assert!(hostile.len() < 300 && !hostile.contains('\x1b'), "{hostile:?}");
}

#[test]
fn as_many_cpus_as_there_may_be() {
    assert_eq!(fake("2p:1x262144x1M@2").threads().get(), MAX_CPUS);
}

/// Chiplets, cores and cache in KiB.
type Part = (usize, usize, Option<u64>);

fn part() -> impl Strategy<Value = Part> {
    let kib = prop_oneof![1u64..4096, (1u64..512).prop_map(|mib| mib << 10), Just(3 << 20)];
    (1usize..5, 1usize..9, prop::option::of(kib))
}

proptest! {
    #[test]
    fn counts_agree_with_the_text(
        packages in 1usize..4, parts in prop::collection::vec(part(), 1..4), threads in 1usize..4,
    ) {
        let texts: Vec<String> = parts.iter().map(|&(chiplets, cores, kib)| {
            format!("{chiplets}x{cores}{}", kib.map_or(String::new(), |kib| format!("x{kib}K")))
        }).collect();
        let machine = fake(&format!("{packages}p:{}@{threads}", texts.join("+")));

        let mut expected = Vec::new();
        for package in 0..packages as u32 {
            for &(chiplets, cores, kib) in &parts {
                expected.extend(vec![(package, package, cores, kib.map(|kib| kib << 10)); chiplets]);
            }
        }
        let found: Vec<_> = machine.chiplets.iter().map(|c| {
            (c.package, c.node, c.cores.len(), c.shared_cache().map(|cache| cache.bytes.unwrap()))
        }).collect();
        prop_assert_eq!(found, expected);
        prop_assert!(machine.chiplets.iter().zip(0..).all(|(chiplet, id)| chiplet.id.0 == id));
        prop_assert!(machine.chiplets.iter().flat_map(|c| &c.cores).all(|core| core.cpus.len() == threads));
        let mut cpus: Vec<usize> = machine.cpus().collect();
        cpus.sort_unstable();
        let cores: usize = parts.iter().map(|part| part.0 * part.1).sum();
        prop_assert_eq!(cpus, (0..packages * cores * threads).collect::<Vec<_>>());
        prop_assert_eq!(fake(&machine.shape()), machine);
    }

    #[test]
    fn near_misses_are_errors_or_machines(text in "([0-9]{0,1}p:)?[0-9]{0,2}x[0-9]{0,2}(x[0-9]{0,3}[KMGk]?)?(\\+[0-9x@p:]{0,5})?(@[0-9]{0,1})?") {
        if let Ok(machine) = Machine::fake(&text) {
            prop_assert!(!machine.chiplets.is_empty());
            prop_assert_eq!(fake(&machine.shape()), machine);
        }
    }

    #[test]
    fn hostile_texts_never_panic(text in "(\\PC|[0-9x+@p:KMG\\x00-\\x20]){0,60}") {
        if let Err(error) = Machine::fake(&text) {
            prop_assert!(!error.to_string().contains(char::is_control));
        }
    }
}
