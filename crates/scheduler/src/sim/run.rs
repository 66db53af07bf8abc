//! A run: queries come, are cut into tasks, tasks go to workers and run in slices.
//!
//! Every decision is that of the policy functions and of [`Mapping`] and [`Monitor`], which the real workers call too; this
//! file only carries it out and says what it costs. Queues are not bounded here, so nothing is refused.

use super::events::{Event, Events};
use super::machine::Machine;
use super::memory::{Cursor, Memory, Traffic};
use super::outcome::{Answered, Outcome};
use super::trace::{Access, Trace};
use super::workload::{Arrivals, Source, Workload};
use crate::policy::{self, Layout, MappingId, Policy, View};
use crate::{Mapping, Monitor, Sample};
use std::collections::{HashMap, VecDeque};

/// How queries get to cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orchestration {
    /// Tasks to workers' queues.
    Policy(Policy),
    /// One query at a time over all cores: a parallel loop over its tasks with a dynamic schedule and a barrier at its end,
    /// as FAISS with OpenMP does over the lists of one query (document 004's V0 of lists).
    ParallelFor,
}

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Setup<'a> {
    /// The machine.
    pub machine: Machine,
    /// How queries get to cores.
    pub orchestration: Orchestration,
    /// How long tasks of other chiplets must have waited before they are taken.
    pub patience_ns: u64,
    /// Who asks what, and when.
    pub workload: Workload,
    /// What queries do.
    pub trace: &'a Trace,
}

struct Waiting {
    query: u32,
    task: u32,
    since_ns: f64,
}

struct Running {
    query: u32,
    task: u32,
    at: Cursor,
    began_ns: f64,
}

#[derive(Default)]
struct Worker {
    queue: VecDeque<Waiting>,
    running: Option<Running>,
    /// On a task, on its way to one, or woken.
    awake: bool,
}

/// Workers as the policies see them.
struct Seen<'a> {
    workers: &'a [Worker],
    now_ns: f64,
}

impl View for Seen<'_> {
    fn queued(&self, worker: usize) -> usize {
        self.workers[worker].queue.len()
    }
    fn running(&self, worker: usize) -> bool {
        self.workers[worker].awake
    }
    fn waited_ns(&self, worker: usize) -> u64 {
        self.workers[worker].queue.front().map_or(0, |task| (self.now_ns - task.since_ns) as u64)
    }
}

/// A query that has come and was not answered yet.
#[derive(Clone, Copy)]
struct Open {
    query: u32,
    came_ns: f64,
    left: u32,
}

/// A loop over the tasks of one query.
#[derive(Default)]
struct Loop {
    waiting: VecDeque<u32>,
    /// The query, the next of its tasks, and the end of them.
    current: Option<(u32, u32, u32)>,
    /// Threads that have not come to the barrier.
    threads: usize,
    counter_free_ns: f64,
}

struct Run<'a> {
    setup: &'a Setup<'a>,
    layout: Layout,
    memory: Memory<'a>,
    events: Events,
    source: Source,
    workers: Vec<Worker>,
    open: Vec<Open>,
    turn: usize,
    the_loop: Loop,
    mapping: Mapping,
    monitor: Monitor,
    /// Of each task of the trace, the number of its mapping id, and those.
    id_of: Vec<u32>,
    ids: Vec<MappingId>,
    samples: Vec<Sample>,
    window_began_ns: f64,
    window: Vec<u64>,
    outcome: Outcome,
    /// Between warm-up and the last arrival; what had gone through each chiplet when it began.
    measuring: bool,
    began_ns: f64,
    before: Vec<Traffic>,
}

/// Runs what `setup` says to its end.
///
/// # Panics
/// If the trace has no queries.
pub fn run(setup: &Setup) -> Outcome {
    assert!(!setup.trace.queries.is_empty(), "a trace without queries says nothing");
    let mut run = Run::new(setup);
    match setup.workload.arrivals {
        Arrivals::Saturated { each } => {
            let outstanding = each.max(1) * run.layout.workers();
            (0..outstanding).for_each(|_| run.events.plan(0.0, Event::Arrive));
        }
        Arrivals::Poisson { .. } => run.events.plan(0.0, Event::Arrive),
        Arrivals::Bursty { .. } => {
            run.events.plan(0.0, Event::Burst);
            run.events.plan(0.0, Event::Arrive);
        }
    }
    while let Some((now, event)) = run.events.next() {
        match event {
            Event::Arrive => run.arrive(now),
            Event::Burst => run.burst(now),
            Event::Look(worker) => run.look(worker, now),
            Event::Run(worker) => run.slice(worker, now),
            Event::Finish(worker) => run.finish(worker, now),
            Event::Answer(open) => run.answer(open, now),
        }
    }
    run.outcome.whole.traffic = run.memory.traffic().to_vec();
    run.outcome.whole.memory_bytes = run.memory.bytes();
    run.outcome
}

impl<'a> Run<'a> {
    fn new(setup: &'a Setup<'a>) -> Self {
        let layout = setup.machine.layout();
        let trace = setup.trace;
        let mut numbers = HashMap::new();
        let (mut ids, mut sizes) = (Vec::new(), Vec::new());
        let mut id_of = Vec::with_capacity(trace.tasks.len());
        for task in &trace.tasks {
            let number = *numbers.entry(task.id).or_insert_with(|| {
                ids.push(task.id);
                sizes.push(0);
                ids.len() - 1
            });
            let table = &trace.tables[(task.id.0 >> 32) as usize];
            let bytes = match table.access {
                Access::Gathered => table.bytes,
                Access::Streamed => task.lines * super::cache::LINE_BYTES,
            };
            sizes[number] = bytes.max(sizes[number]);
            id_of.push(number as u32);
        }
        let sizes: Vec<(MappingId, u64)> = ids.iter().copied().zip(sizes).collect();
        Run {
            memory: Memory::new(&setup.machine, trace, setup.workload.seed),
            events: Events::default(),
            source: Source::new(trace, &setup.workload),
            workers: (0..layout.workers()).map(|_| Worker::default()).collect(),
            open: Vec::new(),
            turn: 0,
            the_loop: Loop::default(),
            mapping: Mapping::new(&layout).with(&sizes),
            monitor: Monitor::default(),
            samples: vec![Sample::default(); ids.len()],
            id_of,
            ids,
            window_began_ns: 0.0,
            window: vec![0; trace.tables.len()],
            outcome: Outcome::default(),
            measuring: false,
            began_ns: 0.0,
            before: Vec::new(),
            layout,
            setup,
        }
    }

    fn arrive(&mut self, now: f64) {
        let workload = &self.setup.workload;
        let came = self.outcome.whole.came;
        if came == workload.queries {
            return;
        }
        if came == workload.queries / 4 {
            self.measuring = true;
            self.began_ns = now;
            self.before = self.memory.traffic().to_vec();
        }
        if came > 0 && came.is_multiple_of((workload.queries / workload.windows.max(1)).max(1)) {
            self.close_window(now);
        }
        let number = self.source.next();
        let query = &self.setup.trace.queries[number as usize];
        let tasks = query.tasks.len() as u32;
        self.open.push(Open { query: number, came_ns: now, left: tasks });
        let open = self.open.len() as u32 - 1;
        self.outcome.whole.came += 1;
        self.outcome.whole.tasks_came += u64::from(tasks);
        match self.setup.orchestration {
            Orchestration::Policy(_) => {
                let first = query.tasks.start;
                let end = if query.leads { first + 1 } else { query.tasks.end };
                (first..end).for_each(|task| self.submit(open, task, now));
            }
            Orchestration::ParallelFor => {
                self.the_loop.waiting.push_back(open);
                if self.the_loop.current.is_none() {
                    self.begin_loop(now);
                }
            }
        }
        if self.outcome.whole.came == workload.queries {
            self.end_measuring(now);
        } else if let Arrivals::Poisson { rate } | Arrivals::Bursty { rate } = workload.arrivals {
            let gap = self.source.gap_ns(rate);
            self.events.plan(now + gap, Event::Arrive);
        }
    }

    fn burst(&mut self, now: f64) {
        let Arrivals::Bursty { rate } = self.setup.workload.arrivals else { return };
        let workload = &self.setup.workload;
        if self.outcome.whole.came < workload.queries {
            self.source.change_rate();
            let window_ns = workload.queries as f64 / workload.windows.max(1) as f64 * 1e9 / rate;
            self.events.plan(now + window_ns / 20.0, Event::Burst);
        }
    }

    fn end_measuring(&mut self, now: f64) {
        self.measuring = false;
        self.outcome.measured_ns = now - self.began_ns;
        let pairs = self.memory.traffic().iter().zip(&self.before);
        let since = pairs.map(|(now, before)| Traffic {
            lines: now.lines - before.lines,
            missed: now.missed - before.missed,
            link_bytes: now.link_bytes - before.link_bytes,
        });
        self.outcome.traffic = since.collect();
    }

    fn close_window(&mut self, now: f64) {
        self.source.close_window();
        let tables = self.window.len();
        self.outcome.windows.push(std::mem::replace(&mut self.window, vec![0; tables]));
        let window_ns = (now - self.window_began_ns) as u64;
        self.window_began_ns = now;
        if self.setup.orchestration != Orchestration::Policy(Policy::Chiplet) {
            return;
        }
        let seen = self.ids.iter().zip(&mut self.samples).filter(|(_, sample)| sample.tasks > 0);
        let samples = seen.map(|(&id, sample)| (id, std::mem::take(sample))).collect();
        if let Some(next) = self.monitor.close_window(window_ns, samples, &self.mapping) {
            self.mapping = next;
            self.outcome.remaps_ns.push(now);
        }
    }

    fn submit(&mut self, query: u32, task: u32, now: f64) {
        let Orchestration::Policy(policy) = self.setup.orchestration else { return };
        self.turn += 1;
        let home = self.mapping.home(self.setup.trace.tasks[task as usize].id);
        let seen = Seen { workers: &self.workers, now_ns: now };
        let worker = policy::dispatch(policy, &self.layout, &seen, self.turn, home, usize::MAX);
        let worker = worker.expect("queues are not bounded");
        self.workers[worker].queue.push_back(Waiting { query, task, since_ns: now });
        self.wake(policy, worker, now);
    }

    /// Wakes whoever should take a task of `target`'s queue.
    fn wake(&mut self, policy: Policy, target: usize, now: f64) {
        self.turn += 1;
        let seen = Seen { workers: &self.workers, now_ns: now };
        let patience = self.setup.patience_ns;
        if let Some(woken) = policy::wake(policy, &self.layout, &seen, target, self.turn, patience) {
            self.workers[woken].awake = true;
            self.events.plan(now + self.setup.machine.wake_ns, Event::Look(woken));
        }
    }

    fn look(&mut self, me: usize, now: f64) {
        let machine = &self.setup.machine;
        let policy = match self.setup.orchestration {
            Orchestration::Policy(policy) => policy,
            Orchestration::ParallelFor => return self.draw(me, now),
        };
        let (from, cost) = if self.workers[me].queue.is_empty() {
            self.turn += 1;
            let seen = Seen { workers: &self.workers, now_ns: now };
            let patience = self.setup.patience_ns;
            let Some(steal) = policy::steal(policy, &self.layout, &seen, me, self.turn, patience) else {
                self.workers[me].awake = false;
                return;
            };
            let (count, cost) = match steal.across {
                false => (&mut self.outcome.steals_near, machine.steal_near_ns),
                true => (&mut self.outcome.steals_far, machine.steal_far_ns),
            };
            *count += u64::from(self.measuring);
            (steal.from, cost)
        } else {
            (me, 0.0)
        };
        let task = self.workers[from].queue.pop_front().expect("policies take from queues with tasks");
        self.begin(me, task.query, task.task, now + cost + machine.queue_ns);
        if !self.workers[from].queue.is_empty() {
            self.wake(policy, from, now);
        }
    }

    fn begin(&mut self, worker: usize, query: u32, task: u32, at_ns: f64) {
        let worker_state = &mut self.workers[worker];
        worker_state.awake = true;
        worker_state.running = Some(Running { query, task, at: Cursor::default(), began_ns: at_ns });
        self.events.plan(at_ns, Event::Run(worker));
    }

    fn slice(&mut self, worker: usize, now: f64) {
        let chiplet = self.layout.of_worker(worker).0 as usize;
        let running = self.workers[worker].running.as_mut().expect("it runs a task");
        let slice = self.memory.slice(chiplet, now, running.task, &mut running.at);
        if self.measuring {
            self.outcome.busy_ns += slice.end_ns - now;
            self.outcome.stall_ns += slice.end_ns - now - slice.compute_ns;
        }
        self.events.plan(slice.end_ns, if slice.done { Event::Finish(worker) } else { Event::Run(worker) });
    }

    fn finish(&mut self, worker: usize, now: f64) {
        let Running { query: open, task, began_ns, .. } =
            self.workers[worker].running.take().expect("it ran a task");
        let done = &self.setup.trace.tasks[task as usize];
        self.outcome.whole.tasks_ran += 1;
        self.outcome.whole.lines += done.lines;
        self.outcome.tasks += u64::from(self.measuring);
        self.samples[self.id_of[task as usize] as usize] += Sample {
            tasks: 1,
            refused: 0,
            bytes: done.lines * super::cache::LINE_BYTES,
            busy_ns: (now - began_ns) as u64,
        };
        self.window[(done.id.0 >> 32) as usize] += done.lines;

        let Open { query, .. } = self.open[open as usize];
        self.open[open as usize].left -= 1;
        let query = &self.setup.trace.queries[query as usize];
        let led = query.leads && task == query.tasks.start;
        if self.setup.orchestration == Orchestration::ParallelFor {
            return if led { self.open_loop(open, now) } else { self.events.plan(now, Event::Look(worker)) };
        }
        if led {
            (query.tasks.start + 1..query.tasks.end).for_each(|task| self.submit(open, task, now));
        }
        let mut free_ns = now;
        if self.open[open as usize].left == 0 {
            // Whoever runs the last task merges; a single one has nothing to merge.
            free_ns += self.setup.machine.merge_ns * (query.tasks.len() - 1) as f64;
            self.events.plan(free_ns, Event::Answer(open));
        }
        self.events.plan(free_ns, Event::Look(worker));
    }

    fn answer(&mut self, open: u32, now: f64) {
        let Open { query, came_ns, left } = self.open[open as usize];
        debug_assert_eq!(left, 0, "a query is answered when all its tasks ran");
        let query = &self.setup.trace.queries[query as usize];
        self.outcome.whole.answered += 1;
        if self.measuring {
            self.outcome.answered.push(Answered {
                table: query.table,
                at_ns: came_ns,
                latency_ns: now - came_ns,
            });
            let tasks = &self.setup.trace.tasks[query.tasks.start as usize..query.tasks.end as usize];
            self.outcome.compute_ns += tasks.iter().map(|task| task.compute_ns as f64).sum::<f64>();
        }
        if let Arrivals::Saturated { .. } = self.setup.workload.arrivals {
            self.events.plan(now, Event::Arrive);
        }
    }

    /// The next query's loop: first what comes before it, on the thread that asked.
    fn begin_loop(&mut self, now: f64) {
        let Some(open) = self.the_loop.waiting.pop_front() else { return };
        let query = &self.setup.trace.queries[self.open[open as usize].query as usize];
        self.the_loop.current = Some((open, query.tasks.start + u32::from(query.leads), query.tasks.end));
        if query.leads { self.begin(0, open, query.tasks.start, now) } else { self.open_loop(open, now) }
    }

    fn open_loop(&mut self, open: u32, now: f64) {
        debug_assert!(self.the_loop.current.is_some_and(|current| current.0 == open));
        let machine = &self.setup.machine;
        self.the_loop.threads = self.workers.len();
        let at = now + machine.loop_ns + machine.loop_thread_ns * self.workers.len() as f64;
        (0..self.workers.len()).for_each(|worker| self.events.plan(at, Event::Look(worker)));
    }

    /// A thread draws its next iteration, or comes to the barrier.
    fn draw(&mut self, worker: usize, now: f64) {
        let machine = &self.setup.machine;
        // One counter, whose line goes from thread to thread.
        let at = self.the_loop.counter_free_ns.max(now) + machine.draw_ns;
        self.the_loop.counter_free_ns = at;
        let Some((open, next, end)) = &mut self.the_loop.current else { return };
        let open = *open;
        if next < end {
            let task = *next;
            *next += 1;
            return self.begin(worker, open, task, at);
        }
        self.the_loop.threads -= 1;
        if self.the_loop.threads == 0 {
            let query = &self.setup.trace.queries[self.open[open as usize].query as usize];
            // Each thread that found something adds it to the query's results, one after the other.
            let merges = query.tasks.len().min(self.workers.len());
            let at = at + machine.merge_ns * merges as f64;
            self.events.plan(at, Event::Answer(open));
            self.the_loop.current = None;
            self.begin_loop(at);
        }
    }
}
