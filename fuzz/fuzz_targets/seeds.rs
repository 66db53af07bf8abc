//! Writes small index files of every kind and code into the folder that it is given: what the fuzzer starts from.

use lanewise_index::{Code, Dtype, Index, Inline, Kind, Metric, Params, Vectors};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

const DIM: usize = 12;

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).expect("a folder to write into");
    std::fs::create_dir_all(&folder)?;
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
                let mut file = std::fs::File::create(Path::new(&folder).join(name))?;
                for piece in index.image().expect("no earlier panic").pieces() {
                    file.write_all(piece)?;
                }
            }
        }
    }
    Ok(())
}
