//! Lines of bulks from strangers: each action gets its answer, and what is there can be searched.

#![no_main]

mod node;

use lanewise_server::Node;
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

static NODE: LazyLock<Node> = LazyLock::new(node::node);
static COUNT: AtomicU32 = AtomicU32::new(0);

fuzz_target!(|data: &[u8]| {
    // What was written goes, now and then.
    if COUNT.fetch_add(1, Ordering::Relaxed) % 500 == 499 {
        NODE.answer("DELETE", "/*", Vec::new());
        node::fill(&NODE);
    }
    let (status, answer) = NODE.answer("POST", "/a/_bulk", data.to_vec());
    assert!(status == 200 || (400..500).contains(&status), "{status} {}", String::from_utf8_lossy(&answer));
    let answer: serde_json::Value = serde_json::from_slice(&answer).expect("it is JSON");
    for item in answer["items"].as_array().into_iter().flatten() {
        let (_, item) = item.as_object().and_then(|item| item.iter().next()).expect("an action");
        let status = item["status"].as_u64().expect("a status");
        assert!((200..500).contains(&status), "{item}");
        // What was written is found.
        if status < 300 && item["result"] != "deleted" && item["_index"] == "a" {
            let id = item["_id"].as_str().expect("an id");
            let body = serde_json::json!({"query": {"ids": {"values": [id]}}}).to_string();
            assert_eq!(NODE.answer("POST", "/a/_search", body.into_bytes()).0, 200);
        }
    }
});
