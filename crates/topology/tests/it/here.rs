//! The machine that the tests run on.

use std::thread::available_parallelism;

use lanewise_topology::Machine;

#[test]
fn agrees_with_the_standard_library() {
    let machine = Machine::detect();
    // The standard library looks at the same mask and quota, but not at mounts in unusual places.
    let std = available_parallelism().unwrap().get();
    assert!(machine.threads().get() <= std, "{machine}");
    if machine.limits.cpu_quota.is_none() {
        assert_eq!(machine.cpus().count(), std, "{machine}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn linux_tells_memory_and_page_size() {
    let memory = Machine::detect().memory;
    let (total, available) = (memory.total_bytes.unwrap(), memory.available_bytes.unwrap());
    assert!(available <= total, "{memory:?}");
    let page = memory.page_bytes.unwrap();
    assert!(page.is_power_of_two() && page >= 4096, "{memory:?}");
}
