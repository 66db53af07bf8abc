//! Black-box tests: every variant that this CPU can run, against the definition.

mod agree;
mod choice;
mod definition;
mod guarded;
