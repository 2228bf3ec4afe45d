//! Writes starting corpora: the repository's programs, their traces, and random programs.
//!
//! `cargo run --example seed -- FOLDER` writes `FOLDER/<target>/`; run it in `fuzz/`.

use std::path::Path;
use std::{env, fs};
use streamsan_fuzz::packed;
use streamsan_sim::{lower, parse_file, random, random_graphs, random_lifetimes};
use streamsan_trace::file::{read_bytes, write_bytes};

fn main() {
    let target = env::args().nth(1).expect("seed FOLDER: a folder to write to");
    let put = |name: &str, index: usize, bytes: &[u8]| {
        let folder = Path::new(&target).join(name);
        fs::create_dir_all(&folder).expect("the folder can be made");
        fs::write(folder.join(format!("seed-{index:03}")), bytes).expect("a seed can be written");
    };
    let mut random_bytes = fastrand::Rng::with_seed(1);
    let mut programs: Vec<String> = Vec::new();
    for folder in ["../tests/programs", "../crates/streamsan-check/rule_docs"] {
        for entry in fs::read_dir(folder).expect("the folder is there").flatten() {
            let Ok(text) = fs::read_to_string(entry.path()) else { continue };
            let tests = parse_file("a.md", &text).unwrap_or_default();
            programs.extend(tests.iter().map(|test| test.program.to_string()));
        }
    }
    programs.extend((0..20).map(|seed| random(seed).to_string()));
    programs.extend((0..40).map(|seed| random_lifetimes(seed).to_string()));
    programs.extend((0..20).map(|seed| random_graphs(seed).to_string()));
    for (index, text) in programs.iter().enumerate() {
        put("program_text", index, text.as_bytes());
        put("markdown", index, format!("\0\u{1}\0\u{1}# A\n\n```sim\n{text}```\n").as_bytes());
        let program = streamsan_sim::parse("a.md", text).expect("a program that was written");
        let mut trace = lower(&program, "a.md", "test").trace;
        trace.header.closed = index % 2 == 0;
        let file = write_bytes(&trace).expect("a trace of a program can be written");
        let packed = packed::pack(&file);
        let again = read_bytes(&packed::expand(&packed)).expect("what was packed can be read");
        assert_eq!(read_bytes(&file).expect("a trace of a program"), again, "packing changes the trace");
        put("trace_bytes", index, &packed);
        let control: [u8; 4] = std::array::from_fn(|_| random_bytes.u8(..));
        put("follower", index, &[&control, packed.as_slice()].concat());
        if index == 0 {
            put("trace_bytes", 999, &[&[packed::RAW], file.as_slice()].concat());
        }
        let length = random_bytes.usize(200..2000);
        let noise: Vec<u8> = (0..length).map(|_| random_bytes.u8(..)).collect();
        put("trace_structured", index, &noise);
    }
}
