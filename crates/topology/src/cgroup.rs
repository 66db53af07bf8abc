//! What the container allows: CPU quota and memory limit from cgroup v1 and v2.
//!
//! `/proc/self/cgroup` names the process's cgroup in each hierarchy, `/proc/self/mountinfo` where (and from
//! which cgroup on) a hierarchy is mounted. A limit holds for everything below the cgroup it is set on, so
//! for each mounted hierarchy we walk from the process's folder up to the mount point and keep the smallest:
//!
//! ```text
//! for mount in mounts of cgroup hierarchies:
//!     folder = mount.point / (process's cgroup relative to mount.root)
//!     while folder is inside mount.point: limits = min(limits, limits of folder); folder = parent
//! ```
//!
//! A folder that does not exist is passed over, not the end of the walk: inside a container the path may be
//! the host's while only the container's part is mounted.
//!
//! Sources: cgroups(7), proc_pid_mountinfo(5), Linux `Documentation/admin-guide/cgroup-v2.rst`.

use std::path::{Component, Path};

use crate::files::Files;

/// `cpu.max` may leave the period out; this is then meant (microseconds).
const DEFAULT_PERIOD_US: u64 = 100_000;

/// Memory limits from here on mean "none": cgroup v1 writes `i64::MAX` rounded down to a page.
const NO_MEMORY_LIMIT_BYTES: u64 = 1 << 62;

/// What the container allows. `None` means no limit, or none that can be seen from inside.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// CPU time per time, in CPUs; positive, may be a fraction (1.5).
    pub cpu_quota: Option<f64>,
    /// Most memory that the process's cgroup may hold.
    pub memory_bytes: Option<u64>,
}

/// The line of `/proc/self/mountinfo` of one cgroup hierarchy.
struct Mount {
    /// The cgroup that is at the mount point, as seen from the process's cgroup namespace.
    root: String,
    /// Where it is mounted, without the leading `/`.
    point: String,
    hierarchy: Hierarchy,
}

#[derive(Clone, Copy)]
enum Hierarchy {
    /// The unified hierarchy.
    V2,
    /// A hierarchy of v1 with the controllers that concern us.
    V1 { cpu: bool, memory: bool },
}

pub(crate) fn read(files: &Files) -> Limits {
    let cgroups = files.text("proc/self/cgroup").unwrap_or_default();
    let mounts = files.text("proc/self/mountinfo").unwrap_or_default();
    let mut limits = Limits::default();
    for mount in mounts.lines().filter_map(parse_mount) {
        let Some(path) = cgroup_path(&cgroups, mount.hierarchy) else { continue };
        let Some(below) = relative(&mount.root, path) else { continue };
        // The last ancestor of a relative path is the empty one: the mount point itself.
        for folder in below.ancestors() {
            let folder = Path::new(&mount.point).join(folder);
            let Some(folder) = folder.to_str() else { continue };
            let here = limits_of(files, folder, mount.hierarchy);
            limits.cpu_quota = smaller(limits.cpu_quota, here.cpu_quota);
            limits.memory_bytes = smaller(limits.memory_bytes, here.memory_bytes);
        }
    }
    limits
}

/// The smaller of two limits, where `None` is no limit.
fn smaller<T: PartialOrd>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b < a { b } else { a }),
        (a, b) => a.or(b),
    }
}

/// The limits set on the cgroup in `folder` itself.
fn limits_of(files: &Files, folder: &str, hierarchy: Hierarchy) -> Limits {
    let file = |name| format!("{folder}/{name}");
    match hierarchy {
        Hierarchy::V2 => Limits {
            cpu_quota: files.text(&file("cpu.max")).and_then(|text| {
                let mut words = text.split_whitespace();
                // "max" is no number and so no limit.
                let quota_us = words.next()?.parse().ok()?;
                let period_us = words.next().map_or(Some(DEFAULT_PERIOD_US), |word| word.parse().ok())?;
                cpus(quota_us, period_us)
            }),
            memory_bytes: memory_bytes(files, &file("memory.max")),
        },
        Hierarchy::V1 { cpu, memory } => Limits {
            cpu_quota: cpu
                .then(|| {
                    // -1 stands for no quota.
                    let quota_us = files.parse(&file("cpu.cfs_quota_us"))?;
                    cpus(quota_us, files.parse(&file("cpu.cfs_period_us"))?)
                })
                .flatten(),
            memory_bytes: memory.then(|| memory_bytes(files, &file("memory.limit_in_bytes"))).flatten(),
        },
    }
}

/// Quota in CPUs. Zero on either side is nothing a kernel writes.
fn cpus(quota_us: u64, period_us: u64) -> Option<f64> {
    (quota_us > 0 && period_us > 0).then(|| quota_us as f64 / period_us as f64)
}

fn memory_bytes(files: &Files, path: &str) -> Option<u64> {
    files.parse::<u64>(path).filter(|&bytes| bytes < NO_MEMORY_LIMIT_BYTES)
}

/// Reads `id parent major:minor root point options [optional…] - type source super-options`; `None` for
/// anything that is no cgroup mount or concerns neither CPU nor memory.
fn parse_mount(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(3);
    let (root, point) = (unescape(before.next()?), unescape(before.next()?));
    let mut after = after.split(' ');
    let hierarchy = match after.next()? {
        "cgroup2" => Hierarchy::V2,
        "cgroup" => {
            let options = after.nth(1)?;
            let has = |controller| options.split(',').any(|option| option == controller);
            let (cpu, memory) = (has("cpu"), has("memory"));
            if !cpu && !memory {
                return None;
            }
            Hierarchy::V1 { cpu, memory }
        }
        _ => return None,
    };
    let point = point.strip_prefix('/')?.to_owned();
    (!climbs(Path::new(&point))).then_some(Mount { root, point, hierarchy })
}

/// Undoes the mount table's octal escapes (`\040` is a space).
fn unescape(field: &str) -> String {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let [first, tail @ ..] = rest {
        match rest {
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..] => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = tail;
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The process's cgroup in `hierarchy`, from lines `id:controllers:path`. That of v2 has no controllers.
fn cgroup_path(cgroups: &str, hierarchy: Hierarchy) -> Option<&str> {
    cgroups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next()?;
        let has = |controller| controllers.split(',').any(|name| name == controller);
        let ours = match hierarchy {
            Hierarchy::V2 => controllers.is_empty(),
            Hierarchy::V1 { cpu, memory } => cpu && has("cpu") || memory && has("memory"),
        };
        if ours { fields.next() } else { None }
    })
}

/// The cgroup `path` as seen from a mount of cgroup `root`: relative, and empty where the mount point is the
/// best that can be reached. `None` when the mount shows another part of the tree, whose limits are not ours.
///
/// Both are written relative to the cgroup namespace: what lies above its root starts with `/..`, once per
/// level (cgroup_namespaces(7)).
fn relative<'a>(root: &str, path: &'a str) -> Option<&'a Path> {
    // No kernel gives longer paths, and each component costs a look at the file system.
    const MAX_PATH_BYTES: usize = 4096;
    if path.len() > MAX_PATH_BYTES {
        return None;
    }
    let (root, path) = (Path::new(root), Path::new(path));
    if let Ok(below) = path.strip_prefix(root)
        && !climbs(below)
    {
        return Some(below);
    }
    // A mount of a cgroup above the namespace's root: the folders between are nameless from here, but the
    // mount point's limits hold for us as long as we are not further up ourselves.
    let ups = |p: &Path| p.components().filter(|c| *c == Component::ParentDir).count();
    let only_ups = root.components().all(|c| matches!(c, Component::RootDir | Component::ParentDir));
    (only_ups && ups(root) > 0 && ups(path) <= ups(root)).then_some(Path::new(""))
}

/// Whether `path` leaves the folder it is relative to.
fn climbs(path: &Path) -> bool {
    path.components().any(|component| !matches!(component, Component::Normal(_) | Component::CurDir))
}
