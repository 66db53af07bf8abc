//! What a long call does now and then: let Python's signal handlers run, and draw the progress bar.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How often, about. Taking the GIL more often would disturb other Python threads.
const PERIOD: Duration = Duration::from_millis(100);

/// Keeps the time of one call.
pub(crate) struct Watch {
    start: Instant,
    last: Instant,
    bar: Option<Bar>,
    /// What a signal handler raised.
    pub(crate) raised: Option<PyErr>,
}

/// A bar on Python's stderr, which may be redirected, a notebook's, or none.
pub(crate) struct Bar {
    /// What is being done, and to what.
    verb: &'static str,
    unit: &'static str,
    /// How long a drawing stays: longer where each becomes a line of a log.
    pace: Duration,
    drawn: Duration,
}

impl Watch {
    /// A watch that draws `bar`, if there is one.
    #[expect(
        clippy::disallowed_methods,
        reason = "an edge of the system: it reads the clock for those inside"
    )]
    pub(crate) fn new(bar: Option<Bar>) -> Self {
        let start = Instant::now();
        Watch { start, last: start, bar, raised: None }
    }

    /// As [`proceed_of`](Self::proceed_of), where nobody sees how much there is.
    pub(crate) fn proceed(&mut self, done: usize) -> ControlFlow<()> {
        self.proceed_of(done, done)
    }

    /// To be called often, without the GIL, with what is done of all there is. Stops if a signal handler raised, which is
    /// then in `raised`, or if the interpreter is shutting down.
    pub(crate) fn proceed_of(&mut self, done: usize, total: usize) -> ControlFlow<()> {
        if self.last.elapsed() < PERIOD {
            return ControlFlow::Continue(());
        }
        self.last += self.last.elapsed();
        let spent = self.start.elapsed();
        let checked = Python::try_attach(|py| {
            py.check_signals()?;
            match &mut self.bar {
                Some(bar) if spent >= bar.drawn + bar.pace => bar.draw(py, done, total, spent, ""),
                _ => Ok(()),
            }
        });
        match checked {
            Some(Ok(())) => ControlFlow::Continue(()),
            Some(Err(error)) => {
                self.raised = Some(error);
                ControlFlow::Break(())
            }
            None => ControlFlow::Break(()),
        }
    }

    /// Draws the bar's last state.
    pub(crate) fn finish(&mut self, py: Python<'_>, done: usize, total: usize) -> PyResult<()> {
        let spent = self.start.elapsed();
        self.bar.as_mut().map_or(Ok(()), |bar| bar.draw(py, done, total, spent, "\n"))
    }
}

impl Bar {
    /// A bar that says `verb` and counts `unit`.
    pub(crate) fn new(py: Python<'_>, verb: &'static str, unit: &'static str) -> Self {
        let terminal =
            py.import("sys").and_then(|sys| sys.getattr("stderr")?.call_method0("isatty")?.is_truthy());
        let pace = if terminal.unwrap_or(false) { PERIOD } else { Duration::from_secs(1) };
        Bar { verb, unit, pace, drawn: Duration::ZERO }
    }

    /// A stderr that cannot be written to is no reason to fail; what a signal handler raises meanwhile is.
    fn draw(
        &mut self,
        py: Python<'_>,
        done: usize,
        total: usize,
        spent: Duration,
        end: &str,
    ) -> PyResult<()> {
        self.drawn = spent;
        let text = format!("\r{}{end}", self.line(done, total, spent));
        let written = py.import("sys").and_then(|sys| {
            let stderr = sys.getattr("stderr")?;
            stderr.call_method1("write", (text,))?;
            stderr.call_method0("flush")
        });
        match written {
            Err(error) if !error.is_instance_of::<PyException>(py) => Err(error),
            _ => Ok(()),
        }
    }

    /// The bar as a line of constant width.
    fn line(&self, done: usize, total: usize, spent: Duration) -> String {
        const WIDTH: usize = 24;
        let share = done as f64 / total.max(1) as f64;
        let full = (share * WIDTH as f64) as usize;
        let rate = done as f64 / spent.as_secs_f64().max(1e-3);
        let left = if done >= total {
            format!("{:.1} s in all", spent.as_secs_f64())
        } else if done == 0 {
            String::new()
        } else {
            let seconds = ((total - done) as f64 / rate).ceil() as u64;
            format!("{}:{:02} left", seconds / 60, seconds % 60)
        };
        let bar = "#".repeat(full) + &".".repeat(WIDTH - full);
        let Bar { verb, unit, .. } = self;
        format!("{verb} [{bar}] {:3.0} %  {done}/{total}  {rate:.0} {unit}/s  {left:<14}", share * 100.0)
    }
}
