//! The scheduler from outside: what is decided, and what its workers do.

mod cost;
mod caches;
mod placement;
mod policies;
mod running;
mod storm;
mod together;
mod simulation;
mod traces;
