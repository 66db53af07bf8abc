//! Black-box tests of the indexes: one harness over every kind, element type and metric.

mod add;
mod churn;
mod codes;
mod data;
mod exact;
mod files;
mod filters;
mod graph;
mod lists;
mod reach;
mod steps;
mod tuning;
