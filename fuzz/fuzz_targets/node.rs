//! A node with a small index, without a network.

use lanewise_engine::scheduler::{Layout, Options, Workers};
use lanewise_engine::table::Resources;
use lanewise_engine::{Admission, Limits, MemoryLimit, Pool, Threads};
use lanewise_server::Node;
use std::num::NonZeroUsize;
use std::sync::Arc;

const INDEX: &str = r#"{"settings": {"index.knn": true, "index.translog.durability": "async"}, "mappings": {"properties": {
    "v": {"type": "knn_vector", "dimension": 3}, "b": {"type": "knn_vector", "dimension": 8, "data_type": "binary", "space_type": "hamming"},
    "k": {"type": "keyword"}, "t": {"type": "text"}, "n": {"type": "integer"}, "f": {"type": "float"}, "d": {"type": "date"},
    "o": {"properties": {"x": {"type": "keyword"}}}}}}"#;

/// The index `a`, some of whose documents are in a segment.
pub fn node() -> Node {
    let folder = std::env::temp_dir().join(format!("lanewise-fuzz-{}", std::process::id()));
    let workers = Workers::Unbound(Layout::new(&[1]));
    let pool = Arc::new(Pool::start(Options { workers, ..Options::default() }).expect("a thread"));
    let admission = Admission::new(MemoryLimit::Bytes(1 << 30), NonZeroUsize::MIN);
    let resources = Resources { threads: Threads::new(Some(NonZeroUsize::MIN)), pool, admission };
    let node = Node::open(&folder, resources, Limits::default()).expect("a folder of our own");
    fill(&node);
    node
}

/// Makes the index anew.
pub fn fill(node: &Node) {
    node.answer("DELETE", "/a", Vec::new());
    assert_eq!(node.answer("PUT", "/a", INDEX.into()).0, 200);
    let lines: String = (0..20)
        .map(|i| {
            format!(
                "{{\"index\":{{\"_id\":\"{i}\"}}}}\n{{\"v\":[{i},1,2],\"b\":[{i}],\"k\":\"k{}\",\"t\":\"red lamp {i}\",\"n\":{i},\"f\":0.{i},\
                 \"d\":\"2026-01-{:02}\",\"o\":{{\"x\":\"y\"}}}}\n",
                i % 3,
                i + 1
            )
        })
        .collect();
    let (first, second) = lines.split_at(lines.match_indices("{\"index\"").nth(12).expect("there are twenty").0);
    assert_eq!(node.answer("POST", "/a/_bulk", first.into()).0, 200);
    assert_eq!(node.answer("POST", "/a/_flush", Vec::new()).0, 200);
    assert_eq!(node.answer("POST", "/a/_bulk", second.into()).0, 200);
}
