//! Writes small files of every kind into a folder for each fuzz target: what the fuzzer starts from.

mod closed;

use lanewise_index::{Code, Dtype, Index, Inline, Kind, Metric, Params, Vectors};
use lanewise_storage::blob::BlobWriter;
use lanewise_storage::log::Log;
use lanewise_storage::{Memory, Storage, manifest};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const DIM: usize = 12;

fn main() -> io::Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).expect("a folder to write into"));
    for target in ["open", "log", "blob", "manifest", "segment", "table_log", "snapshot", "search", "bulk"] {
        std::fs::create_dir_all(folder.join(target))?;
    }
    indexes(&folder.join("open"))?;
    logs(&folder.join("log"))?;
    blobs(&folder.join("blob"))?;
    manifests(&folder.join("manifest"))?;
    requests(&folder)?;
    tables(folder)
}

/// Bodies of searches, and lines of bulks.
fn requests(folder: &Path) -> io::Result<()> {
    let searches = [
        r#"{"query":{"knn":{"v":{"vector":[1,2,3],"k":5,"filter":{"bool":{"must":[{"term":{"k":"k1"}}],"must_not":[{"exists":{"field":"f"}}]}},"method_parameters":{"ef_search":50},"rescore":{"oversample_factor":2.0}}}}}"#,
        r#"{"query":{"bool":{"should":[{"match":{"t":{"query":"red lamp","operator":"and"}}},{"prefix":{"k":"k"}},{"wildcard":{"k":"k*"}}],"filter":[{"range":{"n":{"gte":3,"lt":9}}},{"terms":{"k":["k0","k1"]}}],"minimum_should_match":1}},"sort":[{"n":"desc"},"_score"],"from":1,"size":3,"_source":{"excludes":["v"]}}"#,
        r#"{"size":0,"aggs":{"a":{"terms":{"field":"k","size":3},"aggs":{"s":{"stats":{"field":"n"}}}},"h":{"histogram":{"field":"n","interval":5}},"c":{"cardinality":{"field":"k"}},"r":{"range":{"field":"f","ranges":[{"to":0.5},{"from":0.5}]}}}}"#,
        r#"{"query":{"match_all":{}},"search_after":[3],"sort":[{"n":{"order":"asc","missing":"_last"}}],"docvalue_fields":["n"],"stored_fields":["_none_"],"collapse":{"field":"k"},"post_filter":{"ids":{"values":["1","2"]}},"track_total_hits":true,"min_score":0.1,"explain":true,"profile":true,"timeout":"1s"}"#,
        r#"{"query":{"range":{"d":{"gte":"2026-01-03","lte":"now","format":"yyyy-MM-dd"}}},"fields":["o.x"],"version":true,"seq_no_primary_term":true}"#,
        r#"{"query":{"script_score":{"query":{"match_all":{}},"script":{"lang":"knn","source":"knn_score","params":{"field":"v","query_value":[1,2,3],"space_type":"l1"}}}}}"#,
        r#"{"query":{"hybrid":{"queries":[{"match":{"t":"red"}},{"knn":{"v":{"vector":[1,2,3],"min_score":0.2}}}]}}}"#,
    ];
    for (i, search) in searches.iter().enumerate() {
        std::fs::write(folder.join("search").join(i.to_string()), search)?;
    }
    let bulks = [
        "{\"index\":{\"_id\":\"1\"}}\n{\"v\":[1,2,3],\"t\":\"red\"}\n{\"create\":{\"_id\":2}}\n{\"n\":5}\n{\"delete\":{\"_id\":\"3\"}}\n",
        "{\"update\":{\"_id\":\"4\",\"retry_on_conflict\":3}}\n{\"doc\":{\"n\":7},\"doc_as_upsert\":true}\n{\"update\":{\"_id\":\"x\"}}\n{\"doc\":{\"k\":\"a\"},\"upsert\":{\"k\":\"b\"}}\n",
        "{\"index\":{\"_index\":\"b\",\"_id\":\"1\",\"if_seq_no\":3,\"if_primary_term\":1,\"routing\":\"r\"}}\n{\"any\":{\"deep\":[1,{\"x\":null}]}}\n",
    ];
    for (i, bulk) in bulks.iter().enumerate() {
        std::fs::write(folder.join("bulk").join(i.to_string()), bulk)?;
    }
    Ok(())
}

/// Files of a table's segments, the records of its log, and the manifest of its snapshot.
fn tables(folder: PathBuf) -> io::Result<()> {
    let (files, backup) = closed::closed();
    let ours = |path: &&PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        path.starts_with("segments") && ["rows", "vectors-", "deleted-"].iter().any(|ours| name.starts_with(ours))
    };
    for (which, path) in files.keys().filter(ours).enumerate() {
        let file = Arc::new(files[path].clone());
        let blob = lanewise_storage::blob::Blob::open(file).expect("a blob");
        let data = blob.read(0..blob.len()).expect("it is whole");
        std::fs::write(folder.join("segment").join(which.to_string()), [&[which as u8], data].concat())?;
    }
    let mut records: Vec<Vec<u8>> = Vec::new();
    let go_on = &mut |_: u64, record: &[u8]| {
        records.push(record.to_vec());
        ControlFlow::Continue(())
    };
    let (identity, from) = closed::log_of(&files);
    lanewise_storage::log::replay(&closed::memory(&files), Path::new("log"), identity, from, go_on).expect("it is whole");
    for (i, record) in records.iter().enumerate() {
        std::fs::write(folder.join("table_log").join(i.to_string()), record)?;
    }
    std::fs::write(folder.join("table_log").join("all"), records.join(&b"next record"[..]))?;
    let manifest = &backup[Path::new("snapshots/s/manifest")];
    std::fs::write(folder.join("snapshot").join("whole"), [&[0], &manifest[..]].concat())?;
    std::fs::write(folder.join("snapshot").join("contents"), [&[1], &manifest[32..]].concat())
}

/// The files of a memory, each behind what the target reads first and joined by what it cuts at.
fn keep(memory: &Memory, first: u8, cut: &[u8], path: &Path) -> io::Result<()> {
    let root = Path::new("");
    let files = memory.list(root)?.into_iter().map(|entry| memory.open(Path::new(&entry.name)));
    let files =
        files.map(|file| file.map(|file| (*file).as_ref().to_vec())).collect::<io::Result<Vec<_>>>()?;
    std::fs::write(path, [vec![first], files.join(cut)].concat())
}

fn logs(folder: &Path) -> io::Result<()> {
    for files in 1..4u8 {
        let memory = Memory::new();
        let go_on = &mut |_: u64, _: &[u8]| ControlFlow::Continue(());
        let (log, _) = Log::open(Arc::new(memory.clone()), Path::new(""), 7, 1, go_on).expect("a new log");
        for number in 0..files * 3 {
            let position = log.append(&vec![number; usize::from(number) * 7]).expect("memory has room");
            if number % 2 == 0 {
                log.sync(position).expect("memory syncs");
            }
            if number % 3 == 2 && number + 1 < files * 3 {
                log.rotate().expect("memory has room");
            }
        }
        keep(&memory, files, b"next file", &folder.join(format!("files-{files}")))?;
        log.close().expect("memory has room");
        keep(&memory, 1, b"next file", &folder.join(format!("closed-{files}")))?;
    }
    Ok(())
}

fn blobs(folder: &Path) -> io::Result<()> {
    for bytes in [0, 1, 100, 60_000] {
        let memory = Memory::new();
        let mut writer = BlobWriter::new(memory.create(Path::new("blob"))?);
        writer.write_all(&vec![3; bytes])?;
        writer.finish()?;
        keep(&memory, 2, b"", &folder.join(bytes.to_string()))?;
    }
    Ok(())
}

fn manifests(folder: &Path) -> io::Result<()> {
    for bytes in [0, 1, 100] {
        let memory = Memory::new();
        manifest::replace(&memory, Path::new("manifest"), 0, &vec![3; bytes]).expect("memory has room");
        keep(&memory, 1, b"", &folder.join(bytes.to_string()))?;
    }
    Ok(())
}

fn indexes(folder: &Path) -> io::Result<()> {
    let floats: Vec<f32> = (0..300 * DIM).map(|i| ((i * 7919 + i / DIM * 31) % 101) as f32 - 50.0).collect();
    let bits: Vec<u8> = (0..300 * 2).map(|i| (i * 73 % 16) as u8).collect();
    for kind in Kind::ALL {
        for code in Code::ALL {
            for (dtype, metric) in
                [(Dtype::F32, Metric::L2), (Dtype::F16, Metric::Cosine), (Dtype::Bits, Metric::Hamming)]
            {
                let params = Params { metric, dtype, kind, code, m: 3, nlist: 32, ..Params::new(DIM) };
                let Ok(index) = Index::new(params) else { continue };
                let vectors = if dtype == Dtype::Bits { Vectors::Bits(&bits) } else { Vectors::F32(&floats) };
                let ids: Vec<i64> = (0..300).map(|i| 2 * i).collect();
                let ids = (dtype == Dtype::F16).then_some(&ids[..]);
                index.add(vectors, ids, &Inline, &mut |_| ControlFlow::Continue(())).expect("right vectors");
                index.remove(&[4, 6]).expect("no earlier panic");
                index
                    .calibrate(None, &[3], &Inline, &mut |_, _| ControlFlow::Continue(()))
                    .expect("enough vectors");
                let name = format!("{}-{}-{}", kind.name(), code.name(), dtype.name());
                let mut file = std::fs::File::create(folder.join(name))?;
                for piece in index.image().expect("no earlier panic").pieces() {
                    file.write_all(piece)?;
                }
            }
        }
    }
    Ok(())
}
