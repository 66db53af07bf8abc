//! Numbers for Prometheus: what requests took, by index and kind of work; what the scheduler and the memory say.
//!
//! Counting takes no lock. Only indexes that are there are counted by name, so that clients cannot make names up.

use crate::node::Node;
use crate::route::{Role, Route};
use arc_swap::ArcSwap;
use lanewise_engine::table::{Share, WorkDone};
use lanewise_engine::{Purpose, TableState};
use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Search,
    Read,
    Write,
    Admin,
}

impl Work {
    pub(crate) const ALL: [Work; 4] = [Work::Search, Work::Read, Work::Write, Work::Admin];

    /// By the route's path and the role that it asks for.
    pub(crate) fn of(route: &Route) -> Work {
        let searches = |path: &&str| ["_search", "_msearch", "_count"].iter().any(|end| path.ends_with(end));
        match route.role {
            Role::Read if route.paths.iter().any(searches) => Work::Search,
            Role::Read => Work::Read,
            Role::Write => Work::Write,
            Role::Admin => Work::Admin,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Work::Search => "search",
            Work::Read => "read",
            Work::Write => "write",
            Work::Admin => "admin",
        }
    }
}

/// Upper ends of the histograms' buckets, in microseconds.
pub(crate) const BUCKETS: [u64; 16] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 10_000_000,
];

/// How long things took.
#[derive(Debug, Default)]
struct Histogram {
    /// By bucket; the last is for what took longer.
    counts: [AtomicU64; BUCKETS.len() + 1],
    sum_us: AtomicU64,
}

impl Histogram {
    fn add(&self, took: Duration) {
        let us = took.as_micros() as u64;
        // Relaxed, here and below: each number is read for itself.
        self.counts[BUCKETS.partition_point(|&end| end < us)].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    fn counts(&self) -> [u64; BUCKETS.len() + 1] {
        self.counts.each_ref().map(|count| count.load(Ordering::Relaxed))
    }
}

/// Of one index, or of the node.
type Latencies = [Histogram; Work::ALL.len()];

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What was counted since the start.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    latencies: Latencies,
    by_index: ArcSwap<BTreeMap<Arc<str>, Arc<Latencies>>>,
    /// By the first digit of the status, from 1.
    statuses: [Counter; 5],
    /// Requests without credentials, or with wrong ones; those that were told to come back later; those whose role is too
    /// small.
    pub(crate) unknown: Counter,
    pub(crate) throttled: Counter,
    pub(crate) forbidden: Counter,
    /// Connections, and those that were too many or no TLS.
    pub(crate) connected: Counter,
    pub(crate) too_many: Counter,
    pub(crate) no_tls: Counter,
    /// Bodies that did not fit into memory beside others.
    pub(crate) no_room: Counter,
}

impl Metrics {
    /// A request was answered.
    pub(crate) fn answered(&self, status: u16) {
        if let Some(count) = self.statuses.get(usize::from(status / 100).wrapping_sub(1)) {
            count.add();
        }
    }

    /// Work was done, in an index that is there or for the node.
    pub(crate) fn took(&self, work: Work, index: Option<&str>, took: Duration) {
        self.latencies[work as usize].add(took);
        let Some(index) = index else { return };
        if let Some(of) = self.by_index.load().get(index) {
            return of[work as usize].add(took);
        }
        let new: Arc<Latencies> = Arc::default();
        self.by_index.rcu(|all| {
            let mut all = BTreeMap::clone(all);
            all.entry(index.into()).or_insert_with(|| new.clone());
            all
        });
        if let Some(of) = self.by_index.load().get(index) {
            of[work as usize].add(took);
        }
    }

    /// How often work took up to each of the [`BUCKETS`]' ends, beyond the one before; the last is for what took longer.
    pub(crate) fn counts(&self, work: Work) -> [u64; BUCKETS.len() + 1] {
        self.latencies[work as usize].counts()
    }

    /// The same of an index that was asked for.
    pub(crate) fn counts_of(&self, index: &str, work: Work) -> Option<[u64; BUCKETS.len() + 1]> {
        self.by_index.load().get(index).map(|of| of[work as usize].counts())
    }

    /// Forgets indexes that are gone.
    fn keep(&self, there: impl Fn(&str) -> bool) {
        if self.by_index.load().keys().all(|index| there(index)) {
            return;
        }
        self.by_index.rcu(|all| {
            let mut all = BTreeMap::clone(all);
            all.retain(|index, _| there(index));
            all
        });
    }
}

/// The text that Prometheus reads (exposition format 0.0.4).
#[derive(Default)]
struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, says: &str) {
        self.0 += &format!("# HELP {name} {says}\n# TYPE {name} {kind}\n");
    }

    /// Labels' values need no escapes: names of indexes, numbers and words of ours.
    fn value(&mut self, name: &str, labels: &[(&str, &dyn Display)], value: impl Display) {
        self.0 += name;
        for (i, (label, value)) in labels.iter().enumerate() {
            let before = if i == 0 { '{' } else { ',' };
            write!(self.0, "{before}{label}=\"{value}\"").expect("a text takes all");
        }
        let after = if labels.is_empty() { "" } else { "}" };
        writeln!(self.0, "{after} {value}").expect("a text takes all");
    }

    fn one(&mut self, name: &str, kind: &str, says: &str, value: impl Display) {
        self.family(name, kind, says);
        self.value(name, &[], value);
    }

    fn histogram(&mut self, name: &str, labels: &[(&str, &dyn Display)], of: &Histogram) {
        let counts = of.counts();
        let all: u64 = counts.iter().sum();
        if all == 0 {
            return;
        }
        let mut below = 0;
        let ends = BUCKETS.iter().map(|&us| (us as f64 / 1e6).to_string()).chain(["+Inf".to_owned()]);
        for (end, count) in ends.zip(counts) {
            below += count;
            self.value(&format!("{name}_bucket"), &[labels, &[("le", &end)]].concat(), below);
        }
        self.value(&format!("{name}_sum"), labels, seconds(of.sum_us.load(Ordering::Relaxed) * 1000));
        self.value(&format!("{name}_count"), labels, all);
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Everything, of `node`.
pub(crate) fn page(node: &Node) -> String {
    let mut page = Page::default();
    requests(&mut page, node);
    memory(&mut page, node);
    tables(&mut page, node);
    scheduler(&mut page, node);
    page.0
}

fn requests(page: &mut Page, node: &Node) {
    let (metrics, cluster) = (&node.metrics, node.cluster());
    metrics.keep(|index| cluster.indices.contains_key(index));
    let name = "lanewise_request_seconds";
    page.family(name, "histogram", "Time that requests were worked on, without reading and sending them.");
    for work in Work::ALL {
        page.histogram(name, &[("work", &work.name())], &metrics.latencies[work as usize]);
    }
    let name = "lanewise_index_request_seconds";
    page.family(name, "histogram", "The same for each index, of requests that name it alone.");
    for (index, of) in &**metrics.by_index.load() {
        for work in Work::ALL {
            let labels: [(&str, &dyn Display); 2] = [("index", index), ("work", &work.name())];
            page.histogram(name, &labels, &of[work as usize]);
        }
    }
    let name = "lanewise_http_responses_total";
    page.family(name, "counter", "Answers, by their status.");
    for (class, count) in (1..).zip(&metrics.statuses) {
        page.value(name, &[("status", &format_args!("{class}xx"))], count.get());
    }
    let name = "lanewise_http_refused_total";
    page.family(name, "counter", "Connections and requests that were not taken, and why.");
    for (why, count) in [
        ("unknown", &metrics.unknown),
        ("throttled", &metrics.throttled),
        ("forbidden", &metrics.forbidden),
        ("connections", &metrics.too_many),
        ("tls", &metrics.no_tls),
        ("memory", &metrics.no_room),
    ] {
        page.value(name, &[("why", &why)], count.get());
    }
    let says = "Connections that were taken.";
    page.one("lanewise_http_connections_total", "counter", says, metrics.connected.get());
    let says = "Log lines that were left out.";
    page.one("lanewise_log_left_out_total", "counter", says, node.log.left_out());
}

fn memory(page: &mut Page, node: &Node) {
    let admission = node.engine.admission();
    let limit = Some(admission.limit()).filter(|&limit| limit < u64::MAX);
    let says = "What tables, searches and merges may take; +Inf without a limit.";
    let limit = limit.map_or("+Inf".to_owned(), |limit| limit.to_string());
    page.one("lanewise_memory_limit_bytes", "gauge", says, limit);
    let name = "lanewise_memory_predicted_bytes";
    page.family(name, "gauge", "What they are predicted to take, and hold.");
    for (purpose, bytes) in Purpose::ALL.iter().zip(admission.in_use().0) {
        page.value(name, &[("purpose", &purpose.name())], bytes);
    }
    page.one("lanewise_memory_waiting", "gauge", "Who waits for memory.", admission.waiting());
    if let Some((virtual_bytes, resident)) = resident() {
        page.one("process_resident_memory_bytes", "gauge", "What the process has in memory.", resident);
        page.one("process_virtual_memory_bytes", "gauge", "What it has addresses for.", virtual_bytes);
    }
}

/// Bytes of addresses and of memory, as Linux tells.
pub(crate) fn resident() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
    };
    Some((of("VmSize:")?, of("VmRSS:")?))
}

fn tables(page: &mut Page, node: &Node) {
    let mut states = [("closed", 0), ("busy", 0), ("open", 0), ("damaged", 0)];
    let listed = node.engine.list();
    let name = "lanewise_index_documents";
    page.family(name, "gauge", "Documents of indexes that are open.");
    for table in &listed {
        let state = match &table.state {
            TableState::Closed => 0,
            TableState::Busy => 1,
            TableState::Open { documents, .. } => {
                page.value(name, &[("index", &table.name)], documents);
                2
            }
            TableState::Damaged { .. } => 3,
        };
        states[state].1 += 1;
    }
    let open = node.engine.opened();
    type Of = fn(&WorkDone) -> f64;
    let families: [(&str, &str, Of); 6] = [
        ("flushes", "Heads that were sealed, since the index was opened, as all of merges.", |w| {
            w.flushes as f64
        }),
        ("flushing_seconds", "Time that sealing took.", |w| w.flushing.as_secs_f64()),
        ("merges", "Merges that were done.", |w| w.merges as f64),
        ("merged_rows", "Rows that merges wrote.", |w| w.merged_rows as f64),
        ("merged_bytes", "Bytes of files that merges wrote.", |w| w.merged_bytes as f64),
        ("merging_seconds", "Time that merges took.", |w| w.merging.as_secs_f64()),
    ];
    for (name, says, of) in families {
        let name = format!("lanewise_index_{name}_total");
        page.family(&name, "counter", says);
        open.iter().for_each(|(index, table)| page.value(&name, &[("index", index)], of(&table.work_done())));
    }
    let homes = node.pool.homes();
    for (name, says, of) in [
        (
            "held",
            "Bytes of vectors that are at home on a chiplet; none where there is one alone.",
            (|s| s.held) as fn(&Share) -> u64,
        ),
        ("read", "Bytes of them that searches read a second, lately.", |s| s.read),
    ] {
        let name = format!("lanewise_index_chiplet_{name}_bytes");
        page.family(&name, "gauge", says);
        for (index, table) in &open {
            for share in table.shares(&homes) {
                page.value(&name, &[("index", index), ("chiplet", &share.chiplet.0)], of(&share));
            }
        }
    }
    let (cluster, name) = (node.cluster(), "lanewise_index_recall");
    page.family(
        name,
        "gauge",
        "Share of the nearest that searches found: an estimate, of those that were done again.",
    );
    for (index, recall) in node.recall.all(|index| cluster.indices.contains_key(index)) {
        page.value(name, &[("index", &index)], recall);
    }
    let name = "lanewise_indices";
    page.family(name, "gauge", "Indexes, by how they are.");
    for (state, count) in states {
        page.value(name, &[("state", &state)], count);
    }
}

fn scheduler(page: &mut Page, node: &Node) {
    let stats = node.pool.stats();
    type Of = fn(&lanewise_engine::scheduler::WorkerStats) -> f64;
    let families: [(&str, &str, &str, Of); 10] = [
        ("tasks_total", "counter", "Tasks that workers ran.", |w| w.tasks as f64),
        ("skipped_total", "counter", "Tasks that were cancelled or late.", |w| w.skipped as f64),
        ("panics_total", "counter", "Panics that were caught.", |w| w.panicked as f64),
        ("busy_seconds_total", "counter", "Time that tasks ran.", |w| seconds(w.busy_ns)),
        ("queue_seconds_total", "counter", "Time that tasks waited in queues.", |w| seconds(w.waited_ns)),
        ("bytes_total", "counter", "Bytes that tasks read: the traffic of chiplets.", |w| w.bytes as f64),
        ("sleeps_total", "counter", "How often workers slept.", |w| w.sleeps as f64),
        ("queued", "gauge", "Tasks in queues.", |w| w.queued as f64),
        ("running", "gauge", "Whether a task runs.", |w| f64::from(u8::from(w.running))),
        ("workers", "gauge", "Workers.", |_| 1.0),
    ];
    for (name, kind, says, of) in families {
        let name = format!("lanewise_scheduler_{name}");
        page.family(&name, kind, says);
        for (worker, (chiplet, stats)) in stats.workers.iter().enumerate() {
            page.value(&name, &[("chiplet", &chiplet.0), ("worker", &worker)], of(stats));
        }
    }
    let name = "lanewise_scheduler_stolen_total";
    page.family(name, "counter", "Tasks that were taken from queues of the own chiplet, and of others.");
    for (worker, (chiplet, stats)) in stats.workers.iter().enumerate() {
        for (from, count) in [("near", stats.stolen_near), ("across", stats.stolen_across)] {
            let labels: [(&str, &dyn Display); 3] =
                [("chiplet", &chiplet.0), ("from", &from), ("worker", &worker)];
            page.value(name, &labels, count);
        }
    }
    let says = "Tasks that found queues full.";
    page.one("lanewise_scheduler_refused_total", "counter", says, stats.refused);
    let says = "How often tables moved to other chiplets.";
    page.one("lanewise_scheduler_mappings_total", "counter", says, stats.epoch);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_histogram_counts_each_time_once_and_below_its_end(times in proptest::collection::vec(0u64..20_000_000, 1..50)) {
            let histogram = Histogram::default();
            times.iter().for_each(|&us| histogram.add(Duration::from_micros(us)));
            let mut page = Page::default();
            page.histogram("t", &[("work", &"search")], &histogram);
            for line in page.0.lines() {
                let (name, value) = line.rsplit_once(' ').unwrap();
                let value: f64 = value.parse().unwrap();
                let expected = match name.split_once("le=\"") {
                    Some((_, end)) => {
                        let end: f64 = end.trim_end_matches("\"}").parse().unwrap();
                        times.iter().filter(|&&us| us as f64 / 1e6 <= end).count() as f64
                    }
                    None if name.starts_with("t_sum") => times.iter().sum::<u64>() as f64 / 1e6,
                    None => times.len() as f64,
                };
                prop_assert!((value - expected).abs() < 1e-6, "{line}: {expected}");
            }
        }
    }
}
