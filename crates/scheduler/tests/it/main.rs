//! The scheduler from outside: what is decided, and what its workers do.

mod caches;
mod cost;
mod guests;
mod placement;
mod policies;
mod running;
mod simulation;
mod storm;
mod together;
mod traces;
