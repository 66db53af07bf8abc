//! Bodies of searches from strangers: each gets an answer, or an error that is the client's.

#![no_main]

mod node;

use lanewise_server::Node;
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static NODE: LazyLock<Node> = LazyLock::new(node::node);

fuzz_target!(|data: &[u8]| {
    let (status, answer) = NODE.answer("POST", "/a/_search", data.to_vec());
    assert!(status == 200 || (400..500).contains(&status), "{status} {}", String::from_utf8_lossy(&answer));
    serde_json::from_slice::<serde_json::Value>(&answer).expect("it is JSON");
});
