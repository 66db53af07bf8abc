//! Hierarchical navigable small world graphs (Malkov & Yashunin, arXiv 1603.09320).
//!
//! Every node has up to 2m links in the base layer; one in m also stands in the layer above with m links there, and so
//! on. A search walks greedily down the upper layers and then keeps the best `ef` candidates in the base layer.
//!
//! What is as in the paper: layers drawn geometrically, neighbours chosen by the diversity heuristic (Algorithm 4),
//! searches by Algorithms 2 and 5. What is not: the base layer is one flat array; a node's links are compared by one
//! gathered kernel call; the heuristic has Vamana's slack α (DiskANN, NeurIPS 2019); and vectors are
//! inserted in batches whose searches all see the graph before the batch (ParlayANN, PPoPP 2024), so that the same input
//! gives the same graph at any number of threads.

pub(crate) mod build;
mod filtered;
pub(crate) mod graph;
pub(crate) mod repair;
pub(crate) mod search;
pub(crate) mod select;

pub(crate) use graph::Graph;
