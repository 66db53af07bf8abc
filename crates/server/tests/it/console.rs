//! The console: its page, and what it asks for.

use crate::served::Served;
use serde_json::{Value, json};

#[test]
fn the_console_comes_from_the_node_alone() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::new(folder.path());
    for (path, kind) in [
        ("/_lanewise", "text/html"),
        ("/_lanewise/console.js", "text/javascript"),
        ("/_lanewise/console.css", "text/css"),
    ] {
        let reply = served.ask("GET", path, "");
        assert_eq!(reply.status, 200, "{path}");
        let head = reply.head.to_lowercase();
        assert!(head.contains(&format!("content-type: {kind}")), "{head}");
        assert!(head.contains("default-src 'none'"), "{head}");
        let text = String::from_utf8(reply.body).unwrap();
        let elsewhere = text.lines().filter(|line| line.contains("://")).collect::<Vec<_>>();
        assert!(elsewhere.iter().all(|line| line.contains("www.w3.org/2000/svg")), "{elsewhere:?}");
        // Text from the node goes into the page as text.
        assert!(!text.contains("innerHTML"));
    }
}

#[test]
fn the_console_is_told_what_happened() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::new(folder.path());
    let mappings = json!({"properties": {"v": {"type": "knn_vector", "dimension": 2}}});
    served
        .ask("PUT", "/one", json!({"settings": {"index.knn": true}, "mappings": mappings}).to_string())
        .expect(200);
    served.ask("PUT", "/two", "").expect(200);
    for i in 0..20 {
        served.ask("PUT", &format!("/one/_doc/{i}"), json!({"v": [i, 1]}).to_string()).expect(201);
    }
    served.ask("POST", "/one/_flush", "").expect(200);
    served.ask("PUT", "/one/_doc/20", json!({"v": [20, 1]}).to_string()).expect(201);
    served.ask("POST", "/one/_forcemerge?max_num_segments=1", "").expect(200);
    let search = json!({"query": {"knn": {"v": {"vector": [3, 1], "k": 4}}}}).to_string();
    (0..7).for_each(|_| drop(served.ask("POST", "/one/_search", &search).expect(200)));
    let told = served.ask("GET", "/_lanewise/live", "").expect(200);
    let all = |counts: &Value| counts.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum::<u64>();
    let one = &told["indices"][0];
    assert_eq!((&one["name"], &one["state"], &one["documents"]), (&json!("one"), &json!("open"), &json!(21)));
    assert_eq!((all(&one["searches"]), &one["segments"], &one["merges"]), (7, &json!(1), &json!(1)));
    assert_eq!(told["indices"][1]["documents"], json!(0));
    assert!(one["homes"][0]["held"].as_u64() > Some(0), "{one}");
    assert_eq!(all(&told["work"]["search"]), 7);
    assert!(
        told["workers"].as_array().unwrap().iter().map(|w| w["tasks"].as_u64().unwrap()).sum::<u64>() >= 7
    );
    assert!(told["memory"]["predicted"]["open"].as_u64() > Some(0), "{}", told["memory"]);
    // A search was done again, in the background: of so few vectors all are found.
    let recall = (0..200).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        served.ask("GET", "/_lanewise/live", "").expect(200)["indices"][0]["recall"].as_f64()
    });
    assert_eq!(recall, Some(1.0));
    let metrics = String::from_utf8(served.ask("GET", "/_lanewise/metrics", "").body).unwrap();
    for line in [
        "lanewise_index_recall{index=\"one\"} 1",
        "lanewise_index_merges_total{index=\"one\"} 1",
        "lanewise_index_merged_rows_total{index=\"one\"} 21",
        "lanewise_index_flushes_total{index=\"one\"} 2",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} is not in {metrics}");
    }
    let stats = served.ask("GET", "/one/_stats", "").expect(200);
    assert_eq!(stats["indices"]["one"]["total"]["merges"]["total"], json!(1), "{stats}");
}
