//! What a long call does now and then: let Python's signal handlers run, and draw the progress bar.

use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How often, about. Taking the GIL more often would disturb other Python threads.
const PERIOD: Duration = Duration::from_millis(100);

/// Keeps the time of one call.
pub(crate) struct Watch {
    start: Instant,
    last: Instant,
    /// What is drawn: the number of vectors to come, or nothing.
    total: Option<usize>,
    /// What a signal handler raised.
    pub(crate) raised: Option<PyErr>,
}

impl Watch {
    /// A watch that draws a bar for `total` vectors if there is one.
    #[expect(
        clippy::disallowed_methods,
        reason = "an edge of the system: it reads the clock for those inside"
    )]
    pub(crate) fn new(total: Option<usize>) -> Self {
        let start = Instant::now();
        Watch { start, last: start, total, raised: None }
    }

    /// To be called often, without the GIL, with the number of vectors done. Stops if a signal handler raised, which is
    /// then in `raised`, or if the interpreter is shutting down.
    pub(crate) fn proceed(&mut self, done: usize) -> ControlFlow<()> {
        if self.last.elapsed() < PERIOD {
            return ControlFlow::Continue(());
        }
        self.last += self.last.elapsed();
        let checked = Python::try_attach(|py| {
            py.check_signals()?;
            self.draw(py, done)
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

    /// The last state of the bar, and the line's end.
    pub(crate) fn finish(&self, py: Python<'_>, done: usize) -> PyResult<()> {
        self.draw(py, done)?;
        if self.total.is_some() { write(py, "\n") } else { Ok(()) }
    }

    fn draw(&self, py: Python<'_>, done: usize) -> PyResult<()> {
        let Some(total) = self.total else { return Ok(()) };
        write(py, &format!("\r{}", line(done, total, self.start.elapsed())))
    }
}

/// Writes to Python's stderr, which may be redirected, a notebook's, or none.
fn write(py: Python<'_>, text: &str) -> PyResult<()> {
    let stderr = py.import("sys")?.getattr("stderr")?;
    if !stderr.is_none() {
        stderr.call_method1("write", (text,))?;
        stderr.call_method0("flush")?;
    }
    Ok(())
}

/// The bar as a line of constant width.
fn line(done: usize, total: usize, spent: Duration) -> String {
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
    format!("adding [{bar}] {:3.0} %  {done}/{total}  {rate:.0} vectors/s  {left:<14}", share * 100.0)
}
