//! The CPUs that the calling thread may run on.

/// Ids of the allowed CPUs, ascending.
pub(crate) fn allowed() -> Vec<usize> {
    #[cfg(target_os = "linux")]
    if let Some(cpus) = mask() {
        return cpus;
    }
    // No mask to ask for: assume that the CPUs counted are the lowest ones.
    (0..std::thread::available_parallelism().map_or(1, usize::from)).collect()
}

/// The affinity mask, from `sched_getaffinity(2)`; `None` when the call is refused.
#[cfg(target_os = "linux")]
fn mask() -> Option<Vec<usize>> {
    use libc::c_ulong;

    const WORD_BITS: usize = c_ulong::BITS as usize;
    // `cpu_set_t` ends at CPU 1023, and a kernel built for more refuses a shorter mask with EINVAL.
    let mut words = 1024 / WORD_BITS;
    while words * WORD_BITS <= crate::MAX_CPUS {
        let mut mask: Vec<c_ulong> = vec![0; words];
        // SAFETY: the kernel writes at most the given number of bytes, all of them `mask`'s; its words
        // are what `cpu_set_t` is made of, so the alignment fits too.
        let status = unsafe {
            libc::sched_getaffinity(
                0,
                size_of_val(mask.as_slice()),
                mask.as_mut_ptr().cast::<libc::cpu_set_t>(),
            )
        };
        if status == 0 {
            let is_set = |&cpu: &usize| mask[cpu / WORD_BITS] >> (cpu % WORD_BITS) & 1 == 1;
            return Some((0..words * WORD_BITS).filter(is_set).collect());
        }
        if std::io::Error::last_os_error().raw_os_error() != Some(libc::EINVAL) {
            return None;
        }
        words *= 2;
    }
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::allowed;

    /// Pins the calling thread (the test harness gives each test its own) to `cpus`.
    fn pin(cpus: &[usize]) {
        // SAFETY: all-zero is the empty `cpu_set_t`.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        for &cpu in cpus {
            // SAFETY: `CPU_SET` indexes within the set and panics outside of it.
            unsafe { libc::CPU_SET(cpu, &mut set) };
        }
        // SAFETY: the set lives through the call and its size is its own.
        let status = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) };
        assert_eq!(status, 0, "cannot pin to {cpus:?}: {}", std::io::Error::last_os_error());
    }

    #[test]
    fn follows_the_mask_of_the_calling_thread() {
        let all = allowed();
        let (&first, &last) = (all.first().unwrap(), all.last().unwrap());
        for one in [first, last] {
            pin(&[one]);
            assert_eq!(allowed(), [one]);
        }
        pin(&all);
        assert_eq!(allowed(), all);
    }
}
